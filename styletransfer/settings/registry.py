"""Declares the commands and finds them, without importing the code that does their work.

Each command is a file, PACKAGE/commands/NAME.py: the dataclass of its settings, and a function. The
body of the function imports the code that does the work, and torch with it. No other file lists the
commands, so a command disappears if its package is deleted. `train` alone is in `train.py`.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from inspect import get_annotations
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar

from styletransfer.resources import PACKAGE, resource

if TYPE_CHECKING:
    from torch import Tensor

CONFIGS = resource("configs")
T = TypeVar("T")
# The code of a command: it takes the settings and the run folder, and may return an exit status.
Code = Callable[[Any, Path], int | None]


class Command:
    """A Command is a function, together with what Hydra and `--help` have to know about it.

    Attributes:
        name: name of the command, and of its function.
        summary: first line of the function's docstring, for `--help`.
        schema: dataclass of the settings: the annotation of the function's first parameter.
        folder: folder of config files.
        file: the command's config file, NAME.yaml in `folder`; a command that needs no presets and
            no folder has none.
        shared: whether several processes of torchrun can share the command's work.
        torch: whether the code uses torch. If so, torch is imported before the code runs, and
            Ctrl-C during this import takes effect after it.
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
        self.folder, self.file, self.shared = folder, folder / f"{self.name}.yaml", shared
        self.torch, self.repeatable = torch, repeatable

    def __call__(self, config: Any, folder: Path) -> int | None:
        """Run the command with settings of its schema, in a run folder; return its exit status."""
        return self.code(config, folder)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Pickle the command by its name, for the jobs of a sweep in other processes."""
        return resolve_name, (f"{self.module}:{self.name}",)


def command(**options: Any) -> Callable[[Code], Command]:
    """Make a command of a function: `@command()`, or `@command(shared=True)`, see `Command`."""
    return partial(Command, **options)


@cache
def offered(kind: type[T]) -> list[T]:
    """Return the objects of the class `kind` in the files of all commands.

    Neither these files nor this function import torch.
    """
    files = [PACKAGE / "train.py", *sorted(PACKAGE.glob("*/commands/[!_]*.py"))]
    names = [".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in files]
    modules = map(importlib.import_module, names)
    return [one for module in modules for one in vars(module).values() if isinstance(one, kind)]


@dataclass(frozen=True)
class FrameReader:
    """A FrameReader reads one frame of a film; a command's file may define one."""

    #: (path of the film, number or time of the frame) -> (1, 3, H, W), float32, sRGB in [0, 1].
    read: Callable[[str, str], "Tensor"]


def commands() -> dict[str, Command]:
    """Return the commands of `styletransfer NAME` as a dict, sorted by name."""
    return {one.name: one for one in sorted(offered(Command), key=lambda one: one.name)}
