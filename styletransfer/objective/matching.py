"""Nearest-neighbour feature matching: the style's features in the place of the content's.

Statistics say how often a stroke occurs, not where. Here every position of the content is given the
style's features at the place that is most like it, and the picture is drawn towards those (Kolkin
et al. 2022, "Neural Neighbor Style Transfer", arXiv:2203.13215; Li and Wand 2016 had searched so at
every step, Chen and Schmidt 2016 had swapped patches). To all that follows they are the content's.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import interpolate, normalize

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.objective.criterion import SEARCHED, Criterion
from styletransfer.objective.inputs import Inputs, Region, StylePart
from styletransfer.objective.targets import Target, at_reference
from styletransfer.pictures.images import resize

# The layer whose resolution hypercolumns have.
GRID = "relu3_1"
# Number of positions whose neighbours are searched at a time.
BLOCK = 256
# Score bonus per unit of log(style weight); 0.1 is about the gap in cosine between the best matches
# of two styles.
BIAS = 0.1
# Number of principal axes of the styles along which hypercolumns are compared, if they have more
# channels. At 512 pixels three in four neighbours are those of all axes, at 0.995 of their cosine,
# in a fifth of the time.
AXES = 128
# Share of a style image's height and width, at each edge, whose positions are not offered.
EDGE = 1 / 32

# (image, layers) -> layer -> features (1, C, h, w).
Look = Callable[[Tensor, Collection[str]], dict[str, Tensor]]


@dataclass(frozen=True)
class Matching:
    """Where in the styles each position of the content has its nearest neighbour."""

    # On the CPU: where there is no float64, half a position would be rounded away.
    styles: Tensor  #: (h, w), numbers of style images
    rows: Tensor  #: (h, w), the row of the neighbour in the grid of its style
    columns: Tensor  #: likewise, its column
    cells: list[tuple[int, int]]  #: height and width of the grid of each style image
    features: list[dict[str, Tensor]]  #: layer -> (1, C, h, w), of each style image

    def values(self, layer: str, size: tuple[int, int]) -> Tensor:
        """Return the styles' features (1, C, h, w) for the content's positions at a matched layer.

        `size` is the height and width of the content's features at that layer.
        """
        # The middle of each position, in cells of the content's grid.
        y, x = (
            (torch.arange(length, dtype=torch.float64) + 0.5) * cells / length
            for length, cells in zip(size, self.styles.shape, strict=True)
        )
        at = y.long()[:, None], x.long()[None]
        styles, *neighbours = (field[at] for field in (self.styles, self.rows, self.columns))
        within = y.frac()[:, None], x.frac()[None]
        maps = [features[layer] for features in self.features]
        made = maps[0].new_empty(maps[0].shape[1], *styles.shape)
        for number, (seen, cells) in enumerate(zip(maps, self.cells, strict=True)):
            mine = styles == number
            places = [
                ((cell + part) * length / count).long()[mine]
                for cell, part, count, length in zip(
                    neighbours, within, cells, seen.shape[2:], strict=True
                )
            ]
            made[:, mine] = seen[0][:, places[0], places[1]]
        return made[None].contiguous(memory_format=torch.channels_last)


@torch.no_grad()
def match_targets(
    criterion: Criterion, extractor: FeatureExtractor, pictures: Inputs, look: Look
) -> dict[str, Target]:
    """Return layer -> match target, the style's features (1, C, h, w) that are nearest.

    `look` returns the features of an image at some layers. A match loss, made of cosines, is never
    divided by its target's size.
    """
    height, width = pictures.content.shape[2:]
    targets, searches = {}, dict[tuple[tuple[int, ...], ...], Matching]()
    for layer, weight in criterion.matches.items():
        regions = tuple(replace(each, sources=_heard(each, layer)) for each in pictures.regions)
        # Layers at which the same styles speak share one search.
        key = tuple(tuple(part.style for part in region.sources) for region in regions)
        if key not in searches:
            searches[key] = matching(criterion, replace(pictures, regions=regions), look)
        stride = extractor.stride(layer)
        value = searches[key].values(layer, (height // stride, width // stride))
        targets[layer] = Target(f"match/{layer}", value, weight)
    return targets


def _heard(region: Region, layer: str) -> tuple[StylePart, ...]:
    """Return the parts of a region's style that speak at a layer; all if none does."""
    heard = [part for part in region.sources if part.layers is None or layer in part.layers]
    return tuple(heard) or region.sources


