"""`film`, which paints films by optimisation."""

from dataclasses import dataclass

from omegaconf import MISSING

from styletransfer.config.keys import path
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
