"""What several commands have in common: groups of settings, and how keys are declared."""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from styletransfer.resources import resource

T = TypeVar("T")

ASSETS = resource("assets")
# What OmegaConf takes for a value that has to be given.
MISSING: Any = "???"

# Of keys that hold one value or a list of them; see `each`.
NUMBERS = {"each": float}
PATHS = {"each": str, "path": True}


def choice(*words: str) -> str:
    """Say that a key takes one of these words, of which the first is its default."""
    declared: str = field(default=words[0], metadata={"choices": words})
    return declared


def path(
    default: T,
    *,
    positional: bool = False,
    swept: bool = False,
    written: bool = False,
    words: tuple[str, ...] = (),
) -> T:
    """Say that a key's value is a file name: the command line takes any, as it is typed.

    It may be `positional`, given without its key; `swept`, where a folder or a pattern stands for
    one job for each of its pictures; `written`, a file that is made, not read. `words` are no file
    names, whatever lies beside.
    """
    marks = {"positional": positional, "swept": swept, "written": written, "choices": words}
    declared: T = field(default=default, metadata={"path": True, **marks})
    return declared


def each(value: Any) -> list[Any]:
    """Return the values of a key that holds one or more: a list, empty for None."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


# Gatys et al. 2016: the layers at which styles and contents are compared.
STYLE_LAYERS = ("relu1_1", "relu2_1", "relu3_1", "relu4_1", "relu5_1")
CONTENT_LAYER = "relu4_2"

# One position of relu5_1 sees 156 pixels across: there whole objects of the style are compared, and
# at full weight they take the place of small faces (docs/looks.md). Every other layer counts 1.
STYLE_LAYER_FACTORS = {"relu5_1": 0.1}


@dataclass
class FeaturesConfig:
    """The network under which pictures are compared."""

    name: str = "bundled"
    """bundled (ships with the project), vgg19 or vgg16."""
    weights: str = path("pretrained", words=("pretrained", "random"))
    """pretrained, random, or the path of a .safetensors or .pth file."""
    pooling: str = choice("max", "average")
    """max (as trained) or average (Gatys et al. 2016)."""
    padding: str = choice("replicate", "zeros")
    """Of the first convolution: zeros (as trained) or replicate (no frame along the border)."""
    preprocessing: str = choice("imagenet", "none")
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
    match_weight: float = 0.0
    """Linear weight of the content losses whose targets are the style's features that are nearest
    to the content's, position by position (Kolkin et al. 2022); 0 turns them off."""
    match_layers: list[str] = field(default_factory=lambda: ["relu3_1", "relu4_1"])
    """Layers of these losses; none of content_layers."""
    match_painted: float = 0.5
    """Share of the pastiche so far in the picture whose neighbours are looked for, at every scale
    but the first; from 0, the content alone, to 1."""
    tv_weight: float = 0.0
    """Linear weight of the squared total variation of the picture."""
    style_loss: str = choice("gram", "moments", "wasserstein")
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
    normalization: str = choice("target", "none")
    """target (each loss over its target's own mean square; that of a content beyond 512 px is taken
    at 512 px) or none (the tutorials' plain MSE)."""
    propagation: str = choice("average", "inside")
    """How a region reaches a layer's positions: average (by the share of the region in the pixels
    they stand for) or inside (only those that see nothing outside; Gatys et al. 2017)."""
    seamless: bool = False
    """The pastiche's left edge goes on at its right one, its top edge at its bottom one: copies of
    it laid side by side have no seam."""
    detail_layers: list[str] = field(default_factory=lambda: ["relu1_1", "relu2_1"])
    """Style layers that listen to style_detail instead of style. Default: Gatys et al. 2017."""


@dataclass
class OptimizerConfig:
    """Who moves the pixels."""

    name: str = "lbfgs"
    """lbfgs, or adam, which is torch.optim's."""
    learning_rate: float = 1.0
    """L-BFGS: share of the quasi-Newton step. Adam: step size in sRGB units."""
    history: int = 20
    """L-BFGS: pairs of vectors kept; each costs twice the picture's memory."""
    preconditioner: float = 1.0
    """L-BFGS: exponent of the gains that even its coordinates out, see
    `styletransfer/optimize/optimizers.py`; 0 for the bare pixels of the papers."""
    plateau: float = 0.001
    """L-BFGS: a scale ends early once ten steps lower the loss by less than this share; 0 for
    never."""
    averaging: float = 0.0
    """Decay per step of the running mean of pictures that becomes the result; 0 turns it off."""
