"""The arguments of a command: Hydra's flags that we stand by, and KEY=VALUE with any file name."""

import argparse
import glob
import os
import re
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from styletransfer.errors import UserError
from styletransfer.settings.paths import EXTENSIONS, expanded, in_folder
from styletransfer.settings.schemas import (
    GROUPS,
    keys,
    keys_marked,
    mapping_keys,
    path_keys,
    unknown_key,
)
from styletransfer.settings.values import (
    HYDRA_FOLDERS,
    SWEEP_FUNCTION,
    quote_path,
    quoted,
    split,
)


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

    Raises:
        UserError: an unknown flag, one that lacks its value, a sweep into one output file, or a
            folder or pattern without pictures.
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

    Raises:
        UserError: there is no picture in the folder, or none that the pattern fits.
    """
    key, _, value = override.partition("=")
    if key not in keys or value[:1] in ("'", '"'):
        return override
    values = split(value) if sweep else [value]
    pictures = [_pictures(override, name) for name in values]
    if not any(pictures):
        return override
    names = [
        name
        for one, several in zip(values, pictures, strict=True)
        for name in ([one] if several is None else several)
    ]
    return f"{key}=" + ",".join(map(quoted, names))


def _pictures(override: str, value: str) -> list[str] | None:
    """Return the pictures of a folder or a pattern, in the order of their names; None for a file.

    Brackets are letters, as in any file name here.
    """
    name = expanded(value)
    if os.path.isdir(name):
        if names := in_folder(name):
            return names
        raise UserError(f"{override}: there is no picture in that folder ({', '.join(EXTENSIONS)})")
    if os.path.exists(name) or not re.search(r"[*?]", name):
        return None
    matching = sorted(glob.glob(name.replace("[", "[[]"), recursive=True))
    if pictures := [path for path in matching if path.lower().endswith(EXTENSIONS)]:
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
