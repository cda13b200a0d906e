"""Every setting: its unit, its default, and where the default comes from.

These dataclasses are the schema of the files under `configs/`: a misspelt key or a value of the
wrong type is an error before anything runs.
"""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from omegaconf import MISSING

from styletransfer.resources import resource

T = TypeVar("T")

ASSETS = resource("assets")

# Gatys et al. 2016: the layers at which styles and contents are compared.
STYLE_LAYERS = ("relu1_1", "relu2_1", "relu3_1", "relu4_1", "relu5_1")
CONTENT_LAYER = "relu4_2"

# One position of relu5_1 sees 156 pixels across: there whole objects of the style are compared, and
# at full weight they take the place of small faces (docs/looks.md). Every other layer counts 1.
STYLE_LAYER_FACTORS = {"relu5_1": 0.1}


def path(default: T, *, positional: bool = False) -> T:
    """Say that a key's value is a file name: the command line takes any, as it is typed.

    A positional one may be given without its key.
    """
    declared: T = field(default=default, metadata={"path": True, "positional": positional})
    return declared


# Of keys that hold one value or a list of them; see `each`.
NUMBERS = {"each": float}
PATHS = {"each": str, "path": True}


def each(value: Any) -> list[Any]:
    """Return the values of a key that holds one or more: a list, empty for None."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


@dataclass
class FeaturesConfig:
    """The network under which pictures are compared."""

    name: str = "bundled"
    """bundled (ships with the project), vgg19 or vgg16."""
    weights: str = path("pretrained")
    """pretrained, random, or the path of a .safetensors or .pth file."""
    pooling: str = "max"
    """max (as trained) or average (Gatys et al. 2016)."""
    padding: str = "replicate"
    """Of the first convolution: zeros (as trained) or replicate (no frame along the border)."""
    preprocessing: str = "imagenet"
    """imagenet (mean and standard deviation), or none (sRGB in [0, 1], as the 0.3 tutorial)."""


@dataclass
class LossModeConfig:
    """How losses reach the image's gradient."""

    name: str = "autograd_function"
    """fake_backward, loss_attribute or autograd_function."""


@dataclass
class ObjectiveConfig:
    """What a good picture is: weighted losses on named layers."""

    content_weight: float = 0.25
    """Linear weight of the content losses."""
    style_weight: float = 1.0
    """Linear weight of the style losses."""
    tv_weight: float = 0.0
    """Linear weight of the squared total variation of the picture."""
    style_loss: str = "gram"
    """How styles are compared: gram (Gatys et al. 2016), moments (mean and standard deviation of
    each channel) or wasserstein (mean and covariance)."""
    content_layers: list[str] = field(default_factory=lambda: [CONTENT_LAYER])
    """Layers of the content losses. Default: Gatys et al. 2016."""
    style_layers: list[str] = field(default_factory=lambda: list(STYLE_LAYERS))
    """Layers of the style losses. Default: Gatys et al. 2016."""
    content_layer_weights: list[float] = field(default_factory=list)
    """One factor per content layer; empty for 1 each."""
    style_layer_weights: list[float] = field(default_factory=list)
    """One factor per style layer; empty for 1 each, but 0.1 at relu5_1, which would lay whole
    objects of the style over faces."""
    normalization: str = "target"
    """target (each loss over its target's own mean square) or none (the tutorials' plain MSE)."""
    propagation: str = "average"
    """How a region reaches a layer's positions: average (by the share of the region in the pixels
    they stand for) or inside (only those that see nothing outside; Gatys et al. 2017)."""
    detail_layers: list[str] = field(default_factory=lambda: ["relu1_1", "relu2_1"])
    """Style layers that listen to style_detail instead of style. Default: Gatys et al. 2017."""


@dataclass
class OptimizerConfig:
    """Who moves the pixels."""

    name: str = "lbfgs"
    """lbfgs or adam, from torch.optim."""
    learning_rate: float = 1.0
    """L-BFGS: share of the quasi-Newton step. Adam: step size in sRGB units."""
    history: int = 20
    """L-BFGS: pairs of vectors kept; each costs twice the picture's memory."""
    preconditioner: float = 1.0
    """L-BFGS: exponent of the gains that even its coordinates out, see
    `styletransfer/optimize/preconditioner.py`; 0 for the bare pixels of the papers."""
    plateau: float = 0.001
    """L-BFGS: a scale ends early once ten steps lower the loss by less than this share; 0 for
    never."""
    averaging: float = 0.0
    """Decay per step of the running mean of pictures that becomes the result; 0 turns it off."""


