"""Pictures and films by optimisation, and what becomes of their runs."""

from dataclasses import dataclass, field
from typing import Any

from styletransfer.config.groups import (
    ASSETS,
    MISSING,
    NUMBERS,
    PATHS,
    FeaturesConfig,
    LossModeConfig,
    ObjectiveConfig,
    OptimizerConfig,
    choice,
    path,
)


@dataclass
class StyleTransferConfig:
    """One pastiche."""

    content: str = path(str(ASSETS / "content" / "coffee.jpg"), swept=True)
    """Path of the content image. A folder, or a pattern such as photos/*.jpg, is a sweep: a run for
    each of its pictures. WIDTH:HEIGHT, such as 4:3, is a grey one of that shape, for a texture."""
    style: Any = field(default=str(ASSETS / "style" / "oil.jpg"), metadata=PATHS)
    """Path of the style image; or several, [a.jpg,b.jpg]; or a folder of them."""
    style_weights: list[float] = field(default_factory=list)
    """How much of each style; only their ratios matter. Empty for equal parts."""
    style_scale: Any = field(default=1.0, metadata=NUMBERS)
    """Longer side of the style image as a factor of the pastiche's: larger for broader strokes. One
    number, or one for each style."""
    style_rotation: Any = field(default=0.0, metadata=NUMBERS)
    """Degrees by which the style image is turned counterclockwise. One number, or one for each."""
    style_detail: str | None = path(None)
    """Path of a picture from which the fine texture comes, by objective.detail_layers."""
    content_regions: Any = field(default=None, metadata=PATHS)
    """Label picture in flat colours, one for each region of the content image; or a list of grey
    masks, white inside, one for each region."""
    style_regions: Any = field(default=None, metadata=PATHS)
    """The same for the style image: regions of one colour, or masks in one order, belong together.
    With several styles, one label picture for each."""
    region_styles: dict[Any, int] = field(default_factory=dict)
    """Which style paints which region: {red:1,blue:2} by the colours of the label picture, or by
    the masks' names; 1 is the first style."""
    protect: str | None = path(None)
    """Grey mask: where it is white, the pastiche is the content image."""
    color: str = choice("style", "content_palette", "content_luminance")
    """Whose colours: style; content_palette (the style is recoloured beforehand, to the mean and
    covariance of the content's colours); or content_luminance (the content's colours, under the
    pastiche's lightness). Nearest to Gatys et al. 2016, "Preserving Color in Neural Artistic Style
    Transfer", but in OKLab."""
    color_strength: float = 1.0
    """How far color= goes beyond style: 0 to 1."""
    output: str | None = path(None, written=True)
    """Where the pastiche goes; the extension chooses the format. Default: the run folder."""
    size: int = 512
    """Longer side of the pastiche in pixels."""
    steps: int = 100
    """Optimiser steps in all, each one evaluation. Up to three scales share them evenly; of more
    the finest has 0.42 of them."""
    scales: int = 0
    """Levels of the pyramid, each half the next; 1 for one scale, 0 for all from 128 pixels up."""
    init: str = path("content", words=("content", "style", "noise"))
    """Where the optimisation starts: content, style, noise, or the path of a picture."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = choice("auto", "bfloat16", "float32", "float64")
    """Of the network: auto, bfloat16, float32 or float64. The picture is at least float32."""
    tile: str = "auto"
    """Exact tiling: auto (only where the whole picture does not fit memory), off, or the side of a
    tile in pixels. Only loss_mode=autograd_function can work in tiles."""
    seed: int = 0
    """Of the noise that `init=noise` starts from, and of random weights."""
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    loss_mode: LossModeConfig = field(default_factory=LossModeConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)


@dataclass
class ChangeConfig:
    """Other settings from some step on."""

    after: int = MISSING
    """So many steps are made by then, or all that are planned."""
    set: dict[str, Any] = field(default_factory=dict)
    """The keys with their new values, as in {objective.content_weight:0.5,style:b.jpg}."""


@dataclass
class TrainConfig(StyleTransferConfig):
    """`scripts/train.py`."""

    changes: list[ChangeConfig] = field(default_factory=list)
    """What changes on the way: [{after:40,set:{objective.content_weight:0.5}}]. The scale at hand
    then begins anew from the best picture so far."""
    snapshot_every: int = 0
    """Save the picture every so many steps; 0 saves none."""
    checkpoint_every: float = 60.0
    """Save a checkpoint in the run folder at most every so many seconds; 0 saves none."""
    stop_after: int = 0
    """Stop after so many steps, as Ctrl-C would, and keep the picture of that moment; 0 for never.
    resume=FOLDER goes on from there."""
    resume: str | None = path(None)
    """A run folder, to go on there with that run's own settings; or auto, to go on if this run's
    own folder, as hydra.run.dir=FOLDER names it, holds a checkpoint."""
    dry_run: bool = False
    """Print the plan, with estimated memory and time, and write nothing."""


@dataclass
class CompareConfig(StyleTransferConfig):
    """`scripts/compare.py`."""

    output: str | None = path(None, written=True)
    """Where a copy of the overview goes; the extension chooses the format. Default: nowhere."""
    loss_mode: LossModeConfig = field(default_factory=lambda: LossModeConfig("loss_attribute"))
    """The reference that all modes are compared with. Default: autograd's own gradient."""
    rounds: int = 5
    """Timed evaluations of each loss mode."""
    points: int = 4
    """Pictures along the reference's path, from start to end, at which gradients are compared; 2 to
    1000."""


@dataclass
class FilmConfig(StyleTransferConfig):
    """`scripts/film.py`: a film, painted frame by frame. Masks and label pictures lie still."""

    content: str = path(MISSING)
    """Path of the film, in any container that FFmpeg reads."""
    output: str | None = path(None, written=True)
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
class MixConfig:
    """`scripts/mix.py`: shares of a run's pastiche; the rest is its content."""

    run: str | None = path(None, positional=True)
    """The folder of a run of `train`; may be given without run=."""
    strength: float = 0.5
    """How much of the pastiche, from 0 (the content) to 1 (the pastiche)."""
    lightness_strength: float | None = None
    """How much of its lightness; null for as much as strength says."""
    color_strength: float | None = None
    """How much of its colours; null for as much as strength says."""
    output: str | None = path(None, written=True)
    """Where the mixture goes; the extension chooses the format. Default: the folder of the run."""


@dataclass
class GalleryConfig:
    """`scripts/gallery.py`: the runs to show."""

    folders: Any = field(default=None, metadata=PATHS | {"positional": True})
    """Run folders of `train`, sweeps, or folders that hold any of them; may be given without
    folders=, several too."""
    output: str | None = path(None, written=True)
    """Where the page goes: NAME.html. Default: gallery.html or blind.html in the first folder."""
    blind: str | None = None
    """A key that differs, such as experiment: the page shows two pictures at a time that differ in
    it alone, without saying which is which, and counts what is preferred."""


@dataclass
class StudioConfig:
    """`scripts/studio.py`: a page on this machine."""

    runs: Any = field(default=None, metadata=PATHS | {"positional": True})
    """More folders whose runs the page shows; may be given without runs=, several too."""
    port: int = 0
    """Of 127.0.0.1, where the page is served; 0 for any that is free."""
    open: bool = True
    """Open the page in the browser."""
    share: bool = False
    """Also answer in the private networks of this machine, for a phone or another room: prints that
    address as a QR code. Whoever has it may do what you may, and nothing is encrypted."""
