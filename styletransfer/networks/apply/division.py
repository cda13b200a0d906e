"""Paints regions of a picture in different styles, and keeps pixels that a mask protects."""

from collections.abc import Callable

import torch
from torch import Tensor

from styletransfer.errors import UserError, about
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.pictures.images import resize, scaled_size, size_of
from styletransfer.pictures.labels import read_regions
from styletransfer.pictures.masks import check_aspect, read_mask
from styletransfer.pictures.regions import assign

# A mask is shrunk to this longer side in pixels, then enlarged to the picture's size. This blurs
# its edges: in a picture of 1024 pixels, an edge is 4 pixels wide. sketch.js does the same.
SOFT = 256


class Division:
    """A Division puts a pastiche together: regions in several styles, and pixels of the content.

    (UserError: a label picture or a mask cannot be read, or the settings of regions do not fit.)
    """

    def __init__(self, config: ApplyConfig, styles: int) -> None:
        """Read the label picture and the mask in `config`; `styles` is the number of styles."""
        self._labels = self._mask = None
        if config.region_styles and not config.content_regions:
            problem = "region_styles needs content_regions, a label picture of the input"
            raise UserError(problem, "region_styles")
        if config.content_regions:
            with about("content_regions"):
                self._labels = read_regions(config.content_regions, "content_regions")
            with about("region_styles"):
                self._styles = assign(self._labels, config.region_styles, styles)
            if config.style_weights and styles > 1:
                problem = "style_weights mix styles, but here each region has one; leave them out"
                raise UserError(problem, "style_weights")
        if config.protect:
            with about("protect"):
                self._mask = read_mask(config.protect, "protect")

    def composed(self, content: Tensor, paint: Callable[[int | None], Tensor]) -> Tensor:
        """Return the pastiche (1, 3, H, W) of a content image of the same shape.

        `paint(index)` returns the whole content image in one style, and `paint(None)` in a mixture
        of all styles. Pixels in no region, and protected pixels, are copied from the content image.
        (UserError if the label picture or the mask has another aspect ratio.)
        """
        size = size_of(content)
        small = scaled_size(size, min(SOFT, max(size)))
        painted = content
        if self._labels is None:
            painted = paint(None)
        else:
            check_aspect(self._labels.size, size, "content_regions")
            for style in sorted(set(self._styles)):
                regions = [at for at, chosen in enumerate(self._styles) if chosen == style]
                weights = torch.cat([self._labels.weights(region, small) for region in regions])
                weights = weights.sum(0, keepdim=True)
                painted = painted + resize(weights, size, "bilinear") * (paint(style) - content)
            painted = painted.clamp(0.0, 1.0)
        if self._mask is not None:
            check_aspect(size_of(self._mask), size, "protect")
            kept = resize(resize(self._mask, small, "bilinear"), size, "bilinear")
            painted = torch.lerp(painted, content, kept)
        return painted
