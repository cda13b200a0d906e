"""Settings of the command `film`."""

from dataclasses import dataclass

from styletransfer.settings import MISSING, StyleTransferConfig, number, path


@dataclass
class FilmConfig(StyleTransferConfig):
    """These are the settings of `scripts/film.py`, which paints a film by optimisation."""

    content: str = path(MISSING)
    """Path of a film in any container that FFmpeg reads, of an animated picture, or of a folder of
    frames."""
    keys: str | None = path(None, paired=True)
    """Folder of painted frames, instead of style and style_source: the last number in a painting's
    name is that of the frame that it paints, counted from 0. Where content is a folder of frames,
    it is the number in the frame's own name."""
    fps: float = number(25.0, "(0, 1000]")
    """Frames per second, for a folder of frames."""
    output: str | None = path(None, written=True)
    """Path of the painted film; the extension chooses the format. Default: in the run folder."""
    recipe: bool = True
    """Write into the film how it was made, as `train` does for pictures."""
    frame_steps: int = number(30, "[1, inf)")
    """Optimiser steps of each frame; the first frame, and the first after a cut, take `steps`."""
    temporal_weight: float = number(10.0, "[0, 1e6]")
    """Linear weight of the temporal loss of Ruder et al. 2016, which keeps a painted frame near
    the previous painted frame, warped by the motion; 0 for none."""
    independent: bool = False
    """Paint every frame as a separate picture, for comparison; the film then flickers."""
