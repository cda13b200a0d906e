"""Films: `film`, which paints them by optimisation, and `flicker`, which measures them."""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from styletransfer.config.keys import PATHS, path
from styletransfer.config.pictures import StyleTransferConfig


@dataclass
class FilmConfig(StyleTransferConfig):
    """`scripts/film.py`: a film, painted frame by frame. Masks and label pictures lie still."""

    content: str = path(MISSING)
    """Path of the film, in any container that FFmpeg reads."""
    output: str | None = path(None)
    """Where the painted film goes; the extension chooses the format. Default: the run folder."""
    frame_steps: int = 30
    """Optimiser steps of a frame that follows another; the first one, and the first after a cut,
    make `steps`."""
    temporal_weight: float = 10.0
    """Linear weight of the temporal loss of Ruder et al. 2016, which holds a frame to the one
    before it, moved along; 0 for none."""
    independent: bool = False
    """Paint every frame as a picture by itself, to compare with."""


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
