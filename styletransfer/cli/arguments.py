"""The arguments of a command: Hydra's flags that we stand by, and KEY=VALUE with any file name."""

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from styletransfer.cli.contents import each_picture
from styletransfer.errors import UserError
from styletransfer.settings.paths import HYDRA_FOLDERS, SWEEP_FUNCTION, quote_path, quoted
from styletransfer.settings.schemas import (
    GROUPS,
    keys,
    list_keys,
    mapping_keys,
    path_keys,
    positional_key,
    swept_keys,
    unknown_key,
)

INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


@dataclass(frozen=True)
class Arguments:
    """What a command line asks for.

    Attributes:
        overrides: KEY=VALUE in Hydra's grammar, file names quoted.
        flags: for Hydra.
        folders: that hydra.run.dir= and hydra.sweep.dir= name.
        config_dir: a folder with a person's own files, or None.
        help: whether to print the keys instead of running.
        version: whether to print the version instead.
        looks: whether Hydra prints something instead of running.
        multirun: whether there is one job for each combination of values.
    """

    overrides: list[str]
    flags: list[str]
    folders: list[str]
    config_dir: str | None
    help: bool
    version: bool
    looks: bool
    multirun: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see --help")


def parse(argv: Sequence[str], schema: type[Any]) -> Arguments:
    """Read a command line.

    Args:
        argv: without the program's name.
        schema: of the command's settings; says which values are file names.

    Raises:
        UserError: an unknown flag, one that lacks its value, a sweep into one output file, or a
            folder or pattern without pictures.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("overrides", nargs="*")
    for short, long in (("-h", "--help"), ("-m", "--multirun"), ("-r", "--run")):
        parser.add_argument(short, long, action="store_true")
    for flag in ("--version", "--hydra-help", "--resolve"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("-c", "--cfg", choices=("job", "hydra", "all"))
    parser.add_argument("-p", "--package")
    parser.add_argument("-cd", "--config-dir")
    parser.add_argument("-i", "--info", nargs="?", const="all", choices=INFO)
    for flag in argv:
        if flag in ("-cn", "-cp", "--config-name", "--config-path"):
            raise UserError(f"{flag}: a command has one config; --config-dir adds your own presets")
    found, unknown = parser.parse_known_intermixed_args(list(argv))
    if unknown:
        raise UserError(f"unknown flag {unknown[0]}; see --help")
    if found.run and found.multirun:
        raise UserError("--run is for one job, and --multirun for a sweep; give one of them")
    sweep = found.multirun or "hydra.mode=MULTIRUN" in found.overrides
    paths, lists = path_keys(schema), list_keys(schema)
    typed = _named(found.overrides, positional_key(schema), lists)
    given = [each_picture(each, swept_keys(schema), sweep=sweep) for each in typed]
    sweep = sweep or given != typed
    overrides = [quote_path(each, paths, lists, sweep=sweep) for each in given]
    overrides = [_opened(override, mapping_keys(schema)) for override in overrides]
    _check(given, [key for key, _ in keys(schema)], sweep=sweep)
    looks = bool(found.cfg or found.info or found.hydra_help)
    launcher = [each for each in given if each.startswith("hydra/launcher=")]
    if launcher and not sweep and not looks:
        raise UserError(f"{launcher[-1]} is for sweeps; add --multirun")
    return Arguments(
        [] if found.hydra_help else overrides,
        _hydra_flags(found),
        _folders(found.overrides),
        found.config_dir,
        help=found.help,
        version=found.version,
        looks=looks,
        multirun=sweep,
    )


def _opened(override: str, mappings: Sequence[str]) -> str:
    """Let a mapping take keys that no schema knows: to Hydra only ++KEY may add them."""
    key = override.partition("=")[0].partition(".")[0]
    return f"++{override}" if key in mappings else override


def _hydra_flags(found: argparse.Namespace) -> list[str]:
    given = ("multirun", "run", "hydra_help", "resolve")
    flags = [f"--{name.replace('_', '-')}" for name in given if getattr(found, name)]
    for name in ("cfg", "package", "config_dir", "info"):
        if getattr(found, name) is not None:
            flags.append(f"--{name.replace('_', '-')}={getattr(found, name)}")
    return flags


def _folders(overrides: Sequence[str]) -> list[str]:
    pairs = (override.lstrip("+").partition("=") for override in overrides)
    return [
        value.strip("'\"") for key, _, value in pairs if key in HYDRA_FOLDERS and "${" not in value
    ]


def _named(arguments: Sequence[str], key: str | None, lists: Sequence[str]) -> list[str]:
    """Put `key=` before the argument without a key, or before a folder's name that holds =.

    Several are put in brackets where the key is one of `lists`.
    """
    bare = [each for each in arguments if each and ("=" not in each or os.path.isdir(each))]
    if key is None or not bare:
        return list(arguments)
    if len(bare) == 1:
        return [f"{key}={each}" if each == bare[0] else each for each in arguments]
    if key not in lists:
        raise UserError(f"cannot understand {bare[1]!r} beside {bare[0]!r}; write KEY=VALUE")
    named = f"{key}=[{','.join(map(quoted, bare))}]"
    return [named, *(each for each in arguments if each not in bare)]


def _check(overrides: Sequence[str], known: Sequence[str], *, sweep: bool) -> None:
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        if key == "hydra.job.name" and "/" in value:
            raise UserError(f"{override}: a job's name becomes a file's, which holds no /")
        # Hydra would add it to each job of a sweep, where it is then refused.
        if override[:1] == "+" and not _is_known(key.partition("@")[0], known):
            raise UserError(unknown_key(key, known))
        if key in GROUPS and (value == "null" or value[:1] in ("[", "{")):
            raise UserError(f"{override}: give one name, or leave it out; see --help")
        if not key.partition("@")[0] and override:
            raise UserError(f"cannot understand {override!r}; write KEY=VALUE")
        if sweep and key == "output" and value != "null" and not _several(value):
            raise UserError(
                f"all jobs of a sweep would write {value}; leave output= out, and each has its own"
            )


def _is_known(key: str, known: Sequence[str]) -> bool:
    """Tell whether a key may be given with a +: one of the schema, a group's, or Hydra's own."""
    return not key or key in (*known, *GROUPS) or re.match(r"hydra\b", key) is not None


def _several(value: str) -> bool:
    """Tell whether a sweep takes more than one value from it: a comma that no quotes hold."""
    bare = re.sub("'[^']*'|\"[^\"]*\"", "", value)
    return "," in bare or SWEEP_FUNCTION.fullmatch(value) is not None
