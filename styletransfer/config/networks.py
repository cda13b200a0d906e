"""Networks in training and at work: `train_network`, `apply` and `export`."""

from dataclasses import dataclass, field
from typing import Any

from styletransfer.config.groups import (
    ASSETS,
    MISSING,
    PATHS,
    FeaturesConfig,
    LossModeConfig,
    ObjectiveConfig,
    choice,
    path,
)


@dataclass
class TrainNetworkConfig:
    """`scripts/train_network.py`: a network that paints in one pass."""

    style: Any = field(default=str(ASSETS / "style" / "oil.jpg"), metadata=PATHS)
    """Path of the style image; or several, [a.jpg,b.jpg], or a folder of them, for one network that
    knows them all and can blend them."""
    any_style: bool = False
    """Learn the way from a painting to its style instead, from a folder of many, so that apply
    paints in the style of any picture; style_size is the side of what is seen of each."""
    kernels: bool = True
    """false keeps those of the network that it starts from, and learns scales and shifts alone."""
    network: str = "small"
    """How wide and deep it is: tiny, small, or full as in Johnson and others, 2016."""
    start: str | None = path("auto", words=("auto",))
    """Where its weights come from: the path of a network of the same layout; null for random ones;
    auto for the one that ships with the project, or random ones if its layout is another."""
    pictures: str | None = path(str(ASSETS / "content"))
    """A folder of photographs to crop from, beside the procedural ones; null for none."""
    photo_share: float = 0.8
    """Share of the training pictures that is cropped from photographs, where there are any."""
    steps: int = 1200
    """Training steps in all; the learning rate falls to zero over them. From random weights, give
    it several times as many."""
    batch: int = 1
    """Pictures a step, of all processes together. Default: in equal time one large picture taught
    more than several small ones (docs/networks.md)."""
    crop: int = 384
    """Side of a training picture in pixels; a multiple of 4."""
    style_size: int = 512
    """Longer side of the style image in pixels: strokes are as large in the pastiches."""
    learning_rate: float = 2e-3
    """AdamW's, at its peak; at most 1."""
    averaging: float = 0.99
    """Decay per step of the running mean of weights that becomes the result; 0 turns it off."""
    preview: str = path(str(ASSETS / "content" / "coffee.jpg"))
    """Path of a picture that is painted now and then, to see how far the network is."""
    preview_every: int = 100
    """Steps between two previews."""
    seed: int = 0
    """Of everything random."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = "auto"
    """Of the features: auto, bfloat16, float32 or float64. The network has at least float32."""
    checkpoint_every: float = 60.0
    """Save a checkpoint at most every so many seconds; 0 saves none but the last."""
    dry_run: bool = False
    """Measure what a step costs in each loss mode, print it, and write nothing."""
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    loss_mode: LossModeConfig = field(default_factory=LossModeConfig)
    objective: ObjectiveConfig = field(default_factory=lambda: ObjectiveConfig(content_weight=0.8))
    """As for a single picture. Default: more content than there, as a network learns it last."""


@dataclass
class ApplyConfig:
    """`scripts/apply.py`: what a style network paints."""

    network: str = path("auto", words=("auto",))
    """A file that train_network has written, or a network that ships: oil; painters, which knows
    six styles; or any, which takes its style from a picture. auto is any where style is one, else
    oil."""
    input: str = path(MISSING)
    """Path of a picture or a film, or of a folder with all that is below it."""
    output: str | None = path(None, written=True)
    """Where the pastiche goes, the extension chooses the format; or the folder for all of them.
    Default: into the current folder, named after the input and the network: photo_oil.jpg."""
    style: Any = field(default=None, metadata=PATHS)
    """One of the network's styles, by its name; for a network that knows any, path of the style
    image, or several, [a.jpg,b.jpg]."""
    style_weights: list[float] = field(default_factory=list)
    """How much of each of the network's styles, or of the style images; only their ratios matter.
    Empty for equal parts."""
    style_size: int = 512
    """Longer side of style images in pixels: strokes are as large in the pastiches."""
    content_regions: Any = field(default=None, metadata=PATHS)
    """Label picture of the input in flat colours, or a list of grey masks, as train takes them;
    what is in no region stays as it is."""
    region_styles: dict[Any, int] = field(default_factory=dict)
    """Which style paints which region: {red:1,blue:2}; 1 is the first of the styles."""
    strength: float = 1.0
    """How far a style image is followed: from 0, for the picture as it is, to 1."""
    size: int = 0
    """Longer side of the pastiches in pixels; 0 for that of each picture."""
    color: str = "style"
    """Whose colours: style; or content_luminance, the picture's under the pastiche's lightness."""
    color_strength: float = 1.0
    """How far color= goes beyond style: 0 to 1."""
    steady: float = 0.0
    """Of films: share of each frame that is the one before it, moved along, against flicker; from
    0, for none, to below 1."""
    strip: int = 0
    """Rows of a strip, for pictures that do not fit memory as a whole; 0 to have it chosen."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = "auto"
    """Of the convolutions: auto, bfloat16 or float32; norms take their statistics in float32."""


@dataclass
class ExportConfig:
    """`scripts/export.py`: a style network for programs that know nothing of this one."""

    network: str = path("any")
    """A file that train_network has written, or the name of a network that ships."""
    output: str = path(MISSING, written=True)
    """The file to write; ends in .onnx. Of a network for any style NAME.style.onnx is written, too,
    which makes of a painting what the network takes for its style. Of target=web, a new folder."""
    target: str = choice("onnx", "web")
    """onnx, a file; or web, a folder that any static host serves: a page that paints."""
    runtime: str | None = path(None)
    """For target=web, the folder of the npm package. Default: node_modules/onnxruntime-web."""
