"""The controls of the page: each sets one key of a run's settings."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_origin

from styletransfer.settings import TrainConfig
from styletransfer.settings.schemas import keys

FIELDS = dict(keys(TrainConfig))
# Key -> kind of control, for the label picture and the mask that the user draws on the page.
BRUSHED = {"content_regions": "regions", "protect": "mask"}
# Value of content_regions with which the run finds the regions itself, without a label picture.
FOUND = "auto"
# Key of the photograph from which the style was painted. The page offers one photograph; the key
# takes one for each style.
SOURCE = "style_source"
WEIGHT = "objective.content_weight"  # key of the photograph's weight


@dataclass(frozen=True)
class Control:
    """A Control sets one key of TrainConfig; the type of this key decides the possible values.

    A slider offers numbers from `min` to `max`; the key may accept more.
    """

    key: str  # key of a setting, such as "objective.content_weight"
    label: str  # name on the page
    min: float | None = None  # smallest number of the slider; None if the control is no slider
    max: float | None = None  # largest number of the slider
    step: float = 0.01  # step of the slider
    log: bool = False  # whether the slider is logarithmic
    ends: tuple[str, ...] = ()  # what the slider's two ends make of the picture, in a word each

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The words that the key accepts, the default first if it is a word; empty if none.

        A key that accepts a path may also accept words.
        """
        words: tuple[str, ...] = FIELDS[self.key].metadata.get("choices", ())
        return words

    @cached_property
    def kind(self) -> str:
        """The kind of control, which decides how the page shows it.

        It is picture, pictures, regions, mask, number, integer, numbers, choice, mapping, text or
        names. A control of the kind "names" is a text field, with commas between the names.
        """
        field = FIELDS[self.key]
        is_several = "each" in field.metadata
        if self.key in BRUSHED:
            return BRUSHED[self.key]
        if self.key == SOURCE:
            return "picture"
        if self.choices:
            return "choice"
        if "path" in field.metadata:
            return "pictures" if is_several else "picture"
        if get_origin(field.type) is dict:
            return "mapping"
        kinds: dict[Any, str] = {int: "integer", float: "number"}
        kinds |= {list[float]: "numbers", list[str]: "names"}
        return "numbers" if is_several else kinds.get(field.type, "text")


# These controls change both the sketch, which the page shows at once, and the painted picture.
SKETCHED = (
    Control("content", "Photograph"),
    Control("style", "Style"),
    Control(SOURCE, "The photograph that you painted"),
    Control("size", "Size", 64, 2048),
    Control(WEIGHT, "Follow the photograph", 0.01, 10.0, log=True, ends=("free", "close")),
    Control("style_scale", "Strokes", 0.25, 3.0, 0.05, log=True, ends=("fine", "large")),
    Control("color", "Colours"),
    Control("color_strength", "Strength of the colours", 0.0, 1.0),
)
# These change only the painted picture. The page shows them under "More for the painting".
PAINTED = (
    Control("objective.match_weight", "Strokes from similar places", 0.0, 2.0),
    Control("objective.style_weight", "Strength of the style", 0.01, 100.0, log=True),
    Control("objective.style_loss", "How styles are compared"),
    Control("objective.tv_weight", "Smoothness", 0.0, 1.0),
    Control("style_rotation", "Turn the strokes", -180, 180, 1),
    Control("content_regions", "Regions"),
    Control("steps", "Steps", 1, 1000),
    Control("scales", "Scales", 0, 8),
)
# Key -> the explanation that the page shows for the "?" beside the control.
HELP = {
    "content": "The photograph that is painted. Its shapes stay in place.",
    "style": "The picture gets the strokes and colours of this painting. Move two sliders above 0 "
    "to mix two styles.",
    "style_source": "If the style is your own painting of a photograph, add that photograph here. "
    "Then the photograph above is painted as you painted this one. In a film, look for a frame, "
    "save it, paint it, and add your painting: its name tells the time of the frame.",
    "size": "The longer side of the picture in pixels. More pixels take more time and memory.",
    WEIGHT: "To the right, the photograph stays clearer. To the left, the style becomes stronger.",
    "color": "Where the colours come from. The style's palette is only its colours: light and dark "
    "stay as in the photograph.",
    "style_scale": "How large the strokes are. At 2 they are twice as large as at 1.",
    "style_rotation": "Turns the style, and so its strokes, to the left, in degrees.",
    "color_strength": "How much the choice of colours does: 0 is nothing, 1 is all.",
    "objective.style_loss": "What the picture and the style must have in common: which marks and "
    "colours occur together, or how much of each there is, or both.",
    "objective.match_weight": "How strongly each place takes strokes from the place of the style "
    "that is most like it. At 0, strokes may come from anywhere.",
    "objective.style_weight": "How strong the style's patterns are in the whole picture.",
    "content_regions": "Figure and ground apart: the photograph and each style are divided into up "
    "to three groups of places that look alike, such as a figure and what is behind it, and each "
    "group is painted like the most similar one of the style.",
    "objective.tv_weight": "Makes the picture smoother. 0 changes nothing.",
    "steps": "How often the picture is improved. More steps take more time.",
    "scales": "The picture is painted in several sizes, from small to large; each size is a scale. "
    "0 lets the studio choose how many.",
}
# Controls without a row of their own on the page: their keys are set by the brush, by the sliders
# below the styles, and by presets such as experiment=bold.
HIDDEN = (
    Control("style_weights", "How much of each style"),
    Control("region_styles", "Which style paints which"),
    Control("protect", "Painted with the photograph"),
    Control("objective.content_layers", "Layers of the photograph"),
)
CONTROLS = {control.key: control for control in (*SKETCHED, *PAINTED, *HIDDEN)}
