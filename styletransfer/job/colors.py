"""The colours of a job, as the settings `color` and `color_strength` ask."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from styletransfer.objective.inputs import Inputs
from styletransfer.pictures.color import in_colors, in_palette, palette, recolored
from styletransfer.pictures.images import Picture, is_grey, resize


@dataclass(frozen=True)
class Colors:
    """`Colors` change the colours of pictures before a run, and those of its pastiche after it."""

    source: str  # the setting `color`: style, style_palette, content_palette, content_luminance
    strength: float  # the setting `color_strength`, from 0 (no change) to 1
    layer: str  # the first style layer, whose styles give their palette; "" if there is none

    def of_style(self, style: Picture, content: Picture) -> Picture:
        """Return a style image in the content's palette, for color=content_palette."""
        if self.source != "content_palette":
            return style
        return recolored(style, content, self.strength)

    def before(self, pictures: Inputs) -> Inputs:
        """Return pictures with the content in the colours of its styles, for color=style_palette.

        In each region the content's colours get the mean and covariance of those of its styles
        (those used at the first style layer). Each pixel keeps its lightness, so that the light and
        shade of the content stay. Transparent pixels of the content do not count. A content that is
        compared with photographs, see `Inputs.sources`, keeps its colours.
        """
        if self.source != "style_palette" or pictures.sources:
            return pictures
        content = result = pictures.content
        seen = torch.ones_like(content[:, :1])
        if pictures.alpha is not None:
            size = (content.shape[2], content.shape[3])
            seen = resize(pictures.alpha.to(content), size, "bilinear")
        for region in pictures.regions:
            own = seen if region.weights is None else seen * region.weights
            if own.sum() == 0:
                continue
            start = palette([(1.0, content, own)])
            end = palette(
                (part.share, pictures.styles[part.style], part.weights)
                for part in region.sources_at(self.layer)
            )
            moved = in_palette(content, start, end, self.strength, keep_light=True)
            weights = 1.0 if region.weights is None else region.weights
            result = result + weights * (moved - content)
        return replace(pictures, content=result.clamp(0, 1))

    def after(self, pictures: Inputs) -> Callable[[Tensor], Tensor]:
        """Return the function that a run of these pictures applies to its pastiche (1, 3, H, W).

        Only color=content_luminance changes the colours here, by the content's. If content, styles
        and start are grey, the pastiche becomes grey.
        """
        content, start = pictures.content, pictures.start
        grey = is_grey([*pictures.tensors, *([] if start is None else [start])])
        return lambda image: in_colors(image, content, self.source, self.strength, grey=grey)
