"""Parses a command's arguments: KEY=VALUE words, and the flags in FLAGS."""

import argparse
import os
import shlex
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from styletransfer.errors import UserError
from styletransfer.settings.keys import MISSING
from styletransfer.settings.schemas import (
    GROUPS,
    expanded,
    keys,
    keys_marked,
    mapping_keys,
    unknown_key,
)
from styletransfer.settings.values import quoted, split

FLAGS = (
    *("-h", "--help", "-m", "--multirun", "-c", "--cfg"),
    *("--resolve", "-cd", "--config-dir"),
)


class Arguments(argparse.Namespace):
    """Arguments is a parsed command line: its KEY=VALUE words, and one attribute per flag."""

    overrides: list[str]  # words KEY=VALUE; a list of pictures replaces a folder of pictures
    help: bool  # print the help and exit
    cfg: str | None  # print this part of the config and exit: job, hydra or all
    resolve: bool  # with `cfg`: replace interpolations ${...} by their values
    config_dir: str | None  # folder with the user's own presets
    multirun: bool  # run one job for each combination of values


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see --help")


def parse(argv: Sequence[str], schema: type[Any]) -> Arguments:
    """Parse a command's words by its settings class `schema` (UserError if a word is wrong)."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("overrides", nargs="*")
    for flags in (("-h", "--help"), ("-m", "--multirun"), ("--resolve",)):
        parser.add_argument(*flags, action="store_true")
    parser.add_argument("-c", "--cfg", choices=("job", "hydra", "all"))
    parser.add_argument("-cd", "--config-dir")
    for word, following in zip(argv, [*argv[1:], "VALUE"], strict=False):
        flag, _, value = word.partition("=")
        if flag[:1] == "-" and flag not in FLAGS:
            raise UserError(_unknown_flag(flag, value or following, schema))
    arguments = parser.parse_intermixed_args(list(argv), Arguments())
    typed = _with_positional_key(arguments.overrides, schema)
    for word in typed:
        _check(word, schema)
    sweep = arguments.multirun or "hydra.mode=MULTIRUN" in typed
    words = [each_picture(word, keys_marked(schema, "swept"), sweep=sweep) for word in typed]
    arguments.overrides, arguments.multirun = words, sweep or words != typed
    return arguments


def _unknown_flag(flag: str, value: str, schema: type[Any]) -> str:
    """Return a message about an unknown flag; the flag may be a key that was typed with dashes."""
    if flag == "--version":
        return "--version stands alone: styletransfer --version"
    names = [name for name, _ in keys(schema)]
    near = get_close_matches(flag.strip("-").replace("-", "_"), [*names, *GROUPS], 1, 0.65)
    advice = f"; keys take no dash: {shlex.quote(f'{near[0]}={value}')}" if near else ""
    return f"unknown flag {flag}; see --help{advice}"


def each_picture(override: str, keys: Collection[str], *, sweep: bool) -> str:
    """Return the word KEY=VALUE; if KEY is in `keys`, replace each folder by its pictures.

    The pictures are separated by commas, so Hydra runs one job for each. If `sweep`, a comma in the
    given VALUE also separates two values; otherwise it is a part of the file name.
    (UserError if a folder holds no picture.)
    """
    key, equals, value = override.partition("=")
    if not equals or key not in keys:
        return override
    from styletransfer.formats.folders import in_folder, picture_extensions

    names: list[str] = []
    for name in split(value) if sweep else [value]:
        folder = expanded(name)
        found = list(map(quoted, in_folder(folder))) if os.path.isdir(folder) else [name]
        if not found:
            known = ", ".join(picture_extensions())
            raise UserError(f"{override}: there is no picture in that folder ({known})")
        names += found
    return f"{key}={','.join(names)}"


def _with_positional_key(arguments: Sequence[str], schema: type[Any]) -> list[str]:
    """Return the words, with KEY= before each word without a key; KEY is the positional key.

    A word with "=" that names an existing file or folder counts as a word without a key. A command
    without a positional key gets the words unchanged. (UserError if a word without a key cannot be
    used.)
    """
    bare = [word for word in arguments if word and ("=" not in word or os.path.exists(word))]
    positional = keys_marked(schema, "positional")
    _check_spaces(arguments)
    if not positional or not bare:
        _check_names(bare, arguments, schema)
        return list(arguments)
    (key,) = positional
    if any(word.startswith(f"{key}=") for word in arguments):
        raise UserError(f"cannot understand {bare[0]!r} beside {key}=; leave one of them out")
    if bare[1:]:
        raise UserError(f"cannot understand {bare[1]!r} beside {bare[0]!r}; write KEY=VALUE")
    return [f"{key}={bare[0]}", *(word for word in arguments if word not in bare)]


def _check_spaces(arguments: Sequence[str]) -> None:
    """Raise UserError if KEY=VALUE was typed with spaces, as several words."""
    for before, word, after in zip(["", *arguments], arguments, [*arguments[1:], ""], strict=False):
        if word[0:1] == "=" and before:
            key, value = before, word[1:] or after
        elif word[-1:] == "=" and after and "=" not in after and after[0] != "-":
            key, value = word[:-1], after
        else:
            continue
        one = shlex.quote(f"{key}={value}")
        raise UserError(f"KEY=VALUE is one word, without spaces around =: {one}")


def _check_names(bare: Sequence[str], arguments: Sequence[str], schema: type[Any]) -> None:
    """Raise UserError if files were typed without keys; the message suggests keys."""
    bare = [word for word in bare if word[0] not in "~-"]
    if not any(os.path.exists(word) or os.path.splitext(word)[1] for word in bare):
        return
    files = [(key, field) for key, field in keys(schema) if field.metadata.get("path")]
    files.sort(key=lambda pair: pair[1].default != MISSING)  # first the keys that must be given
    known = [key for key, _ in files]
    free = [key for key in known if not any(word.startswith(f"{key}=") for word in arguments)]
    named = zip(free if {*free} & {*known[:2]} else known, bare, strict=False)
    advice = " ".join(shlex.quote(f"{key}={word}") for key, word in named)
    raise UserError(f"cannot understand {bare[0]!r}; say what it is: {advice or 'KEY=VALUE'}")


def _check(word: str, schema: type[Any]) -> None:
    """Raise UserError for a word that is no KEY=VALUE, or whose KEY or VALUE is not allowed."""
    name, equals, value = word.partition("=")
    key, known = name.lstrip("+~"), [key for key, _ in keys(schema)]
    if not key or not (equals or word[0] == "~"):
        raise UserError(f"cannot understand {word!r}; write KEY=VALUE")
    if key.startswith("hydra"):
        return
    if key not in (*known, *GROUPS) and key.rpartition(".")[0] not in mapping_keys(schema):
        raise UserError(unknown_key(key, known))
    if word[0] == "~":
        raise UserError(f"{word}: no key can be taken away; leave it out, or give {key}=VALUE")
    if key in GROUPS and (value in ("", "null") or value[0] in "[{"):
        raise UserError(f"{word}: give one name, or leave it out; see --help")