@torch.no_grad()
def matching(criterion: Criterion, pictures: Inputs, look: Look) -> Matching:
    """Look for the nearest neighbour of every position in what its region is made of.

    Positions are as near as the cosine of their hypercolumns, each about the mean of its picture.
    The search sees pictures at most as large as `at_reference` leaves them, and beyond that what
    stands beside a position goes with it: time and memory grow no more, and strokes stay whole.

    The criterion says which layers are matched, and how much of the pastiche so far is searched;
    the pictures are those of one scale.
    """
    sought = pictures.content
    if pictures.painted is not None:
        sought = torch.lerp(sought, pictures.painted, criterion.painted_share)
    looks = [_looked_at(style, criterion.matches, look) for style in pictures.styles]
    columns = [_columns(look(at_reference(sought), SEARCHED)), *(each for each, _ in looks)]
    used = {part.style for region in pictures.regions for part in region.sources}
    wanted, *offered = _reduced(columns, [columns[1 + number] for number in sorted(used)])
    grid, cells = wanted.shape[1:], [(keys.shape[1], keys.shape[2]) for keys in offered]
    queries, owners = wanted.flatten(1).mT, _owners(pictures.regions, grid).to(wanted.device)
    score = queries.new_full((len(queries),), -math.inf)
    styles, places = torch.zeros(2, len(queries), dtype=torch.long, device=queries.device)
    for number, region in enumerate(pictures.regions):
        mine = (owners.flatten() == number).nonzero()[:, 0]
        for part in region.sources:
            within = _within(part.weights, cells[part.style]).to(queries.device)
            keys = offered[part.style].flatten(1).mT[within]
            for block in torch.split(mine, BLOCK):
                nearest, place = (queries[block] @ keys.mT).max(1)
                nearest += BIAS * math.log(part.share)
                better = block[nearest > score[block]]
                score[block] = torch.maximum(score[block], nearest)
                styles[better] = part.style
                places[better] = within[place[torch.isin(block, better)]]
    styles, places = styles.cpu(), places.cpu()
    wide = torch.tensor([width for _, width in cells])[styles]
    return Matching(
        styles=styles.view(grid),
        rows=(places // wide).view(grid),
        columns=(places % wide).view(grid),
        cells=cells,
        features=[features for _, features in looks],
    )


def _looked_at(
    style: Tensor, layers: Collection[str], look: Look
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the hypercolumns of a style, and its features at `layers`, in one look if it can."""
    small = at_reference(style)
    seen = look(small, {*SEARCHED, *layers} if small is style else SEARCHED)
    kept = seen if small is style else look(style, layers)
    return _columns(seen), {layer: kept[layer] for layer in layers}


def _columns(seen: dict[str, Tensor]) -> Tensor:
    """Return the hypercolumns (D, h, w) of SEARCHED about their mean, each of length 1."""
    layers = []
    for name in SEARCHED:
        exact = torch.promote_types(seen[name].dtype, torch.float32)
        size = seen[GRID].shape[2:]
        features = interpolate(seen[name].to(exact), size, mode="bilinear", align_corners=False)
        layers.append(features / features.square().sum(1).mean().sqrt().clamp_min(1e-12))
    columns = torch.cat(layers, 1)
    return normalize(columns - columns.mean((2, 3), keepdim=True), dim=1)[0]


def _reduced(columns: list[Tensor], used: list[Tensor]) -> list[Tensor]:
    """Return hypercolumns (D, h, w) of length 1 along the principal axes of those `used`."""
    if len(columns[0]) <= AXES:
        return columns
    keys = (column.flatten(1) for column in used)
    second = reduce(torch.add, (key @ key.mT for key in keys))
    kept = torch.linalg.eigh(second.cpu().double())[1][:, -AXES:].mT.to(second)
    return [normalize(torch.tensordot(kept, column, 1), dim=0) for column in columns]


def _owners(regions: Sequence[Region], size: torch.Size) -> Tensor:
    """Return (h, w), the number of the region that has most of each position."""
    covers = (region.weights for region in regions if region.weights is not None)
    shares = [resize(cover, (size[0], size[1]), "bilinear") for cover in covers]
    return torch.cat(shares, 1)[0].argmax(0) if len(regions) > 1 else torch.zeros(size)


def _within(weights: Tensor | None, size: tuple[int, int]) -> Tensor:
    """Return the positions of a style image that are mostly inside, or as much as any.

    Where the whole style image is inside, its edges are not: there photographs of paintings show
    frames and bare canvas, which would become the frame of the pastiche.
    """
    if weights is None:
        rows, columns = (round(EDGE * length) for length in size)
        inside = torch.zeros(size, dtype=torch.bool)
        inside[rows : size[0] - rows, columns : size[1] - columns] = True
        return inside.flatten().nonzero()[:, 0]
    shares = resize(weights, size, "bilinear").flatten()
    return (shares >= min(0.5, float(shares.max()))).nonzero()[:, 0]
