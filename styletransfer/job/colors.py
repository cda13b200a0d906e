"""Changes the colours of input pictures and of the pastiche, by `color` and `color_strength`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from styletransfer.job.light import in_light_of
from styletransfer.objective.inputs import Inputs, Region
from styletransfer.pictures.color import (
    Palette,
    in_colors,
    in_palette,
    monochrome,
    palette,
    recolored,
    to_grey,
)
from styletransfer.pictures.images import Picture, is_grey, weights_for


@dataclass(frozen=True)
class Colors:
    """`Colors` change the colours of pictures before a run, and of the pastiche after the run."""

    source: str  # the setting `color`: style, style_palette, content_palette, content_luminance
    strength: float  # the setting `color_strength`, from 0 (no change) to 1
    # The first style layer, or "". Only the style images used at this layer count for the palette.
    layer: str

    def of_style(self, style: Picture, content: Picture) -> Picture:
        """Return a style image, in the content's palette if `source` is content_palette."""
        if self.source != "content_palette":
            return style
        return recolored(style, content, self.strength)

    def before(self, pictures: Inputs) -> Inputs:
        """Return pictures, with the content recoloured from its styles if `color` is style_palette.

        In each region the content's colours move towards the palette (mean and covariance) of the
        region's styles, and reach it at `strength` 1. Styles that are not used at the first style
        layer do not count. Each pixel keeps its lightness, so that the light and shade of the
        content stay. Transparent pixels of the content do not count. If there are photographs of
        which the styles are paintings (`Inputs.sources`), the content keeps its colours.
        """
        if self.source != "style_palette" or pictures.sources:
            return pictures
        content = result = pictures.content
        for region, end in zip(pictures.regions, self._palettes(pictures), strict=True):
            moved = _moved(content, region, end, self.strength, pictures.alpha)
            result = result + (moved - content)
        return replace(pictures, content=result.clamp(0, 1))

    def after(self, pictures: Inputs) -> Callable[[Tensor], Tensor]:
        """Return the function that a run of these pictures applies to its pastiche (1, 3, H, W).

        If content, styles and start are all grey, the pastiche becomes grey, whatever `color` is.
        color=content_luminance mixes in the content's chroma. color=style_palette moves each
        region's colours towards the palette of its styles once more, in proportion to `monochrome`
        of this palette, so that a drawing or an old print gives no colours that it does not have.
        If the styles are grey and the strength is 1, the pastiche becomes grey. Finally, dark
        places of the content become dark again, except under a drawing on paper, see `in_light_of`.
        Protected pixels keep their colours.
        """
        content, start = pictures.content, pictures.start
        grey = is_grey([*pictures.tensors, *([] if start is None else [start])])
        if self.source != "style_palette" or pictures.sources or self.strength == 0:
            return lambda image: in_colors(image, content, self.source, self.strength, grey=grey)
        palettes = self._palettes(pictures)
        one_hue = [monochrome(end) for end in palettes]
        strengths = [self.strength * share for share in one_hue]
        is_wholly_grey = grey or (self.strength == 1 and is_grey(pictures.styles))
        in_light = in_light_of(pictures, self.layer, self.strength, one_hue)

        def finish(image: Tensor) -> Tensor:
            result = to_grey(image) if is_wholly_grey else image
            if not is_wholly_grey:
                for region, end, strength in zip(
                    pictures.regions, palettes, strengths, strict=True
                ):
                    result = result + (_moved(image, region, end, strength) - image)
            if pictures.protected is not None and not grey:
                result = torch.lerp(result, image, weights_for(pictures.protected, image))
            return in_light(result.clamp(0, 1))

        return finish

    def _palettes(self, pictures: Inputs) -> list[Palette]:
        """Return the palette of each region: that of the styles that its first style layer uses."""
        return [
            palette(
                (part.share, pictures.styles[part.style], part.weights)
                for part in region.sources_at(self.layer)
            )
            for region in pictures.regions
        ]


def _moved(
    image: Tensor, region: Region, end: Palette, strength: float, alpha: Tensor | None = None
) -> Tensor:
    """Return `image` (1, 3, H, W) with a region's colours moved towards the palette `end`.

    Each pixel keeps its lightness. At `strength` 1 the colours reach `end`. They start from the
    palette of the region's own pixels, weighted by `alpha` (1, 1, h, w); None weighs all alike.
    """
    if strength == 0:
        return image
    covers = 1.0 if region.weights is None else weights_for(region.weights, image)
    own = torch.ones_like(image[:, :1]) if alpha is None else weights_for(alpha, image)
    own = own * covers
    if own.sum() == 0:
        return image
    start = palette([(1.0, image, own)])
    return image + covers * (in_palette(image, start, end, strength, keep_light=True) - image)
