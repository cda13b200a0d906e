"""Loads what the doctor examines: FILE.py:NAME, and its inputs."""

import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from styletransfer.errors import UserError
from styletransfer.lessons.doctor.study import Study

SHAPE = re.compile(r"\d+(x\d+)*")


def load(target: str, inputs: Sequence[str], surrogates: Sequence[str] = ()) -> Study:
    """Return the study of FILE.py:NAME (UserError: there is none, or it cannot be called).

    `inputs`: shapes such as "4x3", which become seeded normal values, or the name of a function in
    the file, which returns the inputs as a tuple. The file's code is run. `surrogates`: names of
    Functions in the file.
    """
    path, _, name = target.rpartition(":")
    if not path or not Path(path).is_file():
        raise UserError(f"target={target}: give FILE.py:NAME of a file that is there")
    spec = importlib.util.spec_from_file_location("styletransfer_target", path)
    if spec is None or spec.loader is None:
        raise UserError(f"target={target}: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and torch.compile look for it there
    _tried(partial(spec.loader.exec_module, module), f"target={target}: {path} fails")
    found = _named(module, name)
    if isinstance(found, type) and issubclass(found, nn.Module):
        found = _tried(found, f"target={target} cannot be called without arguments")
    for each in surrogates:
        _named(module, each)
    return Study(found, _inputs(module, inputs), name, surrogates)


def _tried(call: Callable[[], Any], fails: str) -> Any:
    """Return the result of a call (UserError: it raises an error)."""
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return call()
    except Exception as error:
        raise UserError(f"{fails}: {type(error).__name__}: {error}") from error


def _named(module: ModuleType, name: str) -> Any:
    """Return what a name means in a module (UserError: nothing, or nothing that is callable)."""
    found = getattr(module, name, None)
    if not callable(found):
        raise UserError(f"{module.__file__} has no Function, module or function {name!r}")
    return found


def _inputs(module: ModuleType, words: Sequence[str]) -> list[Any]:
    """Return the inputs that the words name."""
    generator = torch.Generator().manual_seed(0)
    found: list[Any] = []
    for word in words:
        if SHAPE.fullmatch(word):
            shape = [int(side) for side in word.split("x")]
            made = torch.randn(shape, generator=generator, dtype=torch.float64)
        else:
            fails = f"inputs={word} cannot be called without arguments"
            made = _tried(_named(module, word), fails)
        found += made if isinstance(made, tuple | list) else [made]
    return found
