"""Keeps dark places of the content image dark, and limits the lightness of the pastiche.

A style image without dark paint would make every dark place of the photograph as light as the
style's darkest strokes: a black visor would look like glass. So after the run, the pastiche's
OKLab values at such places are multiplied by a factor, which keeps hue, saturation and strokes.
Under a drawing on paper this is not done: a drawing shows dark places in its own lines.
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from styletransfer.objective.inputs import Inputs, StylePart
from styletransfer.pictures.color import by_strips, from_oklab, lightness, to_oklab
from styletransfer.pictures.images import blurred, resize, scaled_size, size_of, weights_for

# The darkest and the lightest paint of style images are these quantiles of their lightness.
DARKEST, LIGHTEST = 0.05, 0.99
# A style image is paper with lines if the median of its lightness is at least PALE, and at least
# PAPER[1] times the quantile LIGHTEST. It is no paper if the median is PAPER[0] times this quantile
# or less; between the two the share of paper is linear. Drawings in pencil, ink and chalk have a
# median of 0.7 to 1 and 0.83 to 1 times, an engraving 0.6 times, paintings of one hue 0.24 to 0.77.
PALE, PAPER = 0.6, (0.7, 0.85)
# Lightness in OKLab that a black place of the content image gets: the sRGB value 11 of 255. With
# less, the strokes there would be invisible.
BLACK = 0.15
# The content's lightness is blurred by a Gaussian of this standard deviation, as a share of the
# longer side, so that the grain of the photograph does not cover the strokes.
BLUR = 1 / 256
# The pastiche's lightness is averaged over several strokes: with the weights of a Gaussian whose
# standard deviation is WIDE of the longer side. For this, a larger pastiche is reduced to SMALL
# pixels of the longer side.
WIDE, SMALL = 1 / 32, 256


def in_light_of(
    pictures: Inputs, layer: str, strength: float, one_hue: Sequence[float]
) -> Callable[[Tensor], Tensor]:
    """Return a function that makes a pastiche (1, 3, H, W) dark where its content image is dark.

    L is the content's blurred lightness in OKLab. d and l are the darkest and the lightest paint of
    a region's styles that are used at the style layer `layer`. Where L < d, the pastiche's OKLab is
    multiplied by max(L, BLACK) / d. The mean lightness m of the pastiche at these places, over a
    neighbourhood WIDE, may be above d. Then it is multiplied by (d / m)^(1 - L / d), too: the mean
    is then BLACK where L is 0. A pixel lighter than both l and L gets the lightness of the lighter
    one. At a `strength` below 1 the changes are smaller. Protected pixels keep their colours.

    `one_hue` tells for each region, from 0 to 1, how nearly its styles have one hue. Styles of one
    hue that are mostly paper, see PAPER, are drawings. A drawing shows dark places in its own
    lines, so they are not darkened; the limit of lightness still holds.
    """
    content = lightness(pictures.content)
    content = blurred(content, BLUR * max(size_of(content)))
    factor, most = torch.ones_like(content), torch.ones_like(content)
    depth, darkest = torch.zeros_like(content), torch.ones_like(content)
    for region, hue in zip(pictures.regions, one_hue, strict=True):
        dark, middle, light = _paint(region.sources_at(layer), pictures.styles)
        share = 1.0 if region.weights is None else weights_for(region.weights, content)
        covers = strength * share
        if dark > BLACK:
            paper = (middle / light - PAPER[0]) / (PAPER[1] - PAPER[0]) if middle > PALE else 0.0
            darker = covers * (1 - hue * min(1.0, max(0.0, paper)))
            factor = factor + darker * (content.clamp(BLACK, dark) / dark - 1)
            depth = depth + darker * (1 - content / dark).clamp(min=0)
            darkest = darkest + share * (dark - 1)
        most = most + covers * (content.clamp(min=light) - 1)
    if pictures.protected is not None:
        kept = weights_for(pictures.protected, content)
        factor, most = factor + kept * (1 - factor), most + kept
        depth = depth * (1 - kept)

    def lit(factor: Tensor, most: Tensor, srgb: Tensor) -> Tensor:
        lab = to_oklab(srgb)
        change = torch.minimum(factor.to(lab), most.to(lab) / lab[:1].clamp(min=BLACK))
        return torch.where(change < 1, from_oklab(change * lab), srgb)

    def changed(image: Tensor) -> Tensor:
        # `weights_for` resizes: the pastiche of a coarser scale is smaller than the content.
        change, limit, deep, dark = (
            weights_for(each, image) for each in (factor, most, depth, darkest)
        )
        mean = weights_for(_mean(lightness(image).to(deep), deep), image)
        change = change * (dark / mean.clamp(min=BLACK)).clamp(max=1) ** deep
        return by_strips(lit, change, limit, image)

    return changed


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    """Return the mean of values over a neighbourhood WIDE, with weights; (1, 1, h, w) each.

    The mean is smooth, so it is computed at SMALL pixels, and has their size.
    """
    side = max(size_of(values))
    both = resize(
        torch.cat([weights * values, weights], 1),
        scaled_size(size_of(values), min(side, SMALL)),
        "bilinear",
    )
    total, weight = blurred(both, WIDE * min(side, SMALL)).split(1, 1)
    return torch.div(total, weight.clamp(min=1e-6))


def _paint(parts: Iterable[StylePart], styles: tuple[Tensor, ...]) -> list[float]:
    """Return the weighted quantiles DARKEST, 0.5 and LIGHTEST of the lightness of style parts.

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
    places = torch.searchsorted(below / below[-1], below.new_tensor([DARKEST, 0.5, LIGHTEST]))
    quantiles: list[float] = order.values[places].tolist()
    return quantiles
