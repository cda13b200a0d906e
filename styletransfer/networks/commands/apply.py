"""The command `apply`: a style network paints pictures, folders, archives and films."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from styletransfer.settings import MISSING, PATHS, choice, number, path
from styletransfer.settings.registry import command


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
    content_regions: str | None = path(None)
    """Path of the input's label picture, in which each region has one flat colour."""
    region_styles: dict[Any, int] = field(default_factory=dict)
    """Style of each region: {red:1,blue:2}, with the colours of the label picture as keys; 1 is the
    first style."""
    protect: str | None = path(None)
    """Path of a grey mask: where the mask is white, the pastiche keeps the input."""
    color: str = choice("style", "style_palette", "content_palette", "content_luminance")
    """Source of the colours: style; style_palette, the style's colours with the input's light and
    dark; content_palette, mean and covariance of the input's colours; or content_luminance, the
    input's colours with the pastiche's lightness."""
    color_strength: float = number(1.0, "[0, 1]", idle="with color=style")
    """Strength of color=style_palette, content_palette or content_luminance, from 0 (none) to 1."""
    steady: float = number(0.0, "[0, 1)")
    """For films, against flicker: weight with which the previous painted frame, warped by the
    motion, is mixed into each painted frame; from 0 (none) to below 1."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = choice("auto", "bfloat16", "float32")
    """Dtype of the convolutions: auto, bfloat16 or float32; norms use float32 statistics."""
    format: str = choice("text", "json")
    """What is printed: text, or json (one line of JSON, with the path and seconds)."""


@command(repeatable=True)
def apply(config: ApplyConfig, folder: Path) -> None:
    """Paint with a style network."""
    from styletransfer.networks.apply.paint import apply_network

    apply_network(config)
