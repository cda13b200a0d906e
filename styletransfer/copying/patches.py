"""A search for the most similar pixels of several pictures: PatchMatch (Barnes et al. 2009).

For each pixel, the search tries the matches of its neighbours, shifted by the offset from the
neighbour to the pixel. So a good match spreads over a surface, and whole patches are copied.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate, pad, unfold

from styletransfer.features.tensors import principal_axes
from styletransfer.objective.inputs import Correspondence, Region, Size
from styletransfer.objective.matching import covered, owners_of
from styletransfer.pictures.images import size_of
from styletransfer.system.devices import at_a_time

# Patches have PATCH x PATCH pixels.
PATCH = 5
# `PatchSearch.begin` compares the means of cells, which have CELL x CELL pixels: all cells of the
# content with all cells of the sources. On the CPU, it compares BLOCK cells of the content at a
# time; see `at_a_time`.
CELL, BLOCK = 4, 512
# `PatchSearch.improve` tries for each pixel the matches of the pixels that are NEIGHBOURS pixels
# away, and random pixels that are at most RANDOM rows and columns from the pixel's own match.
NEIGHBOURS, RANDOM = (8, 4, 2, 1), (16, 8, 4, 2, 1)


@dataclass(frozen=True)
class Axes:
    """Axes are scaled principal axes; pixels are compared by their values along them."""

    mean: Tensor  # (C,), mean of each channel; it is subtracted from the pixels first
    directions: Tensor  # (C, D), one axis in each column

    @classmethod
    def of(cls, maps: Sequence[Tensor], weight: float, count: int) -> Self:
        """Return the `count` principal axes of maps (1, C, h, w), or all C axes if `count` > C.

        The axes are scaled: the vector of a pixel's values along them has the root mean square
        length `weight`.
        """
        rows = torch.cat([one[0].flatten(1).mT for one in maps])
        mean = rows.mean(0)
        centred = rows - mean
        kept = principal_axes(centred.mT @ centred, count)
        scale = (centred @ kept).square().sum(1).mean().sqrt().clamp_min(1e-6)
        return cls(mean, kept * (weight / scale))

    def along(self, maps: Tensor, size: Size) -> Tensor:
        """Resize maps (1, C, h, w) to `size`; return their values along the axes, (pixels, D)."""
        values = (maps[0].flatten(1).mT - self.mean) @ self.directions
        values = values.mT.reshape(1, -1, *size_of(maps))
        if size_of(maps) != size:
            values = interpolate(values, size, mode="bilinear", align_corners=False)
        return values[0].flatten(1).mT


@dataclass
class PatchSearch:
    """A PatchSearch holds the match of each pixel of the content: the index of a source pixel.

    The sources are photographs. Indices count the pixels of all sources, one source after the
    other, row by row.
    """

    size: Size  # (height, width) of the content
    cells: list[Size]  # (height, width) of each source
    index: Tensor  # (h * w,), index of the matched source pixel
    allowed: Tensor  # (regions, pixels of all sources) bool, whether a region may use a pixel
    owners: Tensor  # (h * w,), index of the region to which each of the content's pixels belongs
    active: Tensor = field(init=False)  # (n,), indices of content pixels whose match may change
    cost: Tensor = field(init=False)  # (n,), squared distance of active pixels from matches
    keys: Tensor = field(init=False)  # (pixels of all sources, D), what is compared; see `Axes`
    wanted: Tensor = field(init=False)  # (n, D), the same for the active pixels of the content

    @classmethod
    def over(cls, content: Tensor, sources: Sequence[Tensor], regions: Sequence[Region]) -> Self:
        """Return a new search, which matches a region's pixels to the region's styles only."""
        size, cells = size_of(content), [size_of(source) for source in sources]
        allowed = []
        for region in regions:
            within = [content.new_zeros(cell, dtype=torch.bool) for cell in cells]
            for part in region.sources:
                weights = part.weights
                within[part.style][:] = weights is None or covered(weights, cells[part.style])
            allowed.append(torch.cat([one.flatten() for one in within]))
        owners = owners_of(regions, size).to(content.device).flatten()
        search = cls(size, cells, torch.zeros_like(owners), torch.stack(allowed), owners)
        search.active = torch.arange(len(owners), device=content.device)
        return search

    def indices(self, styles: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the indices of source pixels; rows and columns outside a source are clamped."""
        starts, heights, widths = self._tables(styles.device)
        rows = rows.clamp(min=0).minimum(heights[styles] - 1)
        columns = columns.clamp(min=0).minimum(widths[styles] - 1)
        index: Tensor = starts[styles] + rows * widths[styles] + columns
        return index

    def places(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the number of the source, the row and the column of each pixel in `index`."""
        starts, _, widths = self._tables(index.device)
        styles = torch.bucketize(index, starts, right=True) - 1
        within = index - starts[styles]
        return styles, within // widths[styles], within % widths[styles]

    def moved(self, index: Tensor, down: Tensor | int, right: Tensor | int) -> Tensor:
        """Return the indices of pixels `down` rows below and `right` columns right of `index`."""
        styles, rows, columns = self.places(index)
        return self.indices(styles, rows + down, columns + right)

    def _tables(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Return the first index, the height and the width of each source."""
        heights, widths = torch.tensor(self.cells, device=device).unbind(1)
        lengths = heights * widths
        return lengths.cumsum(0) - lengths, heights, widths

    def begin(self, keys: Tensor, wanted: Tensor) -> None:
        """Match each square of CELL x CELL pixels to the most similar square of the sources.

        The mean of `keys` is compared. A pixel's match has the same place in its square.
        """
        lengths = [height * width for height, width in self.cells]
        parts = zip(torch.split(keys, lengths), self.cells, strict=True)
        offered = torch.cat([_pooled(part, cell) for part, cell in parts])
        numbers = torch.split(torch.arange(len(keys), device=keys.device), lengths)
        corners = torch.cat(list(map(_corners, numbers, self.cells)))
        squares, allowed = offered.square().sum(1), self.allowed[:, corners]
        owners, pooled = _corners(self.owners, self.size), _pooled(wanted, self.size)
        height, width = (side // CELL for side in self.size)
        y, x = self.active // self.size[1], self.active % self.size[1]
        rows, columns = (y // CELL).clamp(max=height - 1), (x // CELL).clamp(max=width - 1)
        # `used` are the cells with an active pixel. For each active pixel, used[cell] is its cell.
        used, cell = torch.unique(rows * width + columns, return_inverse=True)
        found = [used[:0]]
        for block in torch.split(used, at_a_time(BLOCK, used.device, len(offered))):
            distance = squares - 2 * pooled[block] @ offered.mT
            found.append(distance.masked_fill_(~allowed[owners[block]], torch.inf).argmin(1))
        nearest = corners[torch.cat(found)][cell]
        self.index[self.active] = self.moved(nearest, y - rows * CELL, x - columns * CELL)

    def keep(self, known: Correspondence, kept: Tensor) -> None:
        """Take the matches of `known` where `kept` (h, w) is True; no later call changes these."""
        own = self.indices(*known.places.round().long().to(self.index.device)).flatten()
        kept = kept.flatten().to(self.index.device)
        self.index = torch.where(kept, own, self.index)
        self.active = (~kept).nonzero()[:, 0]

    def compare(self, keys: Tensor, wanted: Tensor) -> None:
        """From now on, compare source pixels by `keys`, content pixels by `wanted` (h * w, D)."""
        self.keys, self.wanted = keys.contiguous(), wanted[self.active]
        self.cost = self.cost_of(self.index[self.active])

    def improve(self, keys: Tensor, wanted: Tensor) -> None:
        """Try neighbours' matches and random pixels near each match; keep those of lower cost."""
        self.compare(keys, wanted)
        self._propagate()
        generator = torch.Generator().manual_seed(0)
        for reach in RANDOM:
            moves = torch.randint(-reach, reach + 1, (2, len(self.active)), generator=generator)
            self._try(self.index[self.active], *moves.to(self.index.device))
        self._propagate()

    def _propagate(self) -> None:
        height, width = self.size
        y, x = self.active // width, self.active % width
        for step in NEIGHBOURS:
            for down, right in ((0, step), (0, -step), (step, 0), (-step, 0)):
                neighbours = (y - down) % height * width + (x - right) % width
                self._try(self.index[neighbours], down, right)

    def cost_of(self, index: Tensor) -> Tensor:
        """Return squared distances from `wanted` to `keys[index]`, infinite if not `allowed`."""
        cost = (self.wanted - self.keys[index]).square_().sum(1)
        return cost.masked_fill(~self.allowed[self.owners[self.active], index], torch.inf)

    def _try(self, index: Tensor, down: Tensor | int, right: Tensor | int) -> None:
        """Take the pixels `down` rows and `right` columns from `index` where the cost is lower."""
        index = self.moved(index, down, right)
        cost = self.cost_of(index)
        is_better = cost < self.cost
        self.index[self.active[is_better]] = index[is_better]
        self.cost = torch.where(is_better, cost, self.cost)

    def pixels(self, painted: Sequence[Tensor]) -> Tensor:
        """Return the pixels of the paintings `painted` at the matches, as (1, 3, h, w)."""
        colors = torch.cat([picture[0].flatten(1) for picture in painted], 1)
        return colors[:, self.index].view(1, 3, *self.size)

    def result(self) -> Correspondence:
        """Return the matches as a `Correspondence`."""
        places = self.places(self.index.view(self.size))
        return Correspondence(torch.stack(places).cpu().float(), self.cells)


def _corners(values: Tensor, size: Size) -> Tensor:
    """Return the elements of `values` (h * w,) that belong to the top left pixel of each cell."""
    height, width = (side // CELL * CELL for side in size)
    return values.view(size)[:height:CELL, :width:CELL].flatten()


def _pooled(axes: Tensor, size: Size) -> Tensor:
    """Return the mean of `axes` (h * w, D) over each cell, (cells, D); `size` is (h, w)."""
    return avg_pool2d(axes.mT.reshape(1, -1, *size), CELL)[0].flatten(1).mT


def patches(image: Tensor) -> Tensor:
    """Return (1, 3 * PATCH^2, H, W): the channels of a pixel hold the patch around it."""
    wide = pad(image, (PATCH // 2,) * 4, mode="replicate")
    return unfold(wide, PATCH).view(1, -1, *size_of(image))
