"""Settings of the lessons' commands."""

from dataclasses import dataclass, field

from styletransfer.settings import LossModeConfig, StyleTransferConfig, choice, number, path


@dataclass
class CompareConfig(StyleTransferConfig):
    """These are the settings of `scripts/compare.py`, which runs one job under every loss mode."""

    output: str | None = path(None, written=True, piped=True)
    """Path of a copy of comparison.png; the extension chooses the format; - is a PNG on standard
    output. Default: no copy."""
    loss_mode: LossModeConfig = field(default_factory=lambda: LossModeConfig("loss_attribute"))
    """The reference that all modes are compared with. Default: autograd's own gradient."""
    rounds: int = number(5, "[1, inf)")
    """Timed evaluations of each loss mode."""
    format: str = choice("text", "json")
    """What is printed: text, or json (one line of JSON, with paths, losses and seconds)."""


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
