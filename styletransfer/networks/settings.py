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
    """Path of the style image; or several paths, [a.jpg,b.jpg], or a folder of style images, for
    one network that knows all these styles and can blend them."""
    network: str = choice("small", "tiny", "full")
    """Width and depth of the network: tiny, small, or full as in Johnson et al. 2016."""
    start: str | None = path("auto", words=("auto",))
    """Initial weights: the path of a network of the same layout; null for random weights; auto for
    the shipped network painters, or for random weights if the layout of painters differs."""
    pictures: str = path(str(ASSETS / "content"))
    """Folder of photographs; the training pictures are crops of them."""
    steps: int = number(1200, "[1, inf)")
    """Training steps in all; the learning rate falls to zero over them. A network with random
    weights needs several times as many steps."""
    batch: int = number(1, "[1, 1024]")
    """Pictures per step, of all processes together. Default: in equal time, one large picture
    gives a better network than several small ones (docs/networks.md)."""
    crop: int = 384
    """Side of a training picture in pixels; a multiple of 4."""
    style_size: int = number(512, "[1, inf)")
    """Longer side of the style image in pixels; its strokes keep their size in the pastiches."""
    learning_rate: float = number(2e-3, "(0, 1]")
    """Largest learning rate of AdamW: about the change of each weight in a step; at most 1."""
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
    """Dtype of the features: auto, bfloat16, float32 or float64. The network uses float64
    with float64, else float32."""
    checkpoint_every: float = number(60.0, "[0, inf)")
    """Shortest time in seconds between two checkpoints; 0 saves only the last checkpoint."""
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    loss_mode: LossModeConfig = field(default_factory=LossModeConfig)
    objective: ObjectiveConfig = field(default_factory=lambda: ObjectiveConfig(content_weight=0.8))
    """The losses, as for train. Default: a larger content weight, as content is learned last."""


@dataclass
class ApplyConfig:
    """These are the settings of `scripts/apply.py`, which paints with a style network."""

    network: str = path("auto", words=("auto",))
    """A file that train_network has written, or a network that ships: oil; painters, which knows
    six styles; or any, which takes its style from a picture. auto is any if style is a picture,
    else oil."""
    input: str = path(MISSING, piped=True)
    """Path of a picture, a film or a .tar archive of pictures; or of a folder of these, also in
    inner folders; - is a picture on standard input."""
    output: str | None = path(None, written=True, piped=True)
    """Path of the pastiche; its extension chooses the format; - is a PNG on standard output. For a
    folder, a folder of pastiches, or a film of 25 frames per second. Default: in the current
    folder, named after the input and the network: photo_oil.jpg."""
    recipe: bool = True
    """Write into each picture or film how it was made, as `train` does."""
    style: Any = field(default=None, metadata=PATHS | {"named": True})
    """Name of one of the network's styles. For a network that knows any style, the path of a style
    image, several paths, [a.jpg,b.jpg], or a folder."""
    style_weights: list[float] = number([], "[0, inf)")
    """Weight of each of the network's styles, or of each style image; only ratios matter. Empty
    for equal weights."""
    style_size: int = number(512, "[1, inf)")
    """Longer side of style images in pixels; their strokes keep their size in the pastiches."""
    strength: float = number(1.0, "[0, 2]")
    """Strength of a style image: from 0 (the picture does not change) to 1; up to 2 exaggerates the
    style, and the picture becomes less clear."""
    parts: int = number(1, "[1, inf)")
    """For a folder: number of parts into which its files are divided. Several jobs can paint one
    part each, into one output. The path of a file decides in which part it is."""
    part: int = field(default=0, metadata={"interval": "[0, inf)", "divides": True})
    """For a folder in parts: the number of the part that is painted, from 0. To paint all of them:
    -m parts=4 'part=range(0,4)' hydra/launcher=joblib."""
    random: bool = False
    """For a folder: paint each file in the style of a random style image, with a random strength
    between least_strength and strength. Both depend on seed and the file's path. In the output,
    manifest.csv lists them; for a part, manifest.PART-of-PARTS.csv does."""
    least_strength: float = number(0.5, "[0, 1]", idle="without random=true")
    """For random, the smallest strength."""
    seed: int = number(0, "[0, inf)", idle="without random=true")
    """For random, the seed of all random choices."""
    size: int = number(0, "[0, inf)")
    """Longer side of the pastiches in pixels; 0 for the size of the input."""
    color: str = choice("style", "content_luminance")
    """Source of the colours: style; or content_luminance, the picture's colours with the
    pastiche's lightness."""
    color_strength: float = number(1.0, "[0, 1]", idle="with color=style")
    """Strength of color=content_luminance, from 0 (none) to 1."""
    steady: float = number(0.0, "[0, 1)")
    """For films, against flicker: weight with which the previous painted frame, warped by the
    motion, is mixed into each painted frame; from 0 (none) to below 1."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = choice("auto", "bfloat16", "float32")
    """Dtype of the convolutions: auto, bfloat16 or float32; norms use float32 statistics."""
    format: str = choice("text", "json")
    """What is printed: text, or json (one line of JSON, with the path and seconds)."""


@dataclass
class ExportConfig:
    """These are the settings of `scripts/export.py`, which converts a style network."""

    network: str = path("any")
    """A file that train_network has written, or the name of a network that ships."""
    output: str = path(MISSING, written=True)
    """Path of the file, NAME.onnx; for target=web, of a new folder."""
    target: str = choice("onnx", "web")
    """onnx (a file), or web (a folder for any static web host, with a page that paints)."""
    runtime: str | None = path(None, idle="without target=web")
    """For target=web: folder of the npm package. Default: node_modules/onnxruntime-web."""
