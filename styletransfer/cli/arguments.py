"""The arguments of a command: Hydra's flags that we stand by, KEY=VALUE with any file, --help."""

import argparse
import glob
import inspect
import json
import os
import re
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NoReturn

from omegaconf import OmegaConf

from styletransfer.errors import UserError
from styletransfer.settings import ASSETS
from styletransfer.settings.commands import COMMANDS, command, schema_of
from styletransfer.settings.compose import compose
from styletransfer.settings.paths import expanded, in_folder, picture_extensions
from styletransfer.settings.schemas import (
    GROUPS,
    choices,
    keys,
    keys_marked,
    mapping_keys,
    meanings,
    path_keys,
    unknown_key,
)
from styletransfer.settings.values import HYDRA_FOLDERS, SWEEP_FUNCTION, quote_path, quoted, split

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


class Arguments(argparse.Namespace):
    """What a command line asks for, each flag by its name."""

    overrides: list[str]  # KEY=VALUE in Hydra's grammar, file names quoted
    folders: list[str]  # that hydra.run.dir= and hydra.sweep.dir= name
    help: bool
    version: bool
    cfg: str | None  # which part of the composed config to print instead: job, hydra or all
    package: str | None  # the only node of that part to print
    resolve: bool
    config_dir: str | None
    multirun: bool  # there is one job for each combination of values


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see --help")


def parse(argv: Sequence[str], schema: type[Any]) -> Arguments:
    """Read a command line, without the program's name, for settings of a schema.

    UserError: an unknown flag, one that lacks its value, a sweep into one output file, or a folder
    or pattern without pictures.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("overrides", nargs="*")
    for flags in (("-h", "--help"), ("--version",), ("-m", "--multirun"), ("--resolve",)):
        parser.add_argument(*flags, action="store_true")
    parser.add_argument("-c", "--cfg", choices=("job", "hydra", "all"))
    parser.add_argument("-p", "--package")
    parser.add_argument("-cd", "--config-dir")
    arguments, unknown = parser.parse_known_intermixed_args(list(argv), Arguments())
    if unknown:
        raise UserError(f"unknown flag {unknown[0]}; see --help")
    sweep = arguments.multirun or "hydra.mode=MULTIRUN" in arguments.overrides
    typed = _named(arguments.overrides, schema)
    swept = keys_marked(schema, "swept")
    words = [each_picture(word, swept, sweep=sweep) for word in typed]
    arguments.multirun = sweep = sweep or words != typed
    _check(words, [key for key, _ in keys(schema)], sweep=sweep)
    launcher = [word for word in words if word.startswith("hydra/launcher=")]
    if launcher and not (sweep or arguments.cfg):
        raise UserError(f"{launcher[-1]} is for sweeps; add --multirun")
    pairs = [word.lstrip("+").partition("=") for word in words]
    folders = [value for key, _, value in pairs if key in HYDRA_FOLDERS and "${" not in value]
    arguments.folders = [folder.strip("'\"") for folder in folders]
    paths, lists = path_keys(schema), keys_marked(schema, "each")
    words = [quote_path(word, paths, lists, sweep=sweep) for word in words]
    # To Hydra, only ++KEY may add a key to a mapping that no schema knows.
    opened = re.compile(rf"({'|'.join(mapping_keys(schema))})[.=]")
    arguments.overrides = [f"++{word}" if opened.match(word) else word for word in words]
    return arguments


def each_picture(override: str, keys: Collection[str], *, sweep: bool) -> str:
    """Return KEY=VALUE with each picture that VALUE stands for, as a sweep takes them.

    Left as it is where KEY is none of `keys`, or VALUE neither a folder nor a pattern with * or ?;
    a file of that very name is a file. In a sweep each of the values between commas is looked at.
    (UserError: there is no picture in the folder, or none that the pattern fits.)
    """
    key, _, value = override.partition("=")
    if key not in keys or value[:1] in ("'", '"'):
        return override
    values = split(value) if sweep else [value]
    pictures = [picture for one in values for picture in _pictures(override, one)]
    return override if pictures == values else f"{key}=" + ",".join(map(quoted, pictures))


def _pictures(override: str, value: str) -> list[str]:
    """Return the pictures of a folder or a pattern, in the order of their names, or a file itself.

    Brackets are letters, as in any file name here.
    """
    name = expanded(value)
    if os.path.isdir(name):
        if names := in_folder(name):
            return names
        known = ", ".join(picture_extensions())
        raise UserError(f"{override}: there is no picture in that folder ({known})")
    if os.path.exists(name) or not re.search(r"[*?]", name):
        return [value]
    matching = sorted(glob.glob(name.replace("[", "[[]"), recursive=True))
    if pictures := [path for path in matching if path.lower().endswith(picture_extensions())]:
        return pictures
    raise UserError(f"{override}: no picture has a name like that; check the pattern")


def _named(arguments: Sequence[str], schema: type[Any]) -> list[str]:
    """Put the positional key before the argument without a key, or a folder's name that holds =.

    Several are put in brackets where the key takes a list.
    """
    bare = [word for word in arguments if word and ("=" not in word or os.path.isdir(word))]
    positional = keys_marked(schema, "positional")
    if not positional or not bare:
        return list(arguments)
    (key,) = positional
    if len(bare) == 1:
        return [f"{key}={word}" if word == bare[0] else word for word in arguments]
    if key not in keys_marked(schema, "each"):
        raise UserError(f"cannot understand {bare[1]!r} beside {bare[0]!r}; write KEY=VALUE")
    named = f"{key}=[{','.join(map(quoted, bare))}]"
    return [named, *(word for word in arguments if word not in bare)]


def _check(overrides: Sequence[str], known: Collection[str], *, sweep: bool) -> None:
    """Refuse what Hydra would take in another sense than is meant, or refuse at length."""
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        if key == "hydra.job.name" and "/" in value:
            raise UserError(f"{override}: a job's name becomes a file's, which holds no /")
        # Hydra would add it, though nothing reads it.
        is_known = key in ("", *known, *GROUPS) or re.match(r"hydra\b", key)
        if override[:1] == "+" and not is_known:
            raise UserError(unknown_key(key, known))
        if key in GROUPS and (value == "null" or value[:1] in ("[", "{")):
            raise UserError(f"{override}: give one name, or leave it out; see --help")
        if override and not key.partition("@")[0]:
            raise UserError(f"cannot understand {override!r}; write KEY=VALUE")
        is_swept = len(split(value)) > 1 or SWEEP_FUNCTION.fullmatch(value)
        if sweep and key == "output" and value != "null" and not is_swept:
            raise UserError(
                f"all jobs of a sweep would write {value}; leave output= out, and each has its own"
            )


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
    return [
        (prefix + key, _written(values[key]), _first_sentence(said.get(key, "")))
        for key in (field.name for field in fields(schema) if not is_dataclass(field.type))
    ]


def _table(rows: Sequence[Row]) -> str:
    """Lay out keys and values on the left, meanings on the right."""
    column = max(len(left) for key, value, _ in rows if len(left := f"{key}={value}") <= LONGEST)
    lines: list[str] = []
    for key, value, meaning in rows:
        left = textwrap.shorten(f"{key}={value}", WIDTH, placeholder="...")
        if len(left) > column:
            lines.append(left)
            left = ""
        begin, below = f"{left:<{column}}  ", " " * (column + 2)
        right = textwrap.wrap(meaning, WIDTH, initial_indent=begin, subsequent_indent=below)
        lines += right or [left]
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
