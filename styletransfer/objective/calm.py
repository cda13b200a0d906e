"""Calm places are areas with little texture, such as a clear sky, a white wall, a cheek or paper.

In calm places of the content, features do not tell which part of the style belongs there. So a calm
position is matched to style positions with a similar row, column and lightness. This suffices for a
style that has calm places itself, such as a drawing on paper. A style that is busy everywhere, such
as *The Starry Night*, has no calm places to match. For such a style, extra style losses act in the
content's calm places, and paint stars and waves there. With other styles these losses would draw
scars on faces and creases in paper.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from styletransfer.objective.inputs import FEWEST, Inputs, Region
from styletransfer.pictures.images import box_mean, resize, scaled_size, size_of

# A position is calm if the hypercolumns around it vary less than CALM times the mean of this
# variation over the picture. The variation is measured in a square with a side of NEIGHBOURS
# positions. `matching.py` defines hypercolumns.
CALM, NEIGHBOURS = 0.65, 5
# When calm positions are matched, squared differences in row, in column and in rank of lightness
# have these weights. Row and column are fractions of height and width, and the rank is from 0 to 1.
PLACE = (3.0, 1.5, 6.0)
# A style is wholly busy if at most the fraction BUSY of its positions is calm at each size, and not
# busy if at least the fraction PLAIN is calm at one size; see `busyness`.
BUSY, PLAIN = 0.10, 0.14
# f, from 0 to 1, is the freedom of a style: the setting `objective.calm_freedom`, or `busyness` if
# it is not set. In calm places, the weight of match losses is multiplied by 1 - FREE f. The extra
# style losses of calm places weigh CALM_SHARE f times as much per pixel as the other style losses.
FREE, CALM_SHARE = 0.75, 0.25
# Number of times that the mask of calm places is averaged over NEIGHBOURS x NEIGHBOURS positions,
# to soften its edges.
SOFTENED = 3
# The style losses of calm places use style pixels that are about as light as these places. The
# weight of a style pixel falls linearly with the difference of the ranks of lightness (0 darkest, 1
# lightest), and is 0 if they differ by LIKE or more. For the ranks, the image is first reduced to
# LIGHT_SIDE pixels along its longer side, and averaged over SMOOTHED x SMOOTHED pixels.
LIKE, LIGHT_SIDE, SMOOTHED = 0.5, 128, 9


def calm_places(columns: Tensor) -> Tensor:
    """Return (h, w), True where the hypercolumns (D, h, w) vary little around a position.

    Hypercolumns are unit vectors. Their variation is 1 minus the length of their mean, the circular
    variance of directional statistics (Mardia and Jupp 2000, "Directional Statistics").
    """
    # The pooling below takes a third of the time if the tensor is channels_last.
    wide = columns[None].contiguous(memory_format=torch.channels_last)
    around = pad(wide, (NEIGHBOURS // 2,) * 4, mode="replicate")
    variation = 1 - torch.linalg.vector_norm(avg_pool2d(around, NEIGHBOURS, 1)[0], dim=0)
    calm: Tensor = variation < CALM * variation.mean()
    return calm


def busyness(sizes: Iterable[Tensor]) -> float:
    """Return how busy a style is, from 0 to 1, by its hypercolumns (D, h, w) at several sizes.

    The result is 1 if at most the fraction BUSY of the style's positions is calm at each size, and
    0 if at least the fraction PLAIN is calm at one of them. In between it falls linearly. The grain
    of paper, or fine hatching, is busy at a large size, but calm at a small one.
    """
    share = max(float(calm_places(columns).double().mean()) for columns in sizes)
    return min(1.0, max(0.0, (PLAIN - share) / (PLAIN - BUSY)))


def placed_queries(columns: Tensor, u: Tensor, calm: Tensor) -> Tensor:
    """Return a row for each content position, (h * w, D + 5), to multiply with `placed_keys`.

    With unit hypercolumns f (D, h, w) and the `coordinates` u, the product of a content
    position p and a style position q is

        f_p . f_q - |u_p - u_q|^2   if p is calm, that is, if `calm` (h, w) is True there
        f_p . f_q                   if p is not calm

    since |u_p - u_q|^2 = |u_p|^2 - 2 u_p . u_q + |u_q|^2. Hypercolumns of calm positions hardly
    differ. Without u, all calm positions would be matched to one plain patch of the style.
    """
    square = u.square().sum(1, keepdim=True)
    added = torch.cat([2 * u, -square, -torch.ones_like(square)], 1)
    return torch.cat([columns.flatten(1).mT, calm.flatten()[:, None] * added], 1)


def placed_keys(columns: Tensor, u: Tensor) -> Tensor:
    """Return a row for each position of a style image, (h * w, D + 5); see `placed_queries`."""
    square = u.square().sum(1, keepdim=True)
    return torch.cat([columns.flatten(1).mT, u, torch.ones_like(square), square], 1)


def coordinates(image: Tensor, size: Sequence[int]) -> Tensor:
    """Return u (h * w, 3): row, column and rank of lightness of an image's (h, w) positions.

    Each value is from 0 to 1, and is then multiplied by the square root of its weight in PLACE.
    """
    height, width = size
    light = resize(light_ranks(image), (height, width), "bilinear")[0, 0]
    row, column = ((torch.arange(length).to(light) + 0.5) / length for length in (height, width))
    u = torch.stack([row[:, None].expand_as(light), column.expand_as(light), light], 2)
    return (u * light.new_tensor(PLACE).sqrt()).flatten(0, 1)


def calm_regions(pictures: Inputs, calm: Tensor, freedom: Sequence[float]) -> list[Region]:
    """Return each region reduced to its calm places, for the extra style losses.

    Each style's statistics are taken where the style is about as light as the calm places, so that
    no dark shape covers a bright sky.

    `calm` is (h, w), True at calm positions; its edges are softened. `freedom` holds one number for
    each style image: how freely it paints calm places, from 0 to 1. A region is left out if the
    freedom of all its styles is 0, or if it has hardly any calm pixels.
    """
    if not any(freedom):
        return []
    soft = calm[None, None].to(pictures.content)
    for _ in range(SOFTENED):
        soft = box_mean(soft, NEIGHBOURS)
    soft = resize(soft, size_of(pictures.content), "bilinear")
    light, of_styles = light_ranks(pictures.content), [light_ranks(s) for s in pictures.styles]
    regions = []
    for region in pictures.regions:
        own = soft if region.weights is None else soft * region.weights
        if own.sum() < FEWEST or not any(freedom[part.style] for part in region.sources):
            continue
        rank = (own * light).sum() / own.sum()
        sources = []
        for part in region.sources:
            alike = (1 - (of_styles[part.style] - rank).abs() / LIKE).clamp_min(0)
            if part.weights is not None:
                alike = alike * part.weights
            weights = alike if alike.sum() >= FEWEST else part.weights
            sources.append(
                replace(part, weights=weights, strength=CALM_SHARE * freedom[part.style])
            )
        name = f"{region.name}/calm".removeprefix("/")
        regions.append(Region(name, own, tuple(sources)))
    return regions


def light_ranks(image: Tensor) -> Tensor:
    """Return each pixel's rank (1, 1, H, W) by mean lightness around it: 0 darkest, 1 lightest."""
    size = size_of(image)
    grey = resize(image, scaled_size(size, min(LIGHT_SIDE, max(size)))).mean(1, keepdim=True)
    grey = box_mean(grey, SMOOTHED)
    order = grey.flatten().argsort(stable=True)
    rank = torch.empty_like(grey)
    rank.view(-1)[order] = torch.linspace(0, 1, len(order)).to(rank)
    return resize(rank, size, "bilinear")
