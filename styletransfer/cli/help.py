"""`--help`: what each key means, from the docstrings of the schema, on one page."""

import inspect
import json
import os
import re
import textwrap
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from styletransfer.config import ASSETS
from styletransfer.config.commands import COMMANDS, command, schema_of
from styletransfer.errors import UserError
from styletransfer.settings.compose import compose
from styletransfer.settings.schemas import choices, keys_marked, meanings

# In characters: of a line, and of a key with its value that a meaning stands beside.
WIDTH, LONGEST = 100, 36
Row = tuple[str, str, str]
KEYS = "KEY=VALUE ..."
FOOT = """\
--cfg job prints the composed settings; --multirun KEY=A,B runs every combination;
--config-dir DIR adds your own presets: experiment=mine is DIR/experiment/mine.yaml.
A file name is taken as it is typed; under --multirun commas separate several. A name such as
content/coffee.jpg, of no file here, is that of a picture that comes with the package."""
IGNORED = """\
Of the other keys of train, resume and dry_run are refused; the rest is taken, so that any run can
be explained, and changes nothing.
"""


def help_text(name: str, arguments: Sequence[str] = (), config_dir: str | None = None) -> str:
    """Return the keys of a command, or of one of its groups, with values and meanings.

    Of the arguments KEY=VALUE change the values shown, and one may name a group (UserError: they
    cannot be composed, or there is no such group).
    """
    schema, unused = schema_of(name), command(name).unused
    overrides = [argument for argument in arguments if "=" in argument or argument[:1] == "~"]
    asked = [argument for argument in arguments if argument not in overrides]
    config = compose(name, overrides, config_dir=config_dir, with_hydra=True)
    shown = [field for field in fields(schema) if field.name not in unused]
    groups = {field.name: field.type for field in shown if is_dataclass(field.type)}
    choice = config.hydra.runtime.choices
    chosen = {key: choice[key] for key in choice if "/" not in key and key not in unused}
    values: Any = OmegaConf.to_container(config)
    if asked:
        if asked[0] not in groups:
            raise UserError(f"--help {asked[0]}: choose one of {', '.join(groups)}")
        return _table(_rows(groups[asked[0]], values[asked[0]], f"{asked[0]}."))
    folders: list[str | Path] = [command(name).folder, *([config_dir] if config_dir else [])]
    rows = [row for row in _rows(schema, values) if row[0] not in unused]
    for group in groups | chosen:
        if group in chosen:
            said = inspect.getdoc(groups[group]) if group in groups else "A preset of many keys"
            names = ", ".join(choices(group, *folders))
            rows.append((group, chosen[group] or "", f"{_first_sentence(said or '')}: {names}"))
    foot = IGNORED if unused else ""
    if groups:
        foot += f"--help {next(iter(groups))} explains {', '.join(groups)}.\n"
    usage = [*(["styletransfer"] if name in COMMANDS else []), name]
    usage += [*map(str.upper, keys_marked(schema, "positional")), KEYS]
    return f"{' '.join(usage)}\n{command(name).summary}\n\n{_table(rows)}\n\n{foot}{FOOT}"


def _rows(schema: Any, values: Any, prefix: str = "") -> list[Row]:
    said = meanings(schema)
    names = [field.name for field in fields(schema) if not is_dataclass(field.type)]
    return [
        (prefix + name, _written(values[name]), _first_sentence(said.get(name, "")))
        for name in names
    ]


def _table(rows: Sequence[Row]) -> str:
    """Lay out keys and values on the left, meanings on the right."""
    column = max(len(left) for key, value, _ in rows if len(left := f"{key}={value}") <= LONGEST)
    lines: list[str] = []
    for key, value, meaning in rows:
        left = textwrap.shorten(f"{key}={value}", WIDTH, placeholder="...")
        right = textwrap.wrap(meaning, WIDTH - column - 2) or [""]
        if len(left) > column:
            lines.append(left)
            left = ""
        lines += [
            f"{left:<{column}}  {right[0]}",
            *(f"{'':<{column}}  {more}" for more in right[1:]),
        ]
    return "\n".join(line.rstrip() for line in lines)


def _written(value: object) -> str:
    """Return a value as the command line takes it; a bundled picture by its name alone."""
    if isinstance(value, str):
        return value.removeprefix(f"{ASSETS}{os.sep}")
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    return json.dumps(value)


def _first_sentence(text: str) -> str:
    """Return a text up to the first full stop that ends a sentence, without it."""
    return re.split(r"\.(?:\s+(?=[A-Z])|$)", " ".join(text.split()))[0]
