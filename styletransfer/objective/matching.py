"""Nearest-neighbour matching: each content position gets the features of a similar style position.

A Gram matrix says how often a stroke occurs, not where. Here the target of each position of the
content image is the style's features at the most similar position of the style (Kolkin et al.
2022, "Neural Neighbor Style Transfer", arXiv:2203.13215). Li and Wand 2016 repeated such a search
at every step; Chen and Schmidt 2016 swapped patches.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import interpolate, normalize

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.features.tensors import principal_axes
from styletransfer.losses import MatchDistance
from styletransfer.losses.moments import pixel_rows
from styletransfer.objective.calm import (
    FREE,
    busyness,
    calm_places,
    coordinates,
    placed_keys,
    placed_queries,
)
from styletransfer.objective.criterion import SEARCHED, Criterion
from styletransfer.objective.inputs import Correspondence, Inputs, Region, Size
from styletransfer.objective.reader import Reader
from styletransfer.objective.targets import (
    Target,
    Targets,
    at_reference,
    reference_size,
)
from styletransfer.pictures.images import resize, scaled_size, size_of
from styletransfer.system.devices import at_a_time

# A hypercolumn is a vector of the features of all SEARCHED layers at one position of the layer
# GRID. The feature maps of the other layers are resized to the size of GRID's feature map.
GRID = "relu3_1"
# Number of content positions that the CPU compares with all style positions at once. It limits
# memory; `at_a_time` gives the number for a GPU.
BLOCK = 256
# If a region has several styles, BIAS * log(share of a style) is added to the cosines of this
# style's positions. 0.1 is about the difference between the largest cosines found in two styles.
BIAS = 0.1
# Hypercolumns with more than AXES channels are compared along AXES principal axes of the styles'
# hypercolumns. At 512 pixels, 3 of 4 content positions then get the same style position as with all
# axes. The mean cosine is 0.995 times as large, and the search takes a fifth of the time.
AXES = 128
# The principal axes are computed from a sample of the styles' positions: from SAMPLE or more
# positions, or from all of them if there are fewer.
SAMPLE = 4096
# The search leaves out this fraction of a style image's height and width at each edge; see
# `_within`.
EDGE = 1 / 32
# `busyness` looks at a style image at smaller sizes, too: in pixels, the longer side is at least
# COARSEST and the shorter side at least NARROWEST, which gives relu4_1 four positions.
COARSEST, NARROWEST = 128, 32


@dataclass(frozen=True)
class Matching:
    """A matching holds, for each content position, the most similar position of the styles."""

    # The first five fields are on the CPU, because `_centres` needs float64 (MPS has none).
    calm: Tensor  #: (h, w) bool, True at calm content positions, such as in a clear sky
    weights: Tensor  #: (h, w) in [0, 1], weights of the content positions in the match losses
    styles: Tensor  #: (h, w), index of the style image that has the most similar position
    rows: Tensor  #: (h, w), row of the most similar position in its style image's feature map
    columns: Tensor  #: (h, w), column of the most similar position
    cells: list[tuple[int, int]]  #: (height, width) of each style image's feature map at GRID
    features: list[dict[str, Tensor]]  #: for each style image, layer -> features (1, C, h, w)
    freedom: list[float]  #: for each style image, its freedom in [0, 1]; see `calm.py`

    @classmethod
    def at(cls, found: Correspondence, features: list[dict[str, Tensor]]) -> Self:
        """Return the matches of a correspondence as a matching; all positions have weight 1."""
        calm, freedom = torch.zeros(found.size, dtype=torch.bool), [0.0] * len(features)
        styles, rows, columns = found.places.long()
        weights = (~calm).double()
        return cls(calm, weights, styles, rows, columns, found.cells, features, freedom)

    def values(self, layer: str, size: tuple[int, int]) -> Tensor:
        """Return the features (1, C, h, w) of the style position matched to each content position.

        `size` is the height and width of the content's features at `layer`.
        """
        y, x = self._centres(size)
        at = y.long()[:, None], x.long()[None]
        styles, *neighbours = (field[at] for field in (self.styles, self.rows, self.columns))
        within = y.frac()[:, None], x.frac()[None]
        maps = [features[layer] for features in self.features]
        made = maps[0].new_empty(styles.numel(), maps[0].shape[1])  # (h * w, C)
        for number, (seen, cells) in enumerate(zip(maps, self.cells, strict=True)):
            own = (styles == number).flatten().nonzero()[:, 0]
            down, right = (
                ((cell + part) * length / count).long().flatten()[own]
                for cell, part, count, length in zip(
                    neighbours, within, cells, seen.shape[2:], strict=True
                )
            )
            taken = pixel_rows(seen)[down * seen.shape[3] + right]
            made[own.to(made.device)] = taken
        return made.view(1, *styles.shape, -1).permute(0, 3, 1, 2)  # channels_last, no copy

    def weights_at(self, size: tuple[int, int]) -> Tensor:
        """Return the weights (1, 1, h, w) of content positions at a layer of (h, w) = `size`."""
        y, x = self._centres(size)
        return self.weights[y.long()[:, None], x.long()[None]][None, None]

    def _centres(self, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Return y (h,) and x (w,): a layer's rows and columns in the grid of `styles`."""
        y, x = (
            (torch.arange(length, dtype=torch.float64) + 0.5) * cells / length
            for length, cells in zip(size, self.styles.shape, strict=True)
        )
        return y, x


