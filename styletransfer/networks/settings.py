"""Settings of the commands for style networks: `train_network`, `apply` and `export`."""

from dataclasses import dataclass, field
from typing import Any

from styletransfer.settings import (
    ASSETS,
    MISSING,
    PATHS,
    FeaturesConfig,
    LossModeConfig,
    ObjectiveConfig,
    choice,
    number,
    path,
)


@dataclass
class TrainNetworkConfig:
    """These are the settings of `scripts/train_network.py`, which trains a style network."""

    style: Any = field(default=str(ASSETS / "style" / "oil.jpg"), metadata=PATHS)
    """Path of the style image; or several, [a.jpg,b.jpg], or a folder of them, for one network that
    knows them all and can blend them."""
    network: str = choice("small", "tiny", "full")
    """Width and depth of the network: tiny, small, or full as in Johnson et al. 2016."""
    start: str | None = path("auto", words=("auto",))
    """Initial weights: the path of a network of the same layout; null for random weights; auto for
    the network that ships with the project, or random weights if its layout differs."""
    pictures: str = path(str(ASSETS / "content"))
    """Folder of photographs; the training pictures are crops of them."""
    steps: int = number(1200, "[1, inf)")
    """Training steps in all; the learning rate falls to zero over them. From random weights, give
    it several times as many."""
    batch: int = number(1, "[1, 1024]")
    """Pictures per step, of all processes together. Default: in equal time, one large picture
    gives a better network than several small ones (docs/networks.md)."""
    crop: int = 384
    """Side of a training picture in pixels; a multiple of 4."""
    style_size: int = number(512, "[1, inf)")
    """Longer side of the style image in pixels: strokes are as large in the pastiches."""
    learning_rate: float = number(2e-3, "(0, 1]")
    """Peak learning rate of AdamW; at most 1, since AdamW changes each weight by about as much."""
    averaging: float = number(0.99, "[0, 1)")
    """Decay per step of the running mean of weights that becomes the result; 0 turns it off."""
    preview: str = path(str(ASSETS / "content" / "coffee.jpg"))
    """Path of a picture that is painted every preview_every steps, to show the progress."""
    preview_every: int = number(100, "[1, inf)")
    """Steps between two previews."""
    seed: int = number(0, "[0, inf)")
    """Seed of all random numbers."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = choice("auto", "bfloat16", "float32", "float64")
    """Dtype of the features: auto, bfloat16, float32 or float64. The network uses float32 or
    float64."""
    checkpoint_every: float = number(60.0, "[0, inf)")
    """Shortest time between two checkpoints in seconds; 0 saves none but the last."""
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    loss_mode: LossModeConfig = field(default_factory=LossModeConfig)
    objective: ObjectiveConfig = field(default_factory=lambda: ObjectiveConfig(content_weight=0.8))
    """The losses, as for train. Default: a larger content weight, since networks learn it last."""


@dataclass
class ApplyConfig:
    """These are the settings of `scripts/apply.py`, which paints with a style network."""

    network: str = path("auto", words=("auto",))
    """A file that train_network has written, or a network that ships: oil; painters, which knows
    six styles; or any, which takes its style from a picture. auto is any if style is a picture,
    else oil."""
    input: str = path(MISSING)
    """Path of a picture or a film, or of a folder with all that is below it."""
    output: str | None = path(None, written=True)
    """Path of the pastiche, whose extension chooses the format; or a folder for all pastiches.
    Default: in the current folder, named after the input and the network: photo_oil.jpg."""
    recipe: bool = True
    """Write into a picture file how it was made, as `train` does."""
    style: Any = field(default=None, metadata=PATHS | {"named": True})
    """One of the network's styles, by its name; for a network that knows any style, path of the
    image, or several, [a.jpg,b.jpg]."""
    style_weights: list[float] = number([], "[0, inf)")
    """Weight of each of the network's styles, or of each style image; only ratios matter. Empty
    for equal weights."""
    style_size: int = number(512, "[1, inf)")
    """Longer side of style images in pixels: strokes are as large in the pastiches."""
    strength: float = number(1.0, "[0, 1]")
    """Strength of a style image: from 0 (the picture does not change) to 1."""
    random: bool = False
    """For a folder: paint each file in one style image, with a strength between least_strength and
    strength, both random, by seed and the file's name; manifest.csv in the output lists them."""
    least_strength: float = number(0.5, "[0, 1]")
    """For random, the smallest strength."""
    seed: int = number(0, "[0, inf)")
    """For random, the seed of all random choices."""
    size: int = number(0, "[0, inf)")
    """Longer side of the pastiches in pixels; 0 for that of each picture."""
    color: str = choice("style", "content_luminance")
    """Source of the colours: style; or content_luminance, the picture's colours with the
    pastiche's lightness."""
    color_strength: float = number(1.0, "[0, 1]")
    """Strength of color=content_luminance, from 0 (none) to 1."""
    steady: float = number(0.0, "[0, 1)")
    """For films: share of the previous frame, warped by the motion, in each frame, against
    flicker; from 0 (none) to below 1."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = choice("auto", "bfloat16", "float32")
    """Dtype of the convolutions: auto, bfloat16 or float32; norms use float32 statistics."""


@dataclass
class ExportConfig:
    """These are the settings of `scripts/export.py`, which converts a style network."""

    network: str = path("any")
    """A file that train_network has written, or the name of a network that ships."""
    output: str = path(MISSING, written=True)
    """The file to write, with the extension .onnx; for target=web, a new folder. For a network for
    any style, NAME.style.onnx is also written, which computes its style input from a painting."""
    target: str = choice("onnx", "web")
    """onnx, a file; or web, a folder with a page that paints, for any static web host."""
    runtime: str | None = path(None)
    """For target=web, the folder of the npm package. Default: node_modules/onnxruntime-web."""