@dataclass
class StyleTransferConfig:
    """One pastiche."""

    content: str = path(str(ASSETS / "content" / "coffee.jpg"))
    """Path of the content image."""
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
    color: str = "style"
    """Whose colours: style; content_palette (the style is recoloured beforehand, to the mean and
    covariance of the content's colours); or content_luminance (the content's colours, under the
    pastiche's lightness). Nearest to Gatys et al. 2016, "Preserving Color in Neural Artistic Style
    Transfer", but in OKLab."""
    color_strength: float = 1.0
    """How far color= goes beyond style: 0 to 1."""
    output: str | None = path(None)
    """Where the pastiche goes; the extension chooses the format. Default: the run folder."""
    size: int = 512
    """Longer side of the pastiche in pixels."""
    steps: int = 100
    """Optimiser steps in all, shared evenly by the scales; each is one evaluation."""
    scales: int = 0
    """Levels of the pyramid, each half the next; 1 for one scale, 0 for all from 128 pixels up."""
    init: str = path("content")
    """Where the optimisation starts: content, style, noise, or the path of a picture."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = "auto"
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
class TrainConfig(StyleTransferConfig):
    """`scripts/train.py`."""

    snapshot_every: int = 0
    """Save the picture every so many steps; 0 saves none."""
    checkpoint_every: float = 60.0
    """Save a checkpoint in the run folder at most every so many seconds; 0 saves none."""
    resume: str | None = path(None)
    """A run folder, to go on there with that run's own settings; or auto, to go on if this run's
    own folder, as hydra.run.dir=FOLDER names it, holds a checkpoint."""
    dry_run: bool = False
    """Print the plan, with estimated memory and time, and write nothing."""


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
    output: str | None = path(None)
    """Where the mixture goes; the extension chooses the format. Default: the folder of the run."""


@dataclass
class DistillConfig:
    """`scripts/distill.py`: all that a distillation's result depends on, beside its pictures."""

    teacher: FeaturesConfig = field(
        default_factory=lambda: FeaturesConfig(name="vgg19", padding="zeros")
    )
    """The network to imitate."""
    pictures: str | None = path(None)
    """A folder of real pictures to crop from, beside the procedural ones."""
    widths: list[list[int]] = field(
        default_factory=lambda: [
            [64, 32],
            [128, 64],
            [256, 128, 128, 128],
            [512, 192, 192, 192],
            [512],
        ]
    )
    """Channels of the student's convolutions, by block. Default: as wide as VGG-19 at each layer of
    a style loss, so that its Gram matrices are approximated entry by entry, and narrow between."""
    steps: int = 800
    """Training steps in all; the learning rate falls to zero over them."""
    batch: int = 16
    """Pictures a step."""
    crop: int = 128
    """Side of a training picture in pixels; a multiple of 16."""
    on_policy: float = 0.4
    """Share of a batch that optimisation under the student itself has produced; below 1."""
    replay_buffer: int = 48
    """Pictures under such optimisation."""
    photo_share: float = 0.4
    """Share of the other pictures that is cropped from real ones, where there are any."""
    learning_rate: float = 1.2e-4
    """Adam's, at its peak; at most 1. 4e-4 undid in 100 steps what the layer-by-layer fit had
    reached."""
    gram_weight: float = 0.5
    """Weight of the relative error of Gram matrices beside that of activations."""
    inner_weight: float = 0.2
    """Weight of the activations between the layers of style transfer."""
    fit_batches: int = 24
    """Batches for the layer-by-layer fit that training starts from."""
    seed: int = 0
    """Of everything random."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    look_every: int = 100
    """Steps between two looks at the held-out pictures."""
    checkpoint_every: float = 60.0
    """Save a checkpoint at most every so many seconds; 0 saves none but the last."""


@dataclass
class TrainNetworkConfig:
    """`scripts/train_network.py`: a network that paints in one pass."""

    style: Any = field(default=str(ASSETS / "style" / "oil.jpg"), metadata=PATHS)
    """Path of the style image; or several, [a.jpg,b.jpg], or a folder of them, for one network that
    knows them all and can blend them."""
    network: str = "small"
    """How wide and deep it is: tiny, small, or full as in Johnson and others, 2016."""
    pictures: str | None = path(str(ASSETS / "content"))
    """A folder of photographs to crop from, beside the procedural ones; null for none."""
    photo_share: float = 0.6
    """Share of the training pictures that is cropped from photographs, where there are any."""
    steps: int = 2000
    """Training steps in all; the learning rate falls to zero over them."""
    batch: int = 4
    """Pictures a step. Default: Johnson and others, 2016."""
    crop: int = 192
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
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    loss_mode: LossModeConfig = field(default_factory=LossModeConfig)
    objective: ObjectiveConfig = field(default_factory=lambda: ObjectiveConfig(content_weight=0.6))
    """As for a single picture. Default: more content than there, or faces are lost."""


@dataclass
class ApplyConfig:
    """`scripts/apply.py`: what a style network paints."""

    network: str = path(MISSING)
    """A file that train_network has written."""
    input: str = path(MISSING)
    """Path of a picture, or of a folder with all that is below it."""
    output: str = path(MISSING)
    """Where the pastiche goes, the extension chooses the format; or the folder for all of them."""
    style_weights: list[float] = field(default_factory=list)
    """How much of each of the network's styles; only their ratios matter. Empty for equal parts."""
    size: int = 0
    """Longer side of the pastiches in pixels; 0 for that of each picture."""
    color: str = "style"
    """Whose colours: style; or content_luminance, the picture's under the pastiche's lightness."""
    color_strength: float = 1.0
    """How far color= goes beyond style: 0 to 1."""
    strip: int = 0
    """Rows of a strip, for pictures that do not fit memory as a whole; 0 to have it chosen."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""


@dataclass
class CompareConfig(StyleTransferConfig):
    """`scripts/compare.py`."""

    output: str | None = path(None)
    """Where a copy of the overview goes; the extension chooses the format. Default: nowhere."""
    loss_mode: LossModeConfig = field(default_factory=lambda: LossModeConfig("loss_attribute"))
    """The reference that all modes are compared with. Default: autograd's own gradient."""
    rounds: int = 5
    """Timed evaluations of each loss mode."""
    points: int = 4
    """Pictures along the reference's path, from start to end, at which gradients are compared; 2 to
    1000."""


