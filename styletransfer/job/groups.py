"""Finds regions without label pictures, for content_regions=auto.

k-means divides the content image, and each style image, into groups of positions that look alike,
such as a figure and what is behind it. Each group of the content image is then paired with a group
of the style image, and is painted like that group.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import interpolate, normalize, one_hot

from styletransfer.job.job import Job
from styletransfer.objective.calm import light_ranks
from styletransfer.objective.inputs import Region
from styletransfer.pictures.color import lightness, to_oklab
from styletransfer.pictures.images import (
    box_mean,
    long_enough,
    resize,
    scaled_size,
    size_of,
    weights_for,
)
from styletransfer.pictures.regions import Regions

logger = logging.getLogger(__name__)

# Colours of the groups in label pictures, the largest group first. There are three groups, because
# four groups separated hats and collars from heads. If one of the three covers less than the share
# SMALL of the content image, as the eyes of a cat do, there are two groups.
COLORS, SMALL = ((255, 0, 0), (0, 128, 0), (0, 0, 255)), 0.12
# Pictures are compared at a longer side of SIDE pixels, so that groups hardly depend on the size of
# the pastiche. The longer side is larger if the shorter side would have less than LEAST pixels.
SIDE, LEAST = 384, 64
# Layer -> weight of its features in the distance between two positions of the layer GRID.
LAYERS, GRID = {"relu3_1": 0.5, "relu4_1": 1.0, "relu5_1": 1.0}, "relu4_1"
# Weights of OKLab's lightness, of its colours a and b, and of row and column in the same distance.
# Each kind of values is first divided by its root mean square, or by FAINT if that is larger.
LIGHT, COLOR, PLACE, FAINT = 0.6, 0.8, 0.35, 0.02
# k-means starts STARTS times from seeded centres (k-means++, Arthur and Vassilvitskii 2007), with
# ROUNDS rounds each; the groups with the smallest sum of squared distances are kept.
STARTS, ROUNDS = 6, 30
# The misfit of a content group and a style group is a weighted sum of squared differences, minus
# the cosine of their mean features. FIT has the weights of three differences: in the mean rank of
# lightness, in the mean row (0 is the top, 1 the bottom), and in e / (2 a), which is large for a
# background: e is the group's share of the picture's border, and a its share of the picture.
FIT = (2.0, 1.0, 1.0)
# Values are averaged over SMOOTHED x SMOOTHED positions. The larger SHARPNESS is, the narrower are
# the soft edges of groups. A guided filter (He et al. 2010) with the regularisation EPSILON moves
# these edges, within about WINDOW pixels, to edges of lightness.
SMOOTHED, SHARPNESS, WINDOW, EPSILON = 3, 4.0, 9, 2e-3


@dataclass(frozen=True)
class Groups:
    """`Groups` divide a picture into groups of similar positions, always in the same way."""

    weights: Tensor  # (1, groups, H, W) in [0, 1]; at each pixel they sum to 1
    shares: Tensor  # (groups,), the share of the picture that each group covers
    features: Tensor  # (groups, C), mean features of each group, minus those of the picture
    facts: Tensor  # (groups, 3), the numbers whose differences are weighted by FIT

    @classmethod
    @torch.no_grad()
    def of(cls, job: Job, image: Tensor, count: int) -> Self:
        """Divide an image (1, 3, H, W) into `count` groups by k-means; the largest one is first."""
        side = long_enough(size_of(image), SIDE, LEAST)
        image = resize(image, scaled_size(size_of(image), side))
        seen = job.extractor(job.on_device(image), LAYERS)
        lab = to_oklab(image[0].flatten(1)).view_as(image)
        grid = size_of(seen[GRID])
        place = torch.stack(torch.meshgrid(*map(torch.arange, grid), indexing="ij"))[None]
        place = (place + 0.5) / torch.tensor(grid).view(2, 1, 1)
        kinds = [(seen[name].float().cpu(), weight) for name, weight in LAYERS.items()]
        kinds += [(lab[:, :1], LIGHT), (lab[:, 1:], COLOR), (place, PLACE)]
        rows = torch.cat([weight * _alike(kind, grid) for kind, weight in kinds])
        centres, distances = k_means(rows.mT.contiguous(), count)
        near = distances.mT.view(1, -1, *grid)
        soft = torch.softmax(-SHARPNESS * near / near.amin(1).mean().clamp_min(1e-12), 1)
        owned = one_hot(distances.argmin(1), count).double()
        shares = owned.mean(0).clamp_min(1 / len(owned))
        edge = torch.ones(grid)
        edge[1:-1, 1:-1] = 0
        light = resize(light_ranks(image), grid, "bilinear")
        facts = torch.stack([light[0, 0], place[0, 0], edge / edge.mean() / 2]).flatten(1).double()
        soft = resize(box_mean(soft.float(), SMOOTHED), size_of(image), "bilinear")
        weights = _guided(soft, lightness(image))
        return cls(weights, shares, centres[:, :-5], (facts @ owned / owned.sum(0).clamp_min(1)).mT)

    def partners(self, style: "Groups") -> list[int]:
        """Return, for each group, the index of its partner in `style`; partners are different."""
        differences = (self.facts[:, None] - style.facts).square()
        cosines = normalize(self.features) @ normalize(style.features).mT
        misfit = self.shares.sqrt()[:, None] * (differences @ differences.new_tensor(FIT) - cosines)
        every = list(range(len(misfit)))
        return min(map(list, permutations(every)), key=lambda to: float(misfit[every, to].sum()))


def grouped(job: Job, count: int) -> tuple[Region, ...]:
    """Return a region for each group of the content image, painted by its partners in the styles.

    The weights of the job's one region are divided between the groups. The first `count` styles are
    also divided. If there is another style, that of `style_detail`, all of it paints every region.
    """
    (whole,), styles = job.pictures.regions, job.pictures.styles[:count]
    own = Groups.of(job, job.pictures.content, len(COLORS))
    if own.shares.min() < SMALL:
        own = Groups.of(job, job.pictures.content, len(COLORS) - 1)
    of_styles = [Groups.of(job, style, len(own.shares)) for style in styles]
    covers = weights_for(own.weights, job.pictures.content)
    masks = [
        weights_for(groups.weights, style)[:, own.partners(groups)]
        for groups, style in zip(of_styles, styles, strict=True)
    ]
    names = Regions(torch.empty(0), COLORS[: len(own.shares)]).names
    shown = (f"{name} ({share:.0%})" for name, share in zip(names, own.shares, strict=True))
    logger.info("content_regions=auto: %s", ", ".join(shown))
    regions = []
    for number, name in enumerate(names):
        at = slice(number, number + 1)
        weights = covers[:, at] if whole.weights is None else covers[:, at] * whole.weights
        parts = [
            replace(part, weights=masks[part.style][:, at]) if part.style < count else part
            for part in whole.sources
        ]
        regions.append(Region(name, weights, tuple(parts)))
    return tuple(regions)


def label_pictures(regions: Sequence[Region]) -> list[Tensor]:
    """Return label pictures (1, 3, h, w) of `grouped`'s regions: content first, then styles."""
    parts = [(region, *region.sources) for region in regions]
    labels = [_largest([one.weights for one in same]) for same in zip(*parts, strict=True)]
    colors = torch.tensor(COLORS) / 255
    return [colors[each].permute(2, 0, 1)[None] for each in labels if each is not None]


