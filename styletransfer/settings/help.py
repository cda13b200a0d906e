"""The text of `--help`: every key of a command with its value and its meaning."""

import inspect
import json
import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any

from omegaconf import OmegaConf

from styletransfer.settings import ASSETS
from styletransfer.settings.compose import compose
from styletransfer.settings.registry import CONFIGS, Command
from styletransfer.settings.schemas import GROUPS, choices, keys, keys_marked
from styletransfer.settings.terminal import NARROW, WIDTH, width, wrapped

# COLUMN: width, in characters, of the column with keys and values. In a narrow terminal, a key's
# meaning is below the key, indented by INDENT characters.
COLUMN, INDENT = 36, 4
FOOT = """\
--cfg job prints the composed settings; --multirun KEY=A,B runs every combination;
--config-dir DIR adds your own presets: experiment=mine is DIR/experiment/mine.yaml.
A file name is taken as it is typed; under --multirun commas separate several. If there is no file
of that name, content/coffee.jpg and the like are the pictures that come with the package."""


def help_text(
    command: Command, overrides: Sequence[str] = (), config_dir: str | None = None
) -> str:
    """Return the usage of a command, and its presets and keys with their values and meanings.

    The KEY=VALUE words `overrides` change the values (UserError if a word is wrong).
    """
    schema: Any = command.schema
    texts = meanings(schema)
    config = compose(command, overrides, config_dir=config_dir, with_hydra=True)
    values: Any = OmegaConf.to_container(config)
    folders: list[str | Path] = [command.folder, *([config_dir] if config_dir else [])]
    presets = {
        group: f"Presets: {', '.join(choices(group, *folders))}"
        for group in config.hydra.runtime.choices
        if group in GROUPS
    }
    lines = []
    for group, text in presets.items():
        lines += _row(group, config.hydra.runtime.choices[group] or "", text)
    for key, field in keys(schema):
        if is_dataclass(field.type):
            continue
        group, _, leaf = key.rpartition(".")
        lines += _row(key, (values[group] if group else values)[leaf], texts[key])
    usage = [*(["styletransfer"] if command.folder == CONFIGS else []), command.name]
    usage += [*map(str.upper, keys_marked(schema, "positional")), "KEY=VALUE ..."]
    head = [*wrapped(" ".join(usage)), *wrapped(command.summary)]
    foot = FOOT.splitlines() if width() == WIDTH else wrapped(" ".join(FOOT.split()))
    return "\n".join([*head, "", *lines, "", *foot])


@cache
def meanings(schema: Any) -> Mapping[str, str]:
    """Return key -> its meaning: the docstring below the key in the source of the dataclass."""
    texts: dict[str, str] = {}
    for base in reversed(schema.__mro__[:-1]):
        # inspect.getsource of a class uses `ast`, which fails in Python 3.11 if several threads use
        # it at once. So the class is searched in its module's source.
        module = inspect.getsource(sys.modules[base.__module__])
        source = re.findall(rf"^class {base.__name__}\b.*?\n(?=\S|\Z)", module, re.M | re.S)[0]
        declared = r"^    (\w+): [^\n]*\n(?:    [ )][^\n]*\n)*"
        found = re.findall(declared + r'    """(.*?)"""', source, re.M | re.S)
        texts |= {key: " ".join(text.split()) for key, text in found}
    for group in fields(schema):
        if isinstance(group.type, type) and is_dataclass(group.type):
            inner = meanings(group.type).items()
            texts |= {f"{group.name}.{key}": text for key, text in inner}
    return MappingProxyType(texts)


def _row(key: str, value: object, text: str) -> list[str]:
    """Return the lines for a key: KEY=VALUE, and on the right the first sentence of `text`."""
    columns, column = width(), COLUMN
    left = textwrap.shorten(f"{key}={_written(value)}", columns, placeholder="...")
    sentence = re.split(r"\.(?: (?=[A-Z])|$)", text)[0]
    if columns < NARROW:
        column = INDENT
    right = textwrap.wrap(sentence, columns - column)
    if columns < NARROW or len(left) >= column:
        return [left, *(" " * column + line for line in right)]
    return [f"{start:<{COLUMN}}{line}" for start, line in zip_longest([left], right, fillvalue="")]


def _written(value: object) -> str:
    """Return a value as a user types it; the path of a bundled file is relative to assets/."""
    if isinstance(value, str):
        return value.removeprefix(f"{ASSETS}{os.sep}")
    return f"[{','.join(map(_written, value))}]" if isinstance(value, list) else json.dumps(value)
