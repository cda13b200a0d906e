"""Declares the commands and finds them, without an import of their code.

A package declares its commands in its `commands.py`, one function for each command. The body of the
function imports the command's code. No other file lists the commands, so they disappear if their
package is deleted.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from inspect import get_annotations
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar, overload

from styletransfer.resources import PACKAGE, resource

if TYPE_CHECKING:
    from torch import Tensor

CONFIGS = resource("configs")
T = TypeVar("T")
# The code of a command: it takes the settings and the run folder, and may return an exit status.
Code = Callable[[Any, Path], int | None]


class Command:
    """A Command is a function with what Hydra and `--help` need to run it.

    Attributes:
        name: name of the command, of its function, and of its config file NAME.yaml in `folder`.
        summary: first line of the function's docstring, for `--help`.
        schema: dataclass of the settings: the annotation of the function's first parameter.
        folder: folder of the config file.
        shared: whether several processes of torchrun can share the command's work.
        torch: whether the code uses torch; torch is then imported, while signals wait.
        repeatable: whether `info` may call it with settings from a picture that a stranger made:
            it reads only what these settings name, and writes only `output`.
    """

    def __init__(
        self,
        code: Code,
        *,
        folder: Path = CONFIGS,
        shared: bool = False,
        torch: bool = True,
        repeatable: bool = False,
    ) -> None:
        self.code, self.name, self.module = code, code.__name__, code.__module__
        self.summary = (code.__doc__ or "").partition("\n")[0]
        self.schema: type[Any] = next(iter(get_annotations(code).values()))
        self.folder, self.shared = folder, shared
        self.torch, self.repeatable = torch, repeatable

    def __call__(self, config: Any, folder: Path) -> int | None:
        """Run the command with settings of its schema, in a run folder; return its exit status."""
        return self.code(config, folder)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Pickle the command by its name, for the jobs of a sweep in other processes."""
        return resolve_name, (f"{self.module}:{self.name}",)


@overload
def command(code: Code) -> Command: ...
@overload
def command(**options: Any) -> Callable[[Code], Command]: ...
def command(code: Code | None = None, **options: Any) -> Command | Callable[[Code], Command]:
    """Make a command of a function: `@command`, or `@command(shared=True)`, see `Command`."""
    return partial(Command, **options) if code is None else Command(code)


@cache
def offered(kind: type[T]) -> list[T]:
    """Return the objects of the class `kind` in all `commands.py` files of this package.

    Neither these files nor this function import torch.
    """
    rooms = ("", *sorted(f".{file.parent.name}" for file in PACKAGE.glob("*/commands.py")))
    modules = [importlib.import_module(f"styletransfer{room}.commands") for room in rooms]
    return [one for module in modules for one in vars(module).values() if isinstance(one, kind)]


@dataclass(frozen=True)
class FrameReader:
    """A FrameReader reads one frame of a film; a package's `commands.py` may define one."""

    #: (path of the film, number or time of the frame) -> (1, 3, H, W), float32, sRGB in [0, 1].
    read: Callable[[str, str], "Tensor"]


def commands() -> dict[str, Command]:
    """Return name -> command of `styletransfer NAME`, sorted by name."""
    return {one.name: one for one in sorted(offered(Command), key=lambda one: one.name)}
