"""The command `compare`: one job under every loss mode, side by side."""

from dataclasses import dataclass, field
from pathlib import Path

from styletransfer.settings import LossModeConfig, StyleTransferConfig, choice, number, path
from styletransfer.settings.registry import command


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


@command()
def compare(config: CompareConfig, folder: Path) -> None:
    """Run one job once under every loss mode: every way to attach losses to a network."""
    from styletransfer.lessons.compare import compare_modes

    compare_modes(config, folder)
