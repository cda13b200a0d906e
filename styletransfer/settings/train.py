"""Settings of one pastiche, and of the command `train`; some are in groups such as `features`.

Each dataclass is the schema of a command's settings or of one group. Hydra checks keys and types
against the schema, so a misspelt key or a value of the wrong type is an error before a run begins.
"""

from dataclasses import dataclass, field
from typing import Any

from styletransfer.resources import resource
from styletransfer.settings.keys import PATHS, choice, names, number, path

ASSETS = resource("assets")

# Layers at which Gatys et al. 2016 compare styles, and the layer at which they compare contents.
STYLE_LAYERS = ("relu1_1", "relu2_1", "relu3_1", "relu4_1", "relu5_1")
CONTENT_LAYER = "relu4_2"
# Layers of the match losses, which move the features at each position of the pastiche towards the
# most similar features of the style: shallow layers for the texture of paint, deep ones for shapes.
MATCH_LAYERS = ("relu1_1", "relu2_1", "relu3_1", "relu4_1")

# Style layer -> factor on its style loss; the factor of all other layers is 1. The receptive field
# of relu5_1 is 156 pixels wide, which holds whole objects of the style image. With the factor 1,
# such objects replace small faces in the pastiche (docs/looks.md).
STYLE_LAYER_FACTORS = {"relu5_1": 0.1}

# Conditions under which keys have no effect, see `styletransfer.settings.idle`.
NO_CONTENT = "without objective.content_weight"
NO_MATCH = "without objective.match_weight"
NO_STYLE = "without objective.style_weight"
NOT_LBFGS = "without optimizer=lbfgs"


@dataclass
class FeaturesConfig:
    """These are the settings of the frozen network whose features the losses compare."""

    name: str = choice("bundled", "vgg19", "vgg16")
    """bundled (ships with the project), vgg19 or vgg16."""
    weights: str = path("pretrained", words=("pretrained", "random"))
    """pretrained, random, or the path of a .safetensors, .pth or .pt file."""
    pooling: str = choice("max", "average")
    """max (as trained) or average (Gatys et al. 2016)."""
    padding: str = choice("replicate", "zeros")
    """Padding of the first convolution: zeros (as trained) or replicate (no border frame)."""
    preprocessing: str = choice("auto", "imagenet", "caffe", "none")
    """imagenet (torchvision's mean and standard deviation), caffe (BGR from 0 to 255 minus its
    mean, for weights converted from Caffe), none (sRGB in [0, 1], as in the tutorial of PyTorch
    0.3), or auto: caffe for the two converted files that neural-style-pt downloads, else imagenet.
    """


@dataclass
class LossModeConfig:
    """This setting chooses how losses are computed and differentiated."""

    name: str = choice("autograd_function", "fake_backward", "loss_attribute", "tensor_hook")
    """fake_backward, loss_attribute, autograd_function or tensor_hook."""


@dataclass
class ObjectiveConfig:
    """These are the settings of the objective: the weighted sum of losses at named layers, and of
    the picture's total variation.
    """

    content_weight: float = number(0.25, "[0, inf)")
    """Weight of the content losses in the total loss."""
    style_weight: float = number(1.0, "[0, inf)")
    """Weight of the style losses in the total loss."""
    match_weight: float = number(0.0, "[0, inf)")
    """Weight of the match losses in the total loss; 0 turns them off. Their target at each position
    is the style's feature that is most similar to the content's (Kolkin et al. 2022)."""
    match_layers: list[str] = names(*MATCH_LAYERS, idle=NO_MATCH)
    """Layers of the match losses."""
    match_painted: float = number(0.5, "[0, 1]", idle=NO_MATCH)
    """With match losses: share of the pastiche so far, from 0 to 1, in the mixture with the content
    image for which similar style features are searched. The search at the coarsest size uses the
    content image alone, unless init is a path."""
    calm_freedom: float | None = number(None, "[0, 1]", idle=NO_MATCH)
    """With match losses: how freely the style paints calm places, such as a clear sky or a wall. 0:
    only match losses act there, and faces, walls and paper stay clean. 1: match losses weigh a
    quarter as much there, and additional style losses make stars and waves. Default: a number from
    0 to 1 that is larger for a busier style."""
    tv_weight: float = number(0.0, "[0, inf)")
    """Weight of the picture's squared total variation in the total loss."""
    style_loss: str = choice("gram", "moments", "wasserstein", idle=NO_STYLE)
    """Statistic by which styles are compared: gram (Gatys et al. 2016), moments (mean and standard
    deviation of each channel) or wasserstein (mean and covariance)."""
    content_layers: list[str] = names(CONTENT_LAYER, idle=NO_CONTENT)
    """Layers of the content losses. Default: Gatys et al. 2016."""
    style_layers: list[str] = names(*STYLE_LAYERS, idle=NO_STYLE)
    """Layers of the style losses. Default: Gatys et al. 2016."""
    content_layer_weights: list[float] = number([], "[0, inf)", idle=NO_CONTENT)
    """One factor per content layer; empty for 1 each."""
    style_layer_weights: list[float] = number([], "[0, inf)", idle=NO_STYLE)
    """One factor per style layer; empty for 1 each, but 0.1 at relu5_1, which would otherwise
    paint whole objects of the style over faces. With match losses, the factor of relu5_1 is also
    multiplied by a number that is smaller if the style hardly repeats itself."""
    normalization: str = choice("target", "none", idle=f"{NO_CONTENT} or objective.style_weight")
    """target (each content and style loss is divided by its value for features that are all zero;
    for this, a content image larger than 512 pixels is reduced to 512) or none (not divided, as in
    PyTorch's tutorials)."""
    seamless: bool = False
    """Make opposite edges of the pastiche fit, so that copies side by side show no seam."""
    detail_layers: list[str] = names("relu1_1", "relu2_1", idle="without style_detail")
    """Style layers whose targets come from style_detail, if given. Default: Gatys et al. 2017."""


