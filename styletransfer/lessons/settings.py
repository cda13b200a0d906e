"""Settings of the command `compare`."""

from dataclasses import dataclass, field

from styletransfer.settings import LossModeConfig, StyleTransferConfig, number, path


@dataclass
class CompareConfig(StyleTransferConfig):
    """These are the settings of `scripts/compare.py`, which runs one job under every loss mode."""

    output: str | None = path(None, written=True)
    """Path of a copy of comparison.png; the extension chooses the format. Default: no copy."""
    loss_mode: LossModeConfig = field(default_factory=lambda: LossModeConfig("loss_attribute"))
    """The reference that all modes are compared with. Default: autograd's own gradient."""
    rounds: int = number(5, "[1, inf)")
    """Timed evaluations of each loss mode."""


@dataclass
class GradcheckConfig:
    """`scripts/gradcheck.py`, which checks every hand-written backward, has no settings."""
