"""The command `gradcheck`, the doctor: `python scripts/gradcheck.py target=relu.py:MyReLU`."""

from dataclasses import dataclass, field
from pathlib import Path

from styletransfer.settings import path
from styletransfer.settings.registry import command


@dataclass
class GradcheckConfig:
    """These are the settings of `scripts/gradcheck.py`, which examines a Function of yours."""

    target: str | None = path(None)
    """FILE.py:NAME of a Function, a module or a function."""
    inputs: list[str] = field(default_factory=lambda: ["4x3"])
    """What the target is called with: shapes, such as [4x3,2x3], for random values in float64, or
    the name of a function in the file that returns the inputs as a tuple."""
    surrogates: list[str] = field(default_factory=list)
    """Functions in the file whose backward is meant to be another derivative than that of forward:
    straight-through, reversal, clipping, a surrogate gradient, or none for an output."""


@command()
def gradcheck(config: GradcheckConfig, folder: Path) -> int:
    """Examine a backward, target=FILE.py:NAME: is it right, and who calls it?"""
    from styletransfer.lessons.doctor.examine import report

    return report(config.target or "", config.inputs, config.surrogates)
