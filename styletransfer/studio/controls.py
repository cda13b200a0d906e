"""What the page offers to set: some keys of a run, in groups, each with a kind of control."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from styletransfer.config import TrainConfig
from styletransfer.settings import SCHEMAS
from styletransfer.settings.schemas import keys, meanings


@dataclass(frozen=True)
class Control:
    """How one key is set on the page.

    Attributes:
        key: such as "objective.content_weight".
        label: in a word or two.
        kind: picture, pictures, number, integer, choice, text, numbers, regions, mask, mapping,
            bool; and names, a text with commas between names.
        choices: of kind choice.
        low: of a number that a slider shows; the config may take others.
        high: likewise.
        step: between two places of the slider.
        log: whether the slider's places are even in the logarithm.
    """

    key: str
    label: str
    kind: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    step: float | None = None
    log: bool = False


def _number(
    key: str, label: str, low: float, high: float, step: float = 0.01, **more: Any
) -> Control:
    return Control(key, label, "number", low=low, high=high, step=step, **more)


def _whole(key: str, label: str, low: int, high: int, **more: Any) -> Control:
    return Control(key, label, "integer", low=low, high=high, step=1, **more)


STYLE_LOSSES = ("gram", "moments", "wasserstein")
COLORS = ("style", "content_palette", "content_luminance")
MODES = ("autograd_function", "loss_attribute", "fake_backward")
NETWORKS = ("bundled", "vgg19", "vgg16")
PRECISIONS = ("auto", "bfloat16", "float32", "float64")

# Name of a group -> its title and its controls. The first group is what is seen at first.
GROUPS: dict[str, tuple[str, tuple[Control, ...]]] = {
    "first": (
        "",
        (
            Control("content", "Photograph", "picture"),
            Control("style", "Style", "pictures"),
            _whole("size", "Size", 64, 2048),
            _number("objective.content_weight", "Keep the photograph", 0.01, 10.0, log=True),
            Control("color", "Colours", "choice", COLORS),
            Control("style_scale", "Strokes", "numbers", low=0.25, high=3.0, step=0.05, log=True),
        ),
    ),
    "style": (
        "Strokes and styles",
        (
            Control(
                "style_weights", "How much of each style", "numbers", low=0.0, high=1.0, step=0.01
            ),
            Control("style_rotation", "Turn the strokes", "numbers", low=-180, high=180, step=1),
            Control("style_detail", "Fine texture from", "picture"),
            Control("objective.detail_layers", "Layers of fine texture", "names"),
        ),
    ),
    "color": (
        "Colour",
        (_number("color_strength", "How far", 0.0, 1.0),),
    ),
    "regions": (
        "Regions",
        (
            Control("content_regions", "Regions of the photograph", "regions"),
            Control("region_styles", "Which style paints which", "mapping"),
            Control("protect", "Leave alone", "mask"),
            Control(
                "objective.propagation",
                "How regions reach a layer",
                "choice",
                ("average", "inside"),
            ),
        ),
    ),
    "look": (
        "Look",
        (
            Control("objective.style_loss", "How styles are compared", "choice", STYLE_LOSSES),
            _number("objective.style_weight", "Weight of the style", 0.01, 100.0, log=True),
            _number("objective.tv_weight", "Smoothness", 0.0, 1.0),
            Control("objective.content_layers", "Layers of the photograph", "names"),
            Control("objective.style_layers", "Layers of the style", "names"),
            Control("objective.content_layer_weights", "Their weights, photograph", "numbers"),
            Control("objective.style_layer_weights", "Their weights, style", "numbers"),
            Control("objective.normalization", "Units of the losses", "choice", ("target", "none")),
        ),
    ),
    "steps": (
        "Steps",
        (
            _whole("steps", "Steps", 1, 1000),
            _whole("scales", "Scales", 0, 8),
            Control("init", "Start from", "choice", ("content", "style", "noise")),
            _whole("seed", "Seed", 0, 1000),
        ),
    ),
    "network": (
        "Network and optimiser",
        (
            Control("features.name", "Network", "choice", NETWORKS),
            Control("features.pooling", "Pooling", "choice", ("max", "average")),
            Control("features.padding", "Padding", "choice", ("replicate", "zeros")),
            Control("loss_mode.name", "Loss mode", "choice", MODES),
            Control("optimizer.name", "Optimiser", "choice", ("lbfgs", "adam")),
            _number("optimizer.learning_rate", "Learning rate", 0.001, 2.0, log=True, step=0.001),
            _whole("optimizer.history", "L-BFGS history", 1, 100),
            _number("optimizer.preconditioner", "Preconditioner", 0.0, 2.0),
            _number("optimizer.plateau", "End a scale early below", 0.0, 0.1, step=0.0001),
            _number("optimizer.averaging", "Averaging", 0.0, 0.999, step=0.001),
            Control("precision", "Precision", "choice", PRECISIONS),
            Control("device", "Device", "text"),
            Control("tile", "Tiles", "text"),
        ),
    ),
}
CONTROLS = {control.key: control for _, group in GROUPS.values() for control in group}
# Keys that choose a file of their group, which sets other keys of the group as well.
CHOOSING = {
    "features.name": "features",
    "loss_mode.name": "loss_mode",
    "optimizer.name": "optimizer",
}


@cache
def helps() -> dict[str, str]:
    """Return key -> what the config says about it."""
    found = {}
    for key, _ in keys(TrainConfig):
        group, _, name = key.rpartition(".")
        schema = dict(keys(TrainConfig))[group].type if group else SCHEMAS["train"]
        found[key] = meanings(schema).get(name, "")  # type: ignore[arg-type]
    return found


def key_in(message: str) -> str | None:
    """Return the key that a message is about, for the page to show it beside its control."""
    for key in sorted(CONTROLS, key=len, reverse=True):
        said = re.escape(key)
        if re.match(rf"{said}\b", message) or re.search(rf"(?<![\w.]){said}=", message):
            return key
        if "." in key and re.search(rf"(?<![\w.]){said}(?![\w.])", message):
            return key
    return None
