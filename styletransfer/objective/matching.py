"""Nearest-neighbour matching: each content position gets the features of a similar style position.

A Gram matrix says how often a stroke occurs, not where. Here the target of each position of the
content image is the style's features at the most similar position of the style (Kolkin et al.
2022, "Neural Neighbor Style Transfer", arXiv:2203.13215). Li and Wand 2016 repeated such a search
at every step; Chen and Schmidt 2016 swapped patches.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate, normalize, pad

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.objective import SEARCHED, Criterion
from styletransfer.objective.inputs import FEWEST, Inputs, Region, StylePart, at_layers
from styletransfer.objective.targets import Extract, Target, Targets, at_reference
from styletransfer.pictures.images import resize
from styletransfer.system.tensors import to_float64

# A hypercolumn is a vector of the features of all SEARCHED layers at one position of the layer
# GRID; maps of the other layers are resized to the size of GRID.
GRID = "relu3_1"
# Number of content positions that are compared with all style positions at once, to limit memory.
BLOCK = 256
# BIAS * log(weight of a style image) is added to the similarity of its positions, a cosine; 0.1 is
# about the difference between the largest cosines of two styles.
BIAS = 0.1
# Number of principal axes of the styles along which hypercolumns are compared, if they have more
# channels. At 512 pixels, 3 of 4 content positions get the same style position as with all axes,
# the mean cosine is 0.995 of that with all axes, and the search takes a fifth of the time.
AXES = 128
# A content position is calm, as in a clear sky, if the hypercolumns around it vary less than CALM
# times their mean variation. NEIGHBOURS is the side of that surrounding square, in positions.
CALM, NEIGHBOURS = 0.65, 5
# Weight of the style losses of calm places alone, relative to those of their whole region. 0 leaves
# a sky pale; 1 puts more objects of the style into it, such as windows.
CALM_SHARE = 0.25
# Number of averages over NEIGHBOURS x NEIGHBOURS positions that make the edge of calm places soft.
SOFTENED = 3
# Fraction of a style image's height and width, at each edge, left out of the search; see `_within`.
EDGE = 1 / 32


@dataclass(frozen=True)
class Matching:
    """A matching holds, for each content position, the most similar position of the styles.

    Calm positions of the content, such as those of a clear sky, are not matched. A plain surface
    would get the plainest patch of the painting; without a target, only style losses act there.
    """

    # The first four are on the CPU: `values` needs float64, which some devices do not have.
    calm: Tensor  #: (h, w) bool, True at content positions that are not matched to a style position
    styles: Tensor  #: (h, w), index of the style image that has the most similar position
    rows: Tensor  #: (h, w), row of the most similar position in its style image's feature map
    columns: Tensor  #: (h, w), column of that position
    cells: list[tuple[int, int]]  #: height and width of each style image's feature map at GRID
    features: list[dict[str, Tensor]]  #: for each style image, layer -> features (1, C, h, w)

    def values(self, layer: str, size: tuple[int, int]) -> Tensor:
        """Return the features (1, C, h, w) of the style position matched to each content position.

        They are 0 at calm positions, where the match loss then has no gradient.
        `size` is the height and width of the content's features at `layer`.
        """
        # Centre of each content position at `layer`, in units of positions of `self.styles`.
        y, x = (
            (torch.arange(length, dtype=torch.float64) + 0.5) * cells / length
            for length, cells in zip(size, self.styles.shape, strict=True)
        )
        maps = [features[layer] for features in self.features]
        made = maps[0].new_zeros(maps[0].shape[1], *size)
        for (i, down), (j, right) in product(*map(_nearest, (y, x), self.styles.shape)):
            at = i[:, None], j[None]
            styles, *neighbours = (field[at] for field in (self.styles, self.rows, self.columns))
            within = (y - i)[:, None], (x - j)[None]
            share = (down[:, None] * right[None] * ~self.calm[at]).to(made)
            for number, (seen, cells) in enumerate(zip(maps, self.cells, strict=True)):
                own = (styles == number) & (share > 0).cpu()
                places = [
                    ((cell + part) * length / count).long().clamp(0, length - 1)[own]
                    for cell, part, count, length in zip(
                        neighbours, within, cells, seen.shape[2:], strict=True
                    )
                ]
                made[:, own] += share[own] * seen[0][:, places[0], places[1]]
        made[:, self.calm[y.long()[:, None], x.long()[None]]] = 0
        return made[None].contiguous(memory_format=torch.channels_last)


def _nearest(centres: Tensor, count: int) -> list[tuple[Tensor, Tensor]]:
    """Return the cells (n,) nearest to centres (n,) along an axis of `count` cells, and weights.

    `centres` are in cells. At layers finer than the search these are the two nearest cells, with
    the weights of linear interpolation: features of one cell alone would show its edges as a grid.
    """
    if len(centres) <= count:
        return [(centres.long(), torch.ones_like(centres))]
    first = (centres - 0.5).floor()
    weight = centres - 0.5 - first
    pairs = ((first, 1 - weight), (first + 1, weight))
    return [(cell.long().clamp(0, count - 1), share) for cell, share in pairs]


@torch.no_grad()
def match_targets(
    criterion: Criterion,
    extractor: FeatureExtractor,
    pictures: Inputs,
    styles: Targets,
    extract: Extract,
) -> tuple[dict[str, Target], Targets]:
    """Return layer -> target of its match loss, and `styles` with those of calm places added.

    The target of a match loss is the features (1, C, h, w) of the matched positions; `extract`
    returns the features of an image at some layers. A match loss is a mean of cosines, so its
    weight, unlike other weights, is not divided by the loss of features that are all zero.
    """
    height, width = pictures.content.shape[2:]
    targets, searches = {}, dict[tuple[tuple[int, ...], ...], Matching]()
    for layer, weight in criterion.matches.items():
        regions = tuple(replace(each, sources=_parts_at(each, layer)) for each in pictures.regions)
        # Layers at which the same styles act share one search.
        key = tuple(tuple(part.style for part in region.sources) for region in regions)
        if key not in searches:
            searches[key] = matching(criterion, replace(pictures, regions=regions), extract)
        stride = extractor.stride(layer)
        value = searches[key].values(layer, (height // stride, width // stride))
        targets[layer] = Target(f"match/{layer}", value, weight)
    for found in searches.values():  # all have the same calm places
        return targets, _with_calm(extractor, pictures, styles, found.calm)
    return targets, styles


def _with_calm(
    extractor: FeatureExtractor, pictures: Inputs, styles: Targets, calm: Tensor
) -> Targets:
    """Return style targets with one more for the calm places of each region.

    Calm places have no match target, and would otherwise only make up for what the matched places
    lack of the style. `calm` is (h, w), bool; its edge is made soft.
    """
    soft = calm[None, None].to(pictures.content)
    for _ in range(SOFTENED):
        soft = avg_pool2d(pad(soft, (NEIGHBOURS // 2,) * 4, mode="replicate"), NEIGHBOURS, 1)
    size = (pictures.content.shape[2], pictures.content.shape[3])
    seen = at_layers(extractor, resize(soft, size, "bilinear"), styles)
    made = {layer: [*targets] for layer, targets in styles.items()}
    for layer, positions in seen.items():
        if positions is None:
            continue
        for target in styles[layer]:
            own = torch.ones_like(positions) if target.positions is None else target.positions
            share = float(to_float64(own * positions).sum() / to_float64(own).sum())
            if share * own.sum() >= FEWEST:
                name = f"{target.name.removesuffix(layer)}calm/{layer}"
                weight = CALM_SHARE * share * target.weight
                made[layer].append(Target(name, target.value, weight, own * positions))
    return made


def _parts_at(region: Region, layer: str) -> tuple[StylePart, ...]:
    """Return a region's style images that are used at a layer, or all of them if none is."""
    acting = [part for part in region.sources if part.layers is None or layer in part.layers]
    return tuple(acting) or region.sources