@dataclass
class OptimizerConfig:
    """These are the settings of the optimiser that changes the pixels."""

    name: str = choice("lbfgs", "adam")
    """lbfgs, or adam (torch.optim.Adam)."""
    learning_rate: float = number(1.0, "(0, 1e6]")
    """L-BFGS: fraction of each quasi-Newton step, except the first step of a scale; Adam: step size
    in sRGB units. The limit 1e6 keeps float32 from overflow."""
    history: int = number(20, "[1, inf)", idle=NOT_LBFGS)
    """L-BFGS: number of pairs of vectors that are kept; a pair needs twice the picture's memory."""
    preconditioner: float = number(1.0, "[0, 8]", idle=NOT_LBFGS)
    """L-BFGS: exponent of the gains that make the curvatures of coarse and fine detail about equal,
    see `styletransfer/optimize/optimizers.py`; 0 for plain pixels, as in the papers. Up to the
    limit 8, float32 can hold the gains."""
    plateau: float = number(0.001, "[0, 1)", idle=NOT_LBFGS)
    """L-BFGS: a scale (one image size) ends early once ten steps lower its best loss by less than
    this fraction; 0 for never."""
    averaging: float = number(0.0, "[0, 1)")
    """Decay per step of the running mean of pictures that becomes the result; 0 turns it off."""


