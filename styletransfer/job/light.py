"""Keeps dark places of the content image dark, and limits the lightness of the pastiche.

A style image without dark paint would make every dark place of the photograph as light as the
style's darkest strokes: a black visor would look like glass. So after the run, the pastiche's
OKLab values at such places are multiplied by a factor, which keeps hue, saturation and strokes.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from styletransfer.objective.inputs import Inputs, StylePart
from styletransfer.pictures.color import by_strips, from_oklab, lightness, to_oklab
from styletransfer.pictures.images import blurred, size_of, weights_for

# The darkest and the lightest paint of style images are these quantiles of their lightness.
DARKEST, LIGHTEST = 0.05, 0.99
# Lightness in OKLab that a black place of the content image gets: the sRGB value 7 of 255. With
# less, the strokes there would be invisible.
BLACK = 0.13
# The content's lightness is blurred by a Gaussian of this standard deviation, as a share of the
# longer side, so that the grain of the photograph does not cover the strokes.
BLUR = 1 / 256


def in_light_of(pictures: Inputs, layer: str, strength: float) -> Callable[[Tensor], Tensor]:
    """Return a function that makes a pastiche (1, 3, H, W) dark where its content image is dark.

    L is the content's blurred lightness in OKLab. d and l are the darkest and the lightest paint of
    a region's styles that are used at the style layer `layer`. Where L < d, the pastiche's OKLab is
    multiplied by max(L, BLACK) / d. A pixel lighter than both l and L gets the lightness of the
    lighter one. At a `strength` below 1 the changes are smaller. Protected pixels keep their
    colours.
    """
    content = lightness(pictures.content)
    content = blurred(content, BLUR * max(size_of(content)))
    factor, most = torch.ones_like(content), torch.ones_like(content)
    for region in pictures.regions:
        dark, light = _paint(region.sources_at(layer), pictures.styles)
        covers = strength * (
            1.0 if region.weights is None else weights_for(region.weights, content)
        )
        factor = factor + covers * (content.clamp(BLACK, dark) / dark - 1 if dark > BLACK else 0)
        most = most + covers * (content.clamp(min=light) - 1)
    if pictures.protected is not None:
        kept = weights_for(pictures.protected, content)
        factor, most = factor + kept * (1 - factor), most + kept

    def lit(factor: Tensor, most: Tensor, srgb: Tensor) -> Tensor:
        lab = to_oklab(srgb)
        change = torch.minimum(factor.to(lab), most.to(lab) / lab[:1].clamp(min=BLACK))
        return torch.where(change < 1, from_oklab(change * lab), srgb)

    # `weights_for` resizes, because the pastiche of a coarser scale is smaller than the content.
    return lambda image: by_strips(lit, weights_for(factor, image), weights_for(most, image), image)


def _paint(parts: Iterable[StylePart], styles: tuple[Tensor, ...]) -> tuple[float, float]:
    """Return the weighted quantiles DARKEST and LIGHTEST of the lightness of style parts.

    They are computed on the CPU.
    """
    values, weights = [], []
    for part in parts:
        light = lightness(styles[part.style]).cpu()
        seen = torch.ones_like(light) if part.weights is None else weights_for(part.weights, light)
        values.append(light.flatten())
        weights.append((part.share * seen / seen.sum()).flatten())
    order = torch.cat(values).sort()
    below = torch.cat(weights).double()[order.indices].cumsum(0)
    places = torch.searchsorted(below / below[-1], below.new_tensor([DARKEST, LIGHTEST]))
    dark, light = order.values[places].tolist()
    return dark, light
