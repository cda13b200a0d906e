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

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate, normalize, pad

from styletransfer.losses import MatchDistance
from styletransfer.losses.moments import pixel_rows
from styletransfer.objective.criterion import SEARCHED, Criterion
from styletransfer.objective.inputs import FEWEST, Inputs, Region
from styletransfer.objective.reader import Reader
from styletransfer.objective.targets import Target, Targets, at_reference, style_targets
from styletransfer.pictures.images import resize, scaled_size

# A hypercolumn is a vector of the features of all SEARCHED layers at one position of the layer
# GRID; feature maps of the other layers are resized to the size of GRID's.
GRID = "relu3_1"
# Number of content positions that are compared with all style positions at once, to limit memory.
BLOCK = 256
# BIAS * log(weight of a style image) is added to the cosine similarity of its positions; 0.1 is
# about how much the largest cosines in two styles differ.
BIAS = 0.1
# Hypercolumns with more channels than AXES are compared along as many principal axes of the styles'
# hypercolumns. At 512 pixels, 3 of 4 content positions get the same style position as with all
# axes, the mean cosine is 0.995 of that with all axes, and the search takes a fifth of the time.
AXES = 128
# Number of positions of the styles, at least, from which the principal axes are computed.
SAMPLE = 4096
# A content position is calm, as in a clear sky, if the hypercolumns around it vary less than CALM
# times the mean of this variation over the picture. They are compared in a square with a side of
# NEIGHBOURS positions.
CALM, NEIGHBOURS = 0.65, 5
# Weight of the extra style losses on calm places, relative to the style losses on the whole region.
# With 0 a sky is pale; with 1 it also gets objects of the style, such as windows.
CALM_SHARE = 0.25
# How often a mean over NEIGHBOURS x NEIGHBOURS positions is taken, to soften edges of calm places.
SOFTENED = 3
# The extra style losses use style pixels whose rank of lightness, 0 (darkest) to 1, differs by less
# than LIKE from that of the calm places. Lightness is averaged over SMOOTHED x SMOOTHED pixels of
# the image, reduced to LIGHT_SIDE pixels.
LIKE, LIGHT_SIDE, SMOOTHED = 0.5, 128, 9
# Fraction of a style image's height and width, at each edge, left out of the search; see `_within`.
EDGE = 1 / 32


@dataclass(frozen=True)
class Matching:
    """A matching holds, for each content position, the most similar position of the styles.

    Calm positions of the content, such as those of a clear sky, are not matched. A plain surface
    would get the plainest patch of the painting; without a target, only style losses act on it.
    """

    # The first four fields are on the CPU: `values` needs float64, which some devices do not have.
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
        at = y.long()[:, None], x.long()[None]
        styles, *neighbours = (field[at] for field in (self.styles, self.rows, self.columns))
        within = y.frac()[:, None], x.frac()[None]
        maps = [features[layer] for features in self.features]
        made = maps[0].new_empty(styles.numel(), maps[0].shape[1])  # a row for each position
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
        made[self.calm[at].flatten()] = 0
        return made.view(1, *styles.shape, -1).permute(0, 3, 1, 2)  # channels_last, no copy