@torch.no_grad()
def matching(criterion: Criterion, pictures: Inputs, extract: Extract) -> Matching:
    """Return the most similar style position of every content position, in its region's styles.

    The most similar position has the largest cosine of hypercolumns, after the mean hypercolumn of
    each picture is subtracted. Calm positions of the content are left out, see `_calm`. The search
    reduces larger pictures by `at_reference`, which limits its time and memory. All pixels of one
    searched position move together, so strokes stay whole.

    `criterion` gives the layers with match losses, and how much of the pastiche is blended into the
    content that is matched; `pictures` are those of one scale.
    """
    sought = pictures.content
    if pictures.start is not None:
        sought = torch.lerp(sought, pictures.start, criterion.painted_share)
    extracted = [_style_columns(style, criterion.matches, extract) for style in pictures.styles]
    columns = [_columns(extract(at_reference(sought), SEARCHED)), *(each for each, _ in extracted)]
    used = {part.style for region in pictures.regions for part in region.sources}
    wanted, *offered = _reduced(columns, [columns[1 + number] for number in sorted(used)])
    grid, cells = wanted.shape[1:], [(keys.shape[1], keys.shape[2]) for keys in offered]
    content = columns[0]
    if sought is not pictures.content:
        content = _columns(extract(at_reference(pictures.content), SEARCHED))
    calm = _calm(content)
    queries, owners = wanted.flatten(1).mT, _owners(pictures.regions, grid).to(wanted.device)
    score = queries.new_full((len(queries),), -math.inf)
    styles, places = torch.zeros(2, len(queries), dtype=torch.long, device=queries.device)
    for number, region in enumerate(pictures.regions):
        own = ((owners == number) & ~calm).flatten().nonzero()[:, 0]
        for part in region.sources:
            within = _within(part.weights, cells[part.style]).to(queries.device)
            keys = offered[part.style].flatten(1).mT[within]
            for block in torch.split(own, BLOCK):
                nearest, place = (queries[block] @ keys.mT).max(1)
                nearest += BIAS * math.log(part.share)
                better = block[nearest > score[block]]
                score[block] = torch.maximum(score[block], nearest)
                styles[better] = part.style
                places[better] = within[place[torch.isin(block, better)]]
    styles, places = styles.cpu(), places.cpu()
    wide = torch.tensor([width for _, width in cells])[styles]
    return Matching(
        calm=calm.cpu(),
        styles=styles.view(grid),
        rows=(places // wide).view(grid),
        columns=(places % wide).view(grid),
        cells=cells,
        features=[features for _, features in extracted],
    )


def _style_columns(
    style: Tensor, layers: Collection[str], extract: Extract
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return a style's hypercolumns and its features at `layers`, by one forward if possible."""
    small = at_reference(style)
    seen = extract(small, {*SEARCHED, *layers} if small is style else SEARCHED)
    kept = seen if small is style else extract(style, layers)
    return _columns(seen), {layer: kept[layer] for layer in layers}


def _columns(seen: dict[str, Tensor]) -> Tensor:
    """Return features as hypercolumns (D, h, w), minus their mean, each divided by its length."""
    layers = []
    for name in SEARCHED:
        exact = torch.promote_types(seen[name].dtype, torch.float32)
        size = seen[GRID].shape[2:]
        features = interpolate(seen[name].to(exact), size, mode="bilinear", align_corners=False)
        layers.append(features / features.square().sum(1).mean().sqrt().clamp_min(1e-12))
    columns = torch.cat(layers, 1)
    return normalize(columns - columns.mean((2, 3), keepdim=True), dim=1)[0]


def _calm(columns: Tensor) -> Tensor:
    """Return (h, w), True where the hypercolumns (D, h, w) vary little around a position.

    Their variation is 1 minus the length of the mean of unit vectors, the circular variance of
    directional statistics (Mardia and Jupp 2000, "Directional Statistics").
    """
    around = pad(columns[None], (NEIGHBOURS // 2,) * 4, mode="replicate")
    variation = 1 - torch.linalg.vector_norm(avg_pool2d(around, NEIGHBOURS, 1)[0], dim=0)
    calm: Tensor = variation < CALM * variation.mean()
    return calm


def _reduced(columns: list[Tensor], used: list[Tensor]) -> list[Tensor]:
    """Project hypercolumns (D, h, w) to the AXES principal axes of `used`; make their length 1."""
    if len(columns[0]) <= AXES:
        return columns
    keys = (column.flatten(1) for column in used)
    second = reduce(torch.add, (key @ key.mT for key in keys))
    kept = torch.linalg.eigh(second.cpu().double())[1][:, -AXES:].mT.to(second)
    return [normalize(torch.tensordot(kept, column, 1), dim=0) for column in columns]


def _owners(regions: Sequence[Region], size: torch.Size) -> Tensor:
    """Return (h, w), the index of the region with the largest weight at each position."""
    covers = (region.weights for region in regions if region.weights is not None)
    shares = [resize(cover, (size[0], size[1]), "bilinear") for cover in covers]
    return torch.cat(shares, 1)[0].argmax(0) if len(regions) > 1 else torch.zeros(size)


def _within(weights: Tensor | None, size: tuple[int, int]) -> Tensor:
    """Return the indices (n,) of the flattened positions of a style image that may be matched.

    With weights, these are the positions with a weight of at least 0.5, or with the largest weight.
    Without weights, all but the edges: photographs of paintings show frames and bare canvas there.
    """
    if weights is None:
        rows, columns = (round(EDGE * length) for length in size)
        inside = torch.zeros(size, dtype=torch.bool)
        inside[rows : size[0] - rows, columns : size[1] - columns] = True
        return inside.flatten().nonzero()[:, 0]
    shares = resize(weights, size, "bilinear").flatten()
    return (shares >= min(0.5, float(shares.max()))).nonzero()[:, 0]