@dataclass
class PairConfig:
    """Two pictures to combine."""

    content: str = path(MISSING)
    """Path of the content image."""
    style: str = path(MISSING)
    """Path of the style image."""


@dataclass
class JudgeConfig:
    """`scripts/judge.py`: the networks, and the job on which VGG-19 judges them."""

    pairs: list[PairConfig] = field(default_factory=list)
    """Pictures, none of which the student was trained on."""
    bundled: FeaturesConfig = field(default_factory=FeaturesConfig)
    """The network under test; bundled.weights=PATH names another student."""
    vgg19: FeaturesConfig = field(
        default_factory=lambda: FeaturesConfig(name="vgg19", padding="zeros")
    )
    """The judge."""
    size: int = 256
    """Longer side of the pastiches in pixels."""
    steps: int = 100
    """Optimiser steps in all, for every network."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = "auto"
    """Of the networks that stylise; the judge works in float32."""
    seed: int = 0
    """Of the random network."""
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)


@dataclass
class BenchmarkConfig:
    """`scripts/benchmark.py`: what is measured against the plain loop of benchmarks/plain.py."""

    content: str = path(str(ASSETS / "content" / "coffee.jpg"))
    """Path of the content image."""
    style: str = path(str(ASSETS / "style" / "oil.jpg"))
    """Path of the style image."""
    sizes: list[int] = field(default_factory=lambda: [128, 256, 512])
    """Sides of the square pictures in pixels."""
    rounds: int = 5
    """Timed evaluations of each row, after one to warm up."""
    precisions: list[str] = field(default_factory=lambda: ["float32", "bfloat16"])
    """Of the network; the plain loop always works in float32."""
    plain_up_to: int = 512
    """Largest side in pixels at which the plain loop and the slower rows are run. Above it there
    is only autograd_function in the precision that precision=auto means."""
    tile: int = 0
    """Side of a tile in pixels; 0 for half the picture's side, at most 1024."""
    regions: list[int] = field(default_factory=list)
    """Also measure autograd_function with the picture divided into so many regions, of two styles
    in turn, such as [2,4]."""
    quality: bool = False
    """Also measure how soon the default job is as good as the plain loop."""
    quality_size: int = 512
    """Longer side in pixels of the pictures for that."""
    quality_steps: int = 300
    """Evaluations of the plain loop for that. Default: the tutorials'."""
    steps: int = 100
    """Steps of the default job for that."""
    default_job: bool = False
    """Also time `styletransfer train` as it is, process start included, `rounds` times."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    seed: int = 0
    """Of random weights."""
    features: FeaturesConfig = field(
        default_factory=lambda: FeaturesConfig(name="vgg19", weights="random", padding="zeros")
    )
    """Max pooling and ImageNet's preprocessing, which is what the plain loop has."""
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
