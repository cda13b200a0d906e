"""`--help`: what each key means, from the docstrings of the schema, on one page."""

import inspect
import json
import os
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from omegaconf import OmegaConf

from styletransfer.cli.catalogue import summary
from styletransfer.config import ASSETS
from styletransfer.errors import UserError
from styletransfer.settings.compose import compose
from styletransfer.settings.meanings import meanings
from styletransfer.settings.schemas import (
    CONFIGS,
    UNUSED,
    choices,
    folder_of,
    positional_key,
    schema_of,
)

# In characters: of a line, and of a key with its value that a meaning stands beside.
WIDTH, LONGEST = 100, 36
Row = tuple[str, str, str]
KEYS = "KEY=VALUE ..."
FOOT = """\
--cfg job prints the composed settings; --multirun KEY=A,B runs every combination;
--config-dir DIR adds your own presets: experiment=mine is DIR/experiment/mine.yaml.
A file name is taken as it is typed; under --multirun commas separate several."""
IGNORED = """\
Of the other keys of train, resume and dry_run are refused; the rest is taken, so that any run can
be explained, and changes nothing.
"""


def help_text(
    name: str,
    arguments: Sequence[str] = (),
    config_dir: str | None = None,
    function: Callable[..., Any] | None = None,
) -> str:
    """Return the keys of a command, or of one of its groups, with values and meanings.

    Args:
        name: of the command.
        arguments: KEY=VALUE, which change the values shown, and perhaps the name of a group.
        config_dir: a folder with more files, as `--config-dir` names it.
        function: of a command that is not in the package; says what it is for.

    Raises:
        UserError: arguments that cannot be composed, or a group that does not exist.
    """
    schema, unused = schema_of(name), UNUSED.get(name, ())
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
    rows = [row for row in _rows(schema, values) if row[0] not in unused]
    for group in groups | chosen:
        if group in chosen:
            meaning = _meaning(groups[group]) if group in groups else "A preset of many keys"
            names = ", ".join(choices(group, config_dir, folder_of(name)))
            rows.append((group, chosen[group] or "", f"{meaning}: {names}"))
    foot = (IGNORED if unused else "") + _foot(list(groups))
    if function is None or folder_of(name) == CONFIGS:
        program, about = f"styletransfer {name}", summary(name)
    else:
        program = f"python -m {function.__module__.rpartition('.')[0]}"
        about = (inspect.getdoc(function) or "").partition("\n")[0]
    positional = positional_key(schema)
    usage = " ".join([program, *([positional.upper()] if positional else []), KEYS])
    return f"{usage}\n{about}\n\n{_table(rows)}\n\n{foot}"


def _foot(groups: Sequence[str]) -> str:
    first = f"--help {groups[0]} explains {', '.join(groups)}.\n" if groups else ""
    return first + FOOT


def _rows(schema: Any, values: Any, prefix: str = "") -> list[Row]:
    said = meanings(schema)
    return [
        (
            prefix + field.name,
            _written(values[field.name]),
            _first_sentence(said.get(field.name, "")),
        )
        for field in fields(schema)
        if not is_dataclass(field.type)
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


def _meaning(schema: Any) -> str:
    return _first_sentence(inspect.getdoc(schema) or "")


def _first_sentence(text: str) -> str:
    return re.split(r"\.(?:\s|$)", " ".join(text.split()))[0]
