"""Settings of the commands that paint by optimisation beside `train`, or read finished runs."""

from dataclasses import dataclass, field
from typing import Any

from styletransfer.settings import (
    MISSING,
    PATHS,
    LossModeConfig,
    StyleTransferConfig,
    number,
    path,
)


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
class FilmConfig(StyleTransferConfig):
    """These are the settings of `scripts/film.py`, which paints a film by optimisation."""

    content: str = path(MISSING)
    """Path of the film, in any container that FFmpeg reads; or a folder of frames."""
    fps: float = number(25.0, "(0, 1000]")
    """Frames per second of a folder of frames."""
    output: str | None = path(None, written=True)
    """Path of the painted film; the extension chooses the format. Default: in the run folder."""
    recipe: bool = True
    """Write into the film how it was made, as `train` does."""
    frame_steps: int = number(30, "[1, inf)")
    """Optimiser steps of each frame, except the first frame and the first after a cut, which take
    `steps`."""
    temporal_weight: float = number(10.0, "[0, 1e6]")
    """Linear weight of the temporal loss of Ruder et al. 2016, which keeps a frame near the
    previous frame, warped by the motion; 0 for none."""
    independent: bool = False
    """Paint every frame as a separate picture, for comparison."""


@dataclass
class MixConfig:
    """These are the settings of `scripts/mix.py`, which mixes a pastiche with its content image."""

    run: str | None = path(None, positional=True)
    """The folder of a run of `train`; may be given without run=."""
    strength: float = number(0.5, "[0, 1]")
    """Share of the pastiche in the mixture, from 0 (the content) to 1 (the pastiche)."""
    lightness_strength: float | None = number(None, "[0, 1]")
    """The same for the lightness alone, from 0 to 1; null for the value of strength."""
    color_strength: float | None = number(None, "[0, 1]")
    """The same for the colours alone, from 0 to 1; null for the value of strength."""
    output: str | None = path(None, written=True)
    """Path of the mixture; the extension chooses the format. Default: in the run folder."""
    recipe: bool = True
    """Write into the picture how it was made, as `train` does."""


@dataclass
class InfoConfig:
    """These are the settings of `scripts/info.py`, which prints how a picture was made."""

    picture: str = path(MISSING, positional=True)
    """Path of a pastiche; may be given without picture=."""
    verify: bool = False
    """Paint the picture again, in a temporary folder, from inputs with the recipe's hashes, and
    print whether the file has the same bytes, or how far its pixels differ."""
    inputs: Any = field(default=None, metadata=PATHS)
    """For verify, inputs under any names, or folders of pictures. Pictures are also looked for by
    name in the current folder and beside the picture; list networks of your own here."""


@dataclass
class GalleryConfig:
    """These are the settings of `scripts/gallery.py`, which shows runs side by side on a page."""

    folders: Any = field(default=None, metadata=PATHS | {"positional": True})
    """Run folders of `train`, sweeps, or folders that hold any of them; may be given without
    folders=, several too."""
    output: str | None = path(None, written=True)
    """Path of the page, NAME.html. Default: gallery.html in the first folder."""


@dataclass
class StudioConfig:
    """These are the settings of `scripts/studio.py`, which serves a page to paint on."""

    port: int = number(0, "[0, 65535]")
    """Port of the page on 127.0.0.1; 0 for any free port."""
    open: bool = True
    """Open the page in the browser."""
    share: bool = False
    """Also serve the page in the private networks of this machine, for example to a phone, and
    print its address as a QR code. Who knows it can do what you can; nothing is encrypted."""
