"""Settings of the commands that paint by optimisation, and of those that read finished runs."""

from dataclasses import dataclass, field
from typing import Any

from styletransfer.settings.groups import (
    ASSETS,
    MISSING,
    PATHS,
    FeaturesConfig,
    LossModeConfig,
    ObjectiveConfig,
    OptimizerConfig,
    choice,
    number,
    path,
)


@dataclass
class StyleTransferConfig:
    """These are the settings of one pastiche. The defaults are those of experiment=classic; `train`
    has other defaults, in configs/train.yaml.
    """

    content: str = path(str(ASSETS / "content" / "coffee.jpg"), swept=True)
    """Path of the content image. A folder is a sweep: a run for each of its pictures. WIDTH:HEIGHT,
    such as 4:3, is a grey one of that shape, for a texture."""
    style: Any = field(default=str(ASSETS / "style" / "oil.jpg"), metadata=PATHS)
    """Path of the style image; or several, [a.jpg,b.jpg]; or a folder of them."""
    style_weights: list[float] = number([], "[0, inf)")
    """Weight of each style; only their ratios matter. Empty for equal weights."""
    style_scale: Any = number(1.0, "[0.05, 8]", several=True)
    """Longer side of the style image as a factor of the pastiche's: larger for broader strokes. One
    number, or one for each style."""
    style_rotation: Any = number(0.0, "(-inf, inf)", several=True)
    """Degrees by which the style image is turned counterclockwise. One number, or one for each."""
    style_detail: str | None = path(None)
    """Path of a picture that gives the fine texture, at objective.detail_layers."""
    content_regions: str | None = path(None)
    """Label picture of the content image: each region is painted in one flat colour."""
    style_regions: Any = field(default=None, metadata=PATHS)
    """Label picture of the style image: its regions give their style to the content's regions of
    the same colours. With several styles, one label picture for each."""
    region_styles: dict[Any, int] = field(default_factory=dict)
    """Style of each region: {red:1,blue:2}, with the colours of the label picture as keys; 1 is the
    first style."""
    protect: str | None = path(None)
    """Grey mask: where it is white, the pastiche is the content image."""
    color: str = choice("style", "style_palette", "content_palette", "content_luminance")
    """Source of the colours: style; style_palette (a and b of the content in OKLab, its colours
    without lightness, also first get the mean and covariance of the style's); content_palette (the
    style is first recoloured to the mean and covariance of the content's colours); or
    content_luminance (the content's colours with the pastiche's lightness). Follows Gatys et al.
    2016, "Preserving Color in Neural Artistic Style Transfer", but in OKLab."""
    color_strength: float = number(1.0, "[0, 1]")
    """Strength of color=style_palette, content_palette or content_luminance, from 0 (none) to 1."""
    output: str | None = path(None, written=True)
    """Path of the pastiche; the extension chooses the format. Default: in the run folder."""
    size: int = number(512, "[1, 1048576]")
    """Longer side of the pastiche in pixels."""
    steps: int = number(100, "[1, inf)")
    """Optimiser steps in all, each one evaluation. Up to three scales get equal shares, and the
    finest of more gets 0.42; where features are matched, the finest scale gets a quarter."""
    scales: int = number(0, "[0, inf)")
    """Levels of the pyramid, each half the next; 1 for one scale, 0 for all from 128 pixels up,
    or from 96 where features are matched."""
    init: str = path("content", words=("content", "style", "noise"))
    """Picture from which the optimisation starts: content, style, noise, or a path."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = choice("auto", "bfloat16", "float32", "float64")
    """Dtype of the network: auto, bfloat16, float32 or float64. The picture is at least float32."""
    tile: str = "auto"
    """Exact tiling: auto (only if the whole picture does not fit in memory), off, or the side of a
    tile in pixels. Only loss_mode=autograd_function can work in tiles."""
    seed: int = number(0, "[0, inf)")
    """Seed of the noise of `init=noise`, and of random weights."""
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    loss_mode: LossModeConfig = field(default_factory=LossModeConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)


@dataclass
class TrainConfig(StyleTransferConfig):
    """These are the settings of `scripts/train.py`: those of one pastiche, and those of its run."""

    recipe: bool = True
    """Write into the picture file how it was made: the command, with names of files but no folders,
    the version, and the SHA-256 of the inputs; `styletransfer info PICTURE` prints them."""
    snapshot_every: int = number(0, "[0, inf)")
    """Number of steps between two saved pictures; 0 saves none."""
    checkpoint_every: float = number(60.0, "[0, inf)")
    """Shortest time in seconds between two checkpoints in the run folder; 0 saves none."""
    stop_after: int = number(0, "[0, inf)")
    """Number of steps after which the run stops, as by Ctrl-C, and saves the picture; 0 for never.
    resume=FOLDER continues the run."""
    resume: str | None = path(None)
    """Folder of a run to continue with the settings of that run; or auto, to continue if the folder
    of this run, as hydra.run.dir=FOLDER names it, holds a checkpoint."""
    dry_run: bool = False
    """Print the plan, with estimated memory, and write nothing."""


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
    """Path of the painted film; the extension chooses the format, also .gif, .webp or .apng. A name
    such as out/%05d.png is a picture for each frame. Default: in the run folder."""
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
    name in the current folder and beside the picture; networks that do not ship only here."""


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
    print its address as a QR code. Anyone who has it can do what you can; nothing is encrypted."""