@dataclass
class StyleTransferConfig:
    """These are the settings of one pastiche, with the defaults of experiment=classic.

    The command `train` replaces some defaults by those in configs/train.yaml.
    """

    content: str = path(str(ASSETS / "content" / "coffee.jpg"), swept=True, piped=True)
    """Path of the content image. A folder starts a sweep: one run for each picture in the folder.
    film.mp4:120 is frame 120 of a film, counted from 0, and film.mp4:4.8s the one at 4.8 seconds.
    WIDTH:HEIGHT, such as 4:3, is a grey image of that shape, for a texture; - is standard input."""
    style: Any = field(default=str(ASSETS / "style" / "oil.jpg"), metadata=PATHS)
    """Path of the style image; or several paths, [a.jpg,b.jpg]; or a folder of style images."""
    style_source: Any = field(default=None, metadata=PATHS | {"paired": True})
    """Photograph of which the style image is a painting: the content is painted as it was, with the
    settings of experiment=paired unless another is named. With several styles, one for each."""
    style_weights: list[float] = number([], "[0, inf)")
    """Weight of each style; only the ratios matter. Empty for equal weights."""
    style_scale: Any = number(1.0, "[0.05, 8]", several=True)
    """Longer side of the style image divided by that of the pastiche: larger for broader strokes.
    One number, or one for each style."""
    style_rotation: Any = number(0.0, "(-inf, inf)", several=True)
    """Degrees by which the style image is turned counterclockwise. One number, or one for each
    style."""
    style_detail: str | None = path(None)
    """Path of a style image for the fine texture: for losses at objective.detail_layers."""
    content_regions: str | None = path(None, words=("auto",))
    """Path of the content's label picture, in which each region has one flat colour; or auto: three
    regions are found in the content and in each style, and paired with each other."""
    style_regions: Any = field(default=None, metadata=PATHS)
    """Path of the style image's label picture: each region of the content gets its style from the
    style's region of the same colour. With several styles, one label picture for each."""
    region_styles: dict[Any, int] = field(default_factory=dict)
    """Style of each region: {red:1,blue:2}, with the colours of the label picture as keys; 1 is the
    first style."""
    protect: str | None = path(None)
    """Path of a grey mask: where the mask is white, the pastiche keeps the content image."""
    color: str = choice("style", "style_palette", "content_palette", "content_luminance")
    """Source of the colours: style (nothing is recoloured); style_palette (before the run, the
    content's colours get the mean and covariance of the style's colours, and each pixel keeps its
    lightness; after the run, places of the content that are darker than the style's darkest paint
    become dark again, but not under a drawing on paper, and if the style is grey or has one hue,
    the pastiche is recoloured in the same way); content_palette (before the run, the style's
    colours get the mean and covariance of the content's colours); or content_luminance (after the
    run, each pixel keeps its lightness and gets the content's colour). The methods are those of
    Gatys et al. 2016, "Preserving Color in Neural Artistic Style Transfer", but in OKLab."""
    color_strength: float = number(1.0, "[0, 1]", idle="with color=style")
    """Strength of color=style_palette, content_palette or content_luminance, from 0 (none) to 1."""
    output: str | None = path(None, written=True, piped=True)
    """Path of the pastiche; the extension chooses the format; - is a PNG on standard output.
    Default: in the run folder."""
    size: int = number(512, "[1, 1048576]")
    """Longer side of the pastiche in pixels."""
    steps: int = number(100, "[1, inf)")
    """Optimiser steps over all scales (image sizes). Up to three scales share the steps evenly; the
    finest of four or more makes the fraction 0.42. With match losses, the finest of two or more
    makes a quarter."""
    scales: int = number(0, "[0, inf)")
    """Number of image sizes, coarse to fine, each half of the next; 1 for one size, 0 for all whose
    longer side has at least 128 pixels, or 96 with match losses."""
    init: str = path("content", words=("content", "style", "noise"))
    """Picture from which the optimisation starts: content, style, noise, or a path."""
    device: str = "auto"
    """auto, cpu, or torch's name of an accelerator, such as cuda, cuda:1, mps or xpu."""
    captured: bool = False
    """On CUDA, record an evaluation of each scale as a CUDA graph and replay it, which starts all
    its kernels at once. Only for loss_mode=autograd_function and loss_attribute, whole pictures,
    and style losses other than wasserstein. Off, because it has not been tried on a GPU yet."""
    precision: str = choice("auto", "bfloat16", "float32", "float64")
    """Dtype of the network: auto, bfloat16, float32 or float64. The picture is at least float32."""
    tile: str = "auto"
    """Exact tiling: auto (only if the whole picture does not fit in memory), off, or the side of a
    tile in pixels. Only loss_mode=autograd_function and tensor_hook can work in tiles."""
    seed: int = number(0, "[0, inf)", idle="without init=noise or features.weights=random")
    """Seed of the noise of `init=noise`, and of random weights."""
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    loss_mode: LossModeConfig = field(default_factory=LossModeConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)


@dataclass
class TrainConfig(StyleTransferConfig):
    """These are the settings of the command `train`: those of a pastiche, and those of its run."""

    recipe: bool = True
    """Write into the picture file how it was made: the command, with names of files but no folders,
    the version, and the SHA-256 of the inputs; `styletransfer info PICTURE` prints this."""
    checkpoint_every: float = number(60.0, "[0, inf)")
    """Shortest time in seconds between two checkpoints in the run folder; 0 saves none."""
    stop_after: int = number(0, "[0, inf)")
    """Number of steps after which the run stops and saves the picture, as after Ctrl-C; 0 for
    never. resume=FOLDER continues the run."""
    resume: str | None = path(None)
    """Folder of a run that is continued with its own settings; or auto: continue the run in the
    folder that hydra.run.dir=FOLDER names, or start there if it holds no checkpoint."""
    format: str = choice("text", "json", idle="with dry_run=true")
    """What is printed: text, or json (one line of JSON, with paths, losses and seconds)."""
    dry_run: bool = False
    """Print the plan, with estimated memory, and write nothing."""