@torch.no_grad()
def match_targets(
    criterion: Criterion, reader: Reader, pictures: Inputs, styles: Targets
) -> tuple[dict[str, Target], Targets]:
    """Return layer -> target of its match loss, and `styles` plus style targets for calm places.

    Calm places, such as a clear sky, have no match target, but extra style losses of their own.
    The target of a match loss is the features (1, C, h, w) of the matched style positions. A match
    loss is a mean of cosines, so its weight, unlike other weights, is not divided by the loss of
    zero features.
    """
    height, width = pictures.content.shape[2:]
    targets, searches = {}, dict[tuple[tuple[int, ...], ...], Matching]()
    for layer, weight in criterion.matches.items():
        regions = tuple(replace(each, sources=each.sources_at(layer)) for each in pictures.regions)
        # Layers at which the same styles act share one search.
        key = tuple(tuple(part.style for part in region.sources) for region in regions)
        if key not in searches:
            searches[key] = matching(criterion, replace(pictures, regions=regions), reader)
        stride = reader.extractor.stride(layer)
        value = searches[key].values(layer, (height // stride, width // stride))
        targets[layer] = Target(f"match/{layer}", MatchDistance(value), weight)
    if searches:  # all searches find the same calm places
        calm = _calm_regions(pictures, next(iter(searches.values())).calm)
        for layer, added in style_targets(criterion, reader, calm).items():
            weaker = [replace(target, weight=CALM_SHARE * target.weight) for target in added]
            styles = {**styles, layer: [*styles.get(layer, []), *weaker]}
    return targets, styles


def _calm_regions(pictures: Inputs, calm: Tensor) -> Inputs:
    """Return pictures whose regions are the calm places of each region, for extra style losses.

    Calm places, such as a clear sky, have no match target. With style losses on the whole region
    alone, they would get all that its matched places lack of the style. Each style's statistics are
    taken where it is about as light as the calm places, so that no dark shape covers a bright sky.

    `calm` is (h, w), True at calm positions; its edge is softened.
    """
    soft = calm[None, None].to(pictures.content)
    for _ in range(SOFTENED):
        soft = avg_pool2d(pad(soft, (NEIGHBOURS // 2,) * 4, mode="replicate"), NEIGHBOURS, 1)
    soft = resize(soft, (pictures.content.shape[2], pictures.content.shape[3]), "bilinear")
    light, of_styles = _light(pictures.content), [_light(style) for style in pictures.styles]
    regions = []
    for region in pictures.regions:
        own = soft if region.weights is None else soft * region.weights
        if own.sum() < FEWEST:
            continue
        rank = (own * light).sum() / own.sum()
        sources = []
        for part in region.sources:
            weights = (1 - (of_styles[part.style] - rank).abs() / LIKE).clamp_min(0)
            if part.weights is not None:
                weights = weights * part.weights
            sources.append(
                replace(part, weights=weights if weights.sum() >= FEWEST else part.weights)
            )
        name = f"{region.name}/calm".removeprefix("/")
        regions.append(Region(name, own, tuple(sources)))
    return replace(pictures, regions=tuple(regions))


def _light(image: Tensor) -> Tensor:
    """Return (1, 1, H, W): each pixel's rank, in [0, 1], by the mean lightness around it."""
    size = (image.shape[2], image.shape[3])
    grey = resize(image, scaled_size(size, min(LIGHT_SIDE, max(size)))).mean(1, keepdim=True)
    grey = avg_pool2d(pad(grey, (SMOOTHED // 2,) * 4, mode="replicate"), SMOOTHED, 1)
    order = grey.flatten().argsort(stable=True)
    rank = torch.empty_like(grey)
    rank.view(-1)[order] = torch.linspace(0, 1, len(order)).to(rank)
    return resize(rank, size, "bilinear")


@torch.no_grad()
def matching(criterion: Criterion, pictures: Inputs, reader: Reader) -> Matching:
    """Return the most similar style position of every content position, among its region's styles.

    The most similar position has the largest cosine of hypercolumns, after the mean hypercolumn of
    each picture is subtracted. Calm positions of the content are left out, see `_calm`. The search
    reduces larger pictures by `at_reference`, which limits its time and memory. All pixels of one
    content position get the same match, so strokes stay whole.

    `criterion` gives the layers with match losses, and how much of the pastiche is blended into the
    content before the search. `pictures` have the sizes of one level of the coarse-to-fine run.
    Pictures with a correspondence keep it: there is no search, and no place is calm.
    """
    if (found := pictures.correspondence) is not None:
        features = [reader.features(style, criterion.matches) for style in pictures.styles]
        nowhere = torch.zeros(found.rows.shape, dtype=torch.bool)
        return Matching(nowhere, found.styles, found.rows, found.columns, found.cells, features)
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
    style: Tensor, layers: Collection[str], reader: Reader
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return a style's hypercolumns and its features at `layers`, from one forward if possible."""
    small = at_reference(style)
    seen = reader.features(small, {*SEARCHED, *layers} if small is style else SEARCHED)
    kept = seen if small is style else reader.features(style, layers)
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

    Hypercolumns are unit vectors. Their variation is 1 minus the length of their mean, the circular
    variance of directional statistics (Mardia and Jupp 2000, "Directional Statistics").
    """
    # channels_last takes a third of the time.
    wide = columns[None].contiguous(memory_format=torch.channels_last)
    around = pad(wide, (NEIGHBOURS // 2,) * 4, mode="replicate")
    variation = 1 - torch.linalg.vector_norm(avg_pool2d(around, NEIGHBOURS, 1)[0], dim=0)
    calm: Tensor = variation < CALM * variation.mean()
    return calm


def _reduced(columns: list[Tensor], used: list[Tensor]) -> list[Tensor]:
    """Project hypercolumns (D, h, w) to the AXES principal axes of `used`; make their length 1."""
    if len(columns[0]) <= AXES:
        return columns
    positions = sum(column[0].numel() for column in used)
    every = max(1, positions // SAMPLE)
    keys = (column.flatten(1)[:, ::every] for column in used)
    second = reduce(torch.add, (key @ key.mT for key in keys))
    kept = torch.linalg.eigh(second.cpu())[1][:, -AXES:].mT.to(second)
    return [normalize(torch.tensordot(kept, column, 1), dim=0) for column in columns]


def _owners(regions: Sequence[Region], size: torch.Size) -> Tensor:
    """Return (h, w), the index of the region with the largest weight at each position."""
    covers = (region.weights for region in regions if region.weights is not None)
    shares = [resize(cover, (size[0], size[1]), "bilinear") for cover in covers]
    return torch.cat(shares, 1)[0].argmax(0) if len(regions) > 1 else torch.zeros(size)


def _within(weights: Tensor | None, size: tuple[int, int]) -> Tensor:
    """Return the indices (n,) of the flattened positions of a style image that may be matched.

    With weights, these are the positions with a weight of at least 0.5, or with the largest weight.
    Without weights, the edges are left out, where photographs of paintings show frames and canvas.
    """
    if weights is None:
        rows, columns = (round(EDGE * length) for length in size)
        inside = torch.zeros(size, dtype=torch.bool)
        inside[rows : size[0] - rows, columns : size[1] - columns] = True
        return inside.flatten().nonzero()[:, 0]
    shares = resize(weights, size, "bilinear").flatten()
    return (shares >= min(0.5, float(shares.max()))).nonzero()[:, 0]
