"""Networks in training and at work: `distill`, `train_network`, `apply` and `export`."""

from dataclasses import dataclass, field
from typing import Any

from styletransfer.config.groups import (
    ASSETS,
    MISSING,
    PATHS,
    FeaturesConfig,
    LossModeConfig,
    ObjectiveConfig,
    path,
)


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
    start: str | None = path(None)
    """A student's file, whose convolutions are taken over where they fit: as wide as planned, and
    so is what they see. Null to fit them all."""
    frozen: int = 1
    """How many convolutions, from the first, are taken from `start` and not trained; 1 to 11."""
    trained: int | None = None
    """How many convolutions after these are trained; null for all. The rest are what `start` or the
    layer-by-layer fit makes them."""
    steps: int = 800
    """Training steps in all; the learning rate falls to zero over them."""
    batch: int = 16
    """Pictures of each update."""
    batches: int = 1
    """Batches that are made in each step before the student is updated."""
    passes: int = 1
    """How often a step goes over its batches, shuffled. The teacher and the frozen convolutions see
    each picture once only, so that a second pass is cheap where many are frozen."""
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
    content_gradient_weight: float = 0.0
    """Weight of the relative error of the content loss's gradient at the last frozen layer, on the
    student's own pictures; that layer has to come before relu4_2 and be as wide as VGG-19's. The
    activations of relu4_2 then count among the inner ones: of all channels of the teacher's content
    layer the gradient tells more than the few that the student could copy."""
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
    start: str | None = path("auto")
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
    stability: float = 0.0
    """Weight of the loss that two views of a picture, moved and grainy, are painted alike, for
    films; 0 for none."""
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

    network: str = path("oil")
    """A file that train_network has written, or a network that ships: oil, or painters, which knows
    six styles."""
    input: str = path(MISSING)
    """Path of a picture or a film, or of a folder with all that is below it."""
    output: str | None = path(None, written=True)
    """Where the pastiche goes, the extension chooses the format; or the folder for all of them.
    Default: into the current folder, named after the input and the network: photo_oil.jpg."""
    style: str | None = None
    """One of the network's styles, by its name."""
    style_weights: list[float] = field(default_factory=list)
    """How much of each of the network's styles instead; only their ratios matter. Empty for equal
    parts."""
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

    network: str = path(MISSING)
    """A file that train_network has written, or the name of a network that ships."""
    output: str = path(MISSING, written=True)
    """The file to write; ends in .onnx."""
