"""Paired painting: a photograph and its painting tell how another photograph would be painted.

For each pixel of the content image, a search finds the most similar pixel of the photographs that
were painted, and copies the pixel of the painting that lies there. This is image analogies
(Hertzmann et al. 2001) by the search of PatchMatch (Barnes et al. 2009). Strokes stay whole, since
neighbours propose their matches to each other, and since the search is repeated with the patches
of the picture so far beside those of the paintings, as in StyLit (Fiser et al. 2016).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, interpolate, pad, unfold

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.objective.inputs import Correspondence, Inputs, Region
from styletransfer.objective.matching import Matching
from styletransfer.pictures.images import resize, scaled_size

# Colours are compared after blurs with these standard deviations in pixels, and lightness also as
# the difference of blurs (EDGES), which is the same in another light. Each kind of axes is divided
# by its root mean square in the photographs, then multiplied by its weight.
COLORS, COLOR_WEIGHT = (0.7, 2.0), 1.0
EDGES, EDGES_WEIGHT = (0.8, 2.4), 0.7
# Layer -> weight of its features, of which the AXES principal axes are compared.
LAYERS, AXES = {"relu2_1": 0.4, "relu3_1": 0.2, "relu4_1": 0.2}, 8
# Painted patches have PATCH x PATCH pixels, of which PATCH_AXES principal axes are compared with
# the weight PATCH_WEIGHT, in ROUNDS searches after the first.
PATCH, PATCH_AXES, PATCH_WEIGHT, ROUNDS = 5, 12, 0.7, 2
# Longer side in pixels of the content, and of a painting, in a search; larger ones are reduced.
CONTENT_SIDE, STYLE_SIDE = 512, 1024
# The first search compares means of CELL x CELL pixels, all with all, BLOCK at a time.
CELL, BLOCK = 4, 512
# Distances in pixels of the neighbours that propose their match, and of random proposals.
NEIGHBOURS, RANDOM = (8, 4, 2, 1), (16, 8, 4, 2, 1)
# Standard deviation in pixels of the blur below which the copied pixels keep the mean of the
# overlapping patches: single pixels are crisp, means have the right tone.
TONE = 2.0
LUMA = (0.299, 0.587, 0.114)


@torch.no_grad()
def correspondence(extractor: FeatureExtractor, pictures: Inputs) -> Correspondence:
    """Return the most similar pixel of `pictures.sources` for every pixel of the content image.

    Pictures larger than CONTENT_SIDE, or STYLE_SIDE, are all reduced by one factor. The result
    depends on no global random state.
    """
    sides = [(max(pictures.content.shape), CONTENT_SIDE)]
    sides += [(max(style.shape), STYLE_SIDE) for style in pictures.styles]
    factor = min(1.0, *(most / side for side, most in sides))
    content, *others = (
        resize(
            image.float(), scaled_size(_size(image), max(CELL, round(factor * max(image.shape))))
        )
        for image in (pictures.content, *pictures.sources, *pictures.styles)
    )
    sources, painted = others[: len(pictures.sources)], others[len(pictures.sources) :]
    keys, wanted = _guides(extractor, content, sources)
    search = _Search.over(content, sources, pictures.regions)
    search.begin(keys, wanted)
    for _ in range(ROUNDS):
        made = search.mean_of_patches(painted)
        shown, now = _reduced([_patches(one) for one in painted], _patches(made), PATCH_AXES)
        pair = (_weighed(shown, now, PATCH_WEIGHT), (keys, wanted))
        search.improve(*(torch.cat(parts, 1) for parts in zip(*pair, strict=True)))
    return search.result()


def copied(found: Correspondence, styles: Sequence[Tensor], size: tuple[int, int]) -> Tensor:
    """Return the picture (1, 3, H, W) of the matched pixels of the paintings `styles`.

    Its blur is that of the mean of overlapping patches, see TONE.
    """
    search = _Search.of(found)
    small = [resize(style.float(), cell) for style, cell in zip(styles, found.cells, strict=True)]
    tone = search.mean_of_patches(small) - search.pixels(small)
    kept = [{"pixels": style} for style in styles]
    nowhere = torch.zeros(found.rows.shape, dtype=torch.bool)
    matched = Matching(nowhere, found.styles, found.rows, found.columns, found.cells, kept)
    picture = matched.values("pixels", size) + resize(_blurred(tone, TONE), size).to(styles[0])
    return picture.clamp(0, 1)


@dataclass
class _Search:
    """A search holds, for each of the content's pixels, the index of a pixel of the sources.

    The pixels of all sources are counted one source after the other, row by row.
    """

    size: tuple[int, int]  # (height, width) of the content
    cells: list[tuple[int, int]]  # (height, width) of each source
    index: Tensor  # (h * w,)
    # (regions, number of sources), whether a source paints there; and the region of each pixel.
    allowed: Tensor
    owners: Tensor
    cost: Tensor = field(init=False)  # (h * w,), squared distance of the axes
    keys: Tensor = field(init=False)  # (pixels of all sources, D)
    wanted: Tensor = field(init=False)  # (h * w, D)

    @classmethod
    def over(cls, content: Tensor, sources: Sequence[Tensor], regions: Sequence[Region]) -> Self:
        """Return a search that respects which styles paint a region."""
        size, cells = _size(content), [_size(source) for source in sources]
        allowed = content.new_zeros(len(regions), len(cells), dtype=torch.bool)
        for number, region in enumerate(regions):
            allowed[number, [part.style for part in region.sources]] = True
        owners = content.new_zeros(size, dtype=torch.long)
        if len(regions) > 1:
            covers = [
                resize(one.weights, size, "bilinear") for one in regions if one.weights is not None
            ]
            owners = torch.cat(covers, 1)[0].argmax(0).to(content.device)
        return cls(size, cells, owners.new_zeros(owners.numel()), allowed, owners.flatten())

    @classmethod
    def of(cls, found: Correspondence) -> Self:
        """Return a search that has ended with `found`."""
        size = (found.rows.shape[0], found.rows.shape[1])
        search = cls(size, found.cells, found.rows, torch.ones(1, len(found.cells)), found.rows)
        search.index = search.indices(found.styles, found.rows, found.columns).flatten()
        return search

    def indices(self, styles: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the indices of pixels, moved into their sources."""
        starts, heights, widths = self._tables(styles.device)
        height, width = heights[styles], widths[styles]
        rows, columns = rows.clamp(min=0), columns.clamp(min=0)
        return starts[styles] + rows.minimum(height - 1) * width + columns.minimum(width - 1)

    def places(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return source, row and column of each match, (h, w) each."""
        starts, _, widths = self._tables(self.index.device)
        index = self.index.view(self.size)
        styles = torch.bucketize(index, starts, right=True) - 1
        within = index - starts[styles]
        return styles, within // widths[styles], within % widths[styles]

    def _tables(self, device: torch.device) -> Tensor:
        """Return the first index, the height and the width of each source, as three rows."""
        starts, start = [], 0
        for height, width in self.cells:
            starts.append(start)
            start += height * width
        heights, widths = zip(*self.cells, strict=True)
        return torch.tensor([starts, heights, widths], device=device)

    def begin(self, keys: Tensor, wanted: Tensor) -> None:
        """Find matches: exactly for cells of the content among cells of the sources, then finer."""
        few = self._pooled(wanted, self.size)
        owners = self.owners.view(self.size)[CELL // 2 :: CELL, CELL // 2 :: CELL]
        found, places = [], []  # places: source, row and column of each cell of the sources
        parts = list(torch.split(keys, [height * width for height, width in self.cells]))
        many = [self._pooled(part, cell) for part, cell in zip(parts, self.cells, strict=True)]
        for number, (height, width) in enumerate(self.cells):
            down, right = torch.meshgrid(
                torch.arange(height // CELL) * CELL,
                torch.arange(width // CELL) * CELL,
                indexing="ij",
            )
            places.append(torch.stack([torch.full_like(down, number), down, right]).flatten(1))
        table, offered = torch.cat(places, 1).to(keys.device), torch.cat(many)
        lengths = offered.square().sum(1)
        down, right = (side // CELL for side in self.size)
        regions = owners[:down, :right].flatten()
        for block, own in zip(few.split(BLOCK), regions.split(BLOCK), strict=True):
            distance = lengths - 2 * block @ offered.mT
            found.append(distance.masked_fill(~self.allowed[own][:, table[0]], torch.inf).argmin(1))
        y, x = (torch.arange(side, device=keys.device) for side in self.size)
        cell_y, cell_x = (y // CELL).clamp(max=down - 1), (x // CELL).clamp(max=right - 1)
        styles, rows, columns = table[
            :, torch.cat(found).view(down, right)[cell_y[:, None], cell_x]
        ]
        rows, columns = rows + (y - cell_y * CELL)[:, None], columns + x - cell_x * CELL
        self.index = self.indices(styles, rows, columns).flatten()
        self.improve(keys, wanted)

    @staticmethod
    def _pooled(axes: Tensor, size: tuple[int, int]) -> Tensor:
        return avg_pool2d(axes.mT.reshape(1, -1, *size), CELL)[0].flatten(1).mT

    def improve(self, keys: Tensor, wanted: Tensor) -> None:
        """Try the matches of neighbours, and random ones around, and keep what is nearer."""
        self.keys, self.wanted = keys.contiguous(), wanted.contiguous()
        self.cost = self._cost(self.index)
        self._propagate()
        generator = torch.Generator().manual_seed(0)
        for reach in RANDOM:
            styles, rows, columns = self.places()
            moved = torch.randint(-reach, reach + 1, (2, *self.size), generator=generator)
            moved = moved.to(rows.device)
            self._try(self.indices(styles, rows + moved[0], columns + moved[1]))
        self._propagate()

    def _propagate(self) -> None:
        for step in NEIGHBOURS:
            for down, right in ((0, step), (0, -step), (step, 0), (-step, 0)):
                styles, rows, columns = (
                    torch.roll(one, (down, right), (0, 1)) for one in self.places()
                )
                self._try(self.indices(styles, rows + down, columns + right))

    def _cost(self, index: Tensor) -> Tensor:
        return (self.wanted - self.keys[index]).square_().sum(1)

    def _try(self, proposed: Tensor) -> None:
        index = proposed.flatten()
        cost = self._cost(index)
        is_better = cost < self.cost
        if not bool(self.allowed.all()):
            starts = self._tables(index.device)[0].contiguous()
            source = torch.bucketize(index, starts, right=True) - 1
            is_better &= self.allowed[self.owners, source]
        self.index = torch.where(is_better, index, self.index)
        self.cost = torch.where(is_better, cost, self.cost)

    def pixels(self, painted: Sequence[Tensor]) -> Tensor:
        """Return the picture (1, 3, h, w) of the matched pixels."""
        return _joined(painted)[:, self.index].view(1, 3, *self.size)

    def mean_of_patches(self, painted: Sequence[Tensor]) -> Tensor:
        """Return the mean (1, 3, h, w) of the painted patches that lie over each pixel."""
        values, reach = _joined(painted), PATCH // 2
        total = values.new_zeros(3, *self.size)
        around = [
            pad(one[None, None].float(), (reach,) * 4, mode="replicate")[0, 0].long()
            for one in self.places()
        ]
        height, width = self.size
        for down in range(PATCH):
            for right in range(PATCH):
                styles, rows, columns = (
                    one[down : down + height, right : right + width] for one in around
                )
                at = self.indices(styles, rows - down + reach, columns - right + reach)
                total += values[:, at]
        return total[None] / PATCH**2

    def result(self) -> Correspondence:
        """Return the matches."""
        styles, rows, columns = (one.cpu() for one in self.places())
        return Correspondence(styles, rows, columns, self.cells)


def _size(image: Tensor) -> tuple[int, int]:
    return image.shape[2], image.shape[3]


def _joined(pictures: Sequence[Tensor]) -> Tensor:
    """Return the pixels (3, n) of all pictures."""
    return torch.cat([picture[0].flatten(1) for picture in pictures], 1)


def _guides(
    extractor: FeatureExtractor, content: Tensor, sources: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the axes by which pixels of the photographs are compared: (n, D) and (h * w, D)."""
    images = [*sources, content]
    kinds = [_weighed(*_both([_blurred(one, s) for one in images]), COLOR_WEIGHT) for s in COLORS]
    luma = content.new_tensor(LUMA).view(1, 3, 1, 1)
    fine, wide = ([_blurred((one * luma).sum(1, True), s) for one in images] for s in EDGES)
    edges = [one - other for one, other in zip(fine, wide, strict=True)]
    kinds.append(_weighed(*_both(edges), EDGES_WEIGHT))
    dtype = extractor.dtype
    seen = [extractor(one.to(dtype), LAYERS) for one in images]
    for layer, weight in LAYERS.items():
        maps = [
            interpolate(one[layer].float(), _size(image), mode="bilinear", align_corners=False)
            for one, image in zip(seen, images, strict=True)
        ]
        kinds.append(_weighed(*_reduced(maps[:-1], maps[-1], AXES), weight))
    keys, wanted = zip(*kinds, strict=True)
    return torch.cat(keys, 1), torch.cat(wanted, 1)


def _both(maps: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the positions (n, C) of all maps but the last, and those of the last."""
    *keys, wanted = (one[0].flatten(1).mT for one in maps)
    return torch.cat(keys), wanted


def _reduced(maps: Sequence[Tensor], last: Tensor, axes: int) -> tuple[Tensor, Tensor]:
    """Return positions (n, axes) of `maps` and those of `last`, along the axes of `maps`."""
    keys, wanted = _both([*maps, last])
    mean = keys.mean(0)
    centred = keys - mean
    kept = torch.linalg.eigh((centred.mT @ centred).cpu())[1][:, -axes:].to(keys)
    return centred @ kept, (wanted - mean) @ kept


def _weighed(keys: Tensor, wanted: Tensor, weight: float) -> tuple[Tensor, Tensor]:
    """Return axes times `weight`, divided by the root mean square of those of `keys`."""
    centred = keys - keys.mean(0)
    factor = weight / centred.square().sum(1).mean().sqrt().clamp_min(1e-6)
    return keys * factor, wanted * factor


def _patches(image: Tensor) -> Tensor:
    """Return the patch around each pixel as channels, (1, 3 * PATCH^2, H, W)."""
    wide = pad(image, (PATCH // 2,) * 4, mode="replicate")
    return unfold(wide, PATCH).view(1, -1, *_size(image))


def _blurred(image: Tensor, deviation: float) -> Tensor:
    """Return (1, C, H, W) blurred by a Gaussian; the border repeats."""
    reach = int(3 * deviation + 1)
    offsets = torch.arange(-reach, reach + 1.0, device=image.device)
    kernel = torch.exp(-(offsets**2) / (2 * deviation**2))
    kernel = kernel / kernel.sum()
    planes = pad(image.transpose(0, 1), (reach,) * 4, mode="replicate")
    planes = conv2d(conv2d(planes, kernel.view(1, 1, 1, -1)), kernel.view(1, 1, -1, 1))
    return planes.transpose(0, 1)