def _largest(weights: Sequence[Tensor | None]) -> Tensor | None:
    """Return (H, W): the index of the largest of the weights at each pixel; None if one is None."""
    given = [each for each in weights if each is not None]
    return torch.cat(given, 1)[0].argmax(0) if len(given) == len(weights) else None


def k_means(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return centres (count, D) of groups of rows (N, D), and squared distances (N, count) to them.

    The largest group comes first.
    """
    generator, lengths = torch.Generator().manual_seed(0), rows.square().sum(1, keepdim=True)

    def squares(centres: Tensor) -> Tensor:
        products = rows @ centres.mT  # torch.cdist would copy the rows each time
        return (lengths - 2 * products + centres.square().sum(1)).clamp_min(0)

    found = []
    for _ in range(STARTS):
        centres = rows[torch.randint(len(rows), (1,), generator=generator)]
        while len(centres) < count:
            drawn = torch.multinomial(squares(centres).amin(1) + 1e-12, 1, generator=generator)
            centres = torch.cat([centres, rows[drawn]])
        for _ in range(ROUNDS):
            owned = one_hot(squares(centres).argmin(1), count).to(rows)
            sizes = owned.sum(0)[:, None]
            centres = torch.where(sizes > 0, owned.mT @ rows / sizes.clamp_min(1), centres)
        found.append((centres, squares(centres)))
    centres, distances = min(found, key=lambda one: float(one[1].amin(1).sum()))
    order = distances.argmin(1).bincount(minlength=count).argsort(descending=True, stable=True)
    return centres[order], distances[:, order]


def _alike(values: Tensor, grid: tuple[int, int]) -> Tensor:
    """Resize values (1, C, H, W) to `grid`: (C, h * w), mean 0, mean squared length up to 1."""
    values = box_mean(interpolate(values, grid, mode="bilinear", antialias=True), SMOOTHED)
    values = (values - values.mean((2, 3), keepdim=True))[0].flatten(1)
    return values / values.square().sum(0).mean().sqrt().clamp_min(FAINT)


def _guided(weights: Tensor, light: Tensor) -> Tensor:
    """Move edges of weights (1, groups, H, W), which sum to 1, to edges of `light` (1, 1, H, W)."""

    def mean(values: Tensor) -> Tensor:
        return box_mean(box_mean(values, WINDOW), WINDOW)

    covariance = mean(light * weights) - mean(light) * mean(weights)
    slope = covariance / (mean(light.square()) - mean(light).square() + EPSILON)
    offset = mean(weights) - slope * mean(light)
    filtered = (mean(slope) * light + mean(offset)).clamp(0, 1)
    return filtered / filtered.sum(1, keepdim=True)