def searches(criterion: Criterion, reader: Reader, pictures: Inputs) -> dict[str, Matching]:
    """Return layer -> matching for each layer with a match loss; `{}` if there is no such layer.

    Layers at which the same styles act share one search. All searches find the same calm places.
    """
    found: dict[str, Matching] = {}
    made = dict[tuple[tuple[int, ...], ...], Matching]()
    for layer in criterion.matches:
        regions = tuple(replace(each, sources=each.sources_at(layer)) for each in pictures.regions)
        key = tuple(tuple(part.style for part in region.sources) for region in regions)
        if key not in made:
            made[key] = matching(criterion, replace(pictures, regions=regions), reader)
        found[layer] = made[key]
    return found


def match_targets(
    criterion: Criterion, extractor: FeatureExtractor, found: Mapping[str, Matching], size: Size
) -> Targets:
    """Return layer -> target of its match loss, for the result of `searches`.

    The target is the features (1, C, h, w) of the matched style positions. `size` is the content's
    (height, width). The weight of a content or style loss may be divided by the loss of features
    that are all 0. A match loss needs no divisor, because it is a mean of 1 - cosine.
    """
    targets: Targets = {}
    for layer, matches in found.items():
        stride = extractor.stride(layer)
        at = (size[0] // stride, size[1] // stride)
        value, weights = matches.values(layer, at), matches.weights_at(at)
        distance = MatchDistance(value, weights.to(value.device))
        targets[layer] = [Target(f"match/{layer}", distance, criterion.matches[layer])]
    return targets


@torch.no_grad()
def matching(criterion: Criterion, pictures: Inputs, reader: Reader) -> Matching:
    """Find, for each content position, the most similar position of its region's styles.

    The most similar position has the largest cosine of hypercolumns, after the mean hypercolumn of
    each picture is subtracted. If a region has several styles, their shares count as well, see
    BIAS. For a calm content position, row, column and lightness count, see `placed_queries`. A
    style's edges may be left out, see `_within`. To limit time and memory, the search uses pictures
    that `at_reference` has reduced. A content position is one of the layer GRID, and stands for
    several pixels. They all get the same match, so strokes stay whole.

    `criterion` gives the layers with match losses, and how much of the pastiche is blended into the
    content before the search. `pictures` have the sizes of one level of the coarse-to-fine run.
    If `pictures` have a correspondence, the function returns its matches without a search, and no
    position is calm.
    """
    if (found := pictures.correspondence) is not None:
        features = [reader.features(style, criterion.matches) for style in pictures.styles]
        return Matching.at(found, features)
    sought = pictures.content
    if pictures.start is not None:
        sought = torch.lerp(sought, pictures.start, criterion.painted_share)
    extracted = [_style_columns(style, criterion.matches, reader) for style in pictures.styles]
    columns = [_columns(reader.features(at_reference(sought), SEARCHED))]
    columns += [each for each, _ in extracted]
    used = {part.style for region in pictures.regions for part in region.sources}
    wanted, *offered = _reduced(columns, [columns[1 + number] for number in sorted(used)])
    grid, cells = wanted.shape[1:], [(keys.shape[1], keys.shape[2]) for keys in offered]
    content = columns[0]
    if sought is not pictures.content:
        content = _columns(reader.features(at_reference(pictures.content), SEARCHED))
    calm = calm_places(content)
    grids = [one.shape[1:] for one in (wanted, *offered)]
    u, *of_styles = map(coordinates, pictures.tensors, grids)
    queries = placed_queries(wanted, u, calm)
    owners = owners_of(pictures.regions, (grid[0], grid[1])).to(wanted.device)
    score = queries.new_full((len(queries),), -math.inf)
    styles, places = torch.zeros(2, len(queries), dtype=torch.long, device=queries.device)
    for number, region in enumerate(pictures.regions):
        own = (owners == number).flatten().nonzero()[:, 0]
        for part in region.sources:
            within = _within(part.weights, cells[part.style]).to(queries.device)
            keys = placed_keys(offered[part.style], of_styles[part.style])[within]
            for block in torch.split(own, at_a_time(BLOCK, own.device, len(keys))):
                nearest, place = (queries[block] @ keys.mT).max(1)
                nearest += BIAS * math.log(part.share)
                better = block[nearest > score[block]]
                score[block] = torch.maximum(score[block], nearest)
                styles[better] = part.style
                places[better] = within[place[torch.isin(block, better)]]
    styles, places, calm = styles.cpu(), places.cpu(), calm.cpu()
    freedom = [
        busyness([columns, *_coarser_columns(style, reader)])
        if criterion.calm_freedom is None
        else criterion.calm_freedom
        for style, (columns, _) in zip(pictures.styles, extracted, strict=True)
    ]
    free = torch.tensor(freedom, dtype=torch.float64)
    wide = torch.tensor([width for _, width in cells])[styles]
    return Matching(
        calm=calm,
        weights=1 - FREE * free[styles.view(grid)] * calm,
        styles=styles.view(grid),
        rows=(places // wide).view(grid),
        columns=(places % wide).view(grid),
        cells=cells,
        features=[features for _, features in extracted],
        freedom=freedom,
    )


def is_searched(pictures: Inputs, image: Tensor) -> bool:
    """Tell whether a search will read `image` at its own size; a larger image is first reduced."""
    return pictures.correspondence is None and reference_size(image) == size_of(image)


def _style_columns(
    style: Tensor, layers: Collection[str], reader: Reader
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return a style's hypercolumns and features at `layers`, by one forward pass if possible."""
    small = at_reference(style)
    seen = reader.features(small, {*SEARCHED, *layers} if small is style else SEARCHED)
    kept = seen if small is style else reader.features(style, layers)
    return _columns(seen), {layer: kept[layer] for layer in layers}


def _coarser_columns(style: Tensor, reader: Reader) -> Iterator[Tensor]:
    """Yield a style's hypercolumns (D, h, w) at half the size of the search, a quarter, and so on.

    The last size is the smallest that COARSEST and NARROWEST allow.
    """
    size = reference_size(style)
    while max(size) >= 2 * COARSEST and min(size) >= 2 * NARROWEST:
        size = scaled_size(size, max(size) // 2)
        yield _columns(reader.features(resize(style, size), SEARCHED))


def _columns(seen: dict[str, Tensor]) -> Tensor:
    """Return hypercolumns (D, h, w) of features, after their mean is subtracted, with length 1."""
    layers = []
    for name in SEARCHED:
        exact = torch.promote_types(seen[name].dtype, torch.float32)
        size = seen[GRID].shape[2:]
        features = interpolate(seen[name].to(exact), size, mode="bilinear", align_corners=False)
        layers.append(features / features.square().sum(1).mean().sqrt().clamp_min(1e-12))
    columns = torch.cat(layers, 1)
    return normalize(columns - columns.mean((2, 3), keepdim=True), dim=1)[0]


def _reduced(columns: list[Tensor], used: list[Tensor]) -> list[Tensor]:
    """Project hypercolumns (D, h, w) on AXES principal axes of `used`; normalise to length 1."""
    if len(columns[0]) <= AXES:
        return columns
    positions = sum(column[0].numel() for column in used)
    every = max(1, positions // SAMPLE)
    keys = (column.flatten(1)[:, ::every] for column in used)
    second = reduce(torch.add, (key @ key.mT for key in keys))
    kept = principal_axes(second, AXES).mT
    return [normalize(torch.tensordot(kept, column, 1), dim=0) for column in columns]


def owners_of(regions: Sequence[Region], size: tuple[int, int]) -> Tensor:
    """Return (h, w), the index of the region with the largest weight at each position."""
    covers = (region.weights for region in regions if region.weights is not None)
    shares = [resize(cover, size, "bilinear") for cover in covers]
    if len(regions) > 1:
        return torch.cat(shares, 1)[0].argmax(0)
    return torch.zeros(size, dtype=torch.long)


def covered(weights: Tensor, size: tuple[int, int]) -> Tensor:
    """Return (h, w), True where a weight is at least 0.5; if none is, where it is largest."""
    shares = resize(weights, size, "bilinear")[0, 0]
    return shares >= min(0.5, float(shares.max()))


def _within(weights: Tensor | None, size: tuple[int, int]) -> Tensor:
    """Return the indices (n,) of the flattened positions of a style image that may be matched.

    With weights, these are the positions with a weight of at least 0.5; if there are none, those
    with the largest weight. Without weights, the edges are left out, because photographs of
    paintings show frames and canvas there.
    """
    if weights is None:
        rows, columns = (round(EDGE * length) for length in size)
        inside = torch.zeros(size, dtype=torch.bool)
        inside[rows : size[0] - rows, columns : size[1] - columns] = True
        return inside.flatten().nonzero()[:, 0]
    return covered(weights, size).flatten().nonzero()[:, 0]
