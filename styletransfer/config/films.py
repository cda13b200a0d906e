"""How much painted films flicker: `flicker`."""

from dataclasses import dataclass, field
from typing import Any

from styletransfer.config.groups import MISSING, PATHS, path


@dataclass
class FlickerConfig:
    """`scripts/flicker.py`: how much painted films flicker."""

    input: str = path(MISSING)
    """Path of the film that they were painted from."""
    painted: Any = field(default=MISSING, metadata=PATHS)
    """Path of a painted film; or several, [a.mp4,b.mp4], which are compared with the first."""
    style: Any = field(default=None, metadata=PATHS)
    """Path of the style image, or several, to also measure the style loss under the bundled
    network; null for not."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
