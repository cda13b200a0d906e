"""A search for the most similar pixels of several pictures: PatchMatch (Barnes et al. 2009).

For each pixel, the search tries the matches of its neighbours, moved by the offset from the
neighbour to the pixel. So a good match spreads over a whole surface, and patches stay whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from styletransfer.objective.inputs import Correspondence, Region, Size
from styletransfer.pictures.images import resize, size_of

# Patches have PATCH x PATCH pixels.
PATCH = 5
# The first search compares means of CELL x CELL pixels: all cells of the content with all cells of
# the sources, BLOCK cells of the content at a time.
CELL, BLOCK = 4, 512
# Distances in pixels of the neighbours that propose their match, and largest distances of random
# proposals along each axis.
NEIGHBOURS, RANDOM = (8, 4, 2, 1), (16, 8, 4, 2, 1)


@dataclass
class PatchSearch:
    """A search holds, for each of the content's pixels, the index of a pixel of the sources.

    The pixels of all sources are numbered one source after the other, row by row.
    """

    size: Size  # (height, width) of the content
    cells: list[Size]  # (height, width) of each source
    index: Tensor  # index of the matched source pixel; (h * w,) once `over` or `of` has returned
    allowed: Tensor  # (regions, pixels of all sources) bool, whether a pixel may paint a region
    owners: Tensor  # (h * w,), index of the region to which each of the content's pixels belongs
    active: Tensor = field(init=False)  # (n,), indices of the content pixels that are searched
    cost: Tensor = field(init=False)  # (n,), squared distance from `wanted` to the matched `keys`
    keys: Tensor = field(init=False)  # (pixels of all sources, D), values that are compared
    wanted: Tensor = field(init=False)  # (n, D), the same values of the active pixels

    @classmethod
    def over(cls, content: Tensor, sources: Sequence[Tensor], regions: Sequence[Region]) -> Self:
        """Return a new search, which matches a region's pixels to the region's styles only."""
        size, cells = size_of(content), [size_of(source) for source in sources]
        allowed = []
        for region in regions:
            within = [content.new_zeros(cell, dtype=torch.bool) for cell in cells]
            for part in region.sources:
                within[part.style][:] = _within(part.weights, cells[part.style])
            allowed.append(torch.cat([one.flatten() for one in within]))
        owners = content.new_zeros(size, dtype=torch.long)
        if len(regions) > 1:
            covers = (region.weights for region in regions if region.weights is not None)
            shares = [resize(cover, size, "bilinear") for cover in covers]
            owners = torch.cat(shares, 1)[0].argmax(0)
        search = cls(size, cells, torch.zeros_like(owners), torch.stack(allowed), owners.flatten())
        search.index = search.index.flatten()
        search.active = torch.arange(len(search.index), device=content.device)
        return search

    @classmethod
    def of(cls, found: Correspondence) -> Self:
        """Return a search that holds the matches `found`; they can be read, but not improved."""
        size = (found.rows.shape[0], found.rows.shape[1])
        search = cls(size, found.cells, found.rows, torch.ones(1, 1), found.rows)
        search.index = search.indices(found.styles, found.rows, found.columns).flatten()
        return search

    def indices(self, styles: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the indices of source pixels; rows and columns are clamped to the source."""
        starts, heights, widths = self._tables(styles.device)
        rows = rows.clamp(min=0).minimum(heights[styles] - 1)
        columns = columns.clamp(min=0).minimum(widths[styles] - 1)
        index: Tensor = starts[styles] + rows * widths[styles] + columns
        return index

    def places(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return source, row and column of each match, (h, w) each."""
        return self._places(self.index.view(self.size))

    def _places(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        starts, _, widths = self._tables(index.device)
        styles = torch.bucketize(index, starts.contiguous(), right=True) - 1
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
        """Match content cells to the nearest source cells, and their pixels to pixels there."""
        lengths = [height * width for height, width in self.cells]
        parts = zip(torch.split(keys, lengths), self.cells, strict=True)
        offered = torch.cat([_pooled(part, cell) for part, cell in parts])
        squares, places = offered.square().sum(1), self._corners().to(keys.device)
        allowed = self.allowed[:, self.indices(*places)]
        height, width = (side // CELL for side in self.size)
        owners = self.owners.view(self.size)[CELL // 2 :: CELL, CELL // 2 :: CELL]
        owners, pooled = owners[:height, :width].flatten(), _pooled(wanted, self.size)
        y, x = self._active_places()
        rows, columns = (y // CELL).clamp(max=height - 1), (x // CELL).clamp(max=width - 1)
        cells = rows * width + columns
        used = torch.bincount(cells, minlength=height * width) > 0
        found = [cells.new_zeros(0)]
        for block in torch.split(used.nonzero()[:, 0], BLOCK):
            distance = squares - 2 * pooled[block] @ offered.mT
            found.append(distance.masked_fill_(~allowed[owners[block]], torch.inf).argmin(1))
        nearest = torch.zeros_like(used, dtype=torch.long)
        nearest[used] = torch.cat(found)
        styles, down, right = places[:, nearest[cells]]
        down, right = down + y - rows * CELL, right + x - columns * CELL
        self.index[self.active] = self.indices(styles, down, right)

    def keep(self, known: Correspondence, kept: Tensor) -> None:
        """Use the matches of `known` where `kept` (h, w) is True; no search changes them."""
        places = (known.styles, known.rows.round().long(), known.columns.round().long())
        own = self.indices(*(one.to(self.index.device) for one in places)).flatten()
        kept = kept.flatten().to(self.index.device)
        self.index = torch.where(kept, own, self.index)
        self.active = (~kept).nonzero()[:, 0]

    def _corners(self) -> Tensor:
        """Return (3, n): source, row and column of the first pixel of each cell of the sources."""
        places = []
        for number, sides in enumerate(self.cells):
            corners = (torch.arange(side // CELL) * CELL for side in sides)
            down, right = torch.meshgrid(*corners, indexing="ij")
            places.append(torch.stack([torch.full_like(down, number), down, right]).flatten(1))
        return torch.cat(places, 1)

    def improve(self, keys: Tensor, wanted: Tensor) -> None:
        """Try neighbours' matches and random pixels near each match; keep those of lower cost."""
        self.keys, self.wanted = keys.contiguous(), wanted[self.active]
        self.cost = self._cost(self.index[self.active])
        self._propagate()
        generator = torch.Generator().manual_seed(0)
        for reach in RANDOM:
            moves = torch.randint(-reach, reach + 1, (2, len(self.active)), generator=generator)
            self._try(self.index[self.active], *moves.to(self.index.device))
        self._propagate()

    def _propagate(self) -> None:
        (height, width), (y, x) = self.size, self._active_places()
        for step in NEIGHBOURS:
            for down, right in ((0, step), (0, -step), (step, 0), (-step, 0)):
                neighbours = (y - down) % height * width + (x - right) % width
                self._try(self.index[neighbours], down, right)

    def _active_places(self) -> tuple[Tensor, Tensor]:
        """Return the rows (n,) and the columns (n,) of the active pixels."""
        return self.active // self.size[1], self.active % self.size[1]

    def _cost(self, index: Tensor) -> Tensor:
        """Return squared distances from `wanted` to `keys[index]`; infinity if not `allowed`."""
        cost = (self.wanted - self.keys[index]).square_().sum(1)
        return cost.masked_fill(~self.allowed[self.owners[self.active], index], torch.inf)

    def _try(self, index: Tensor, down: Tensor | int, right: Tensor | int) -> None:
        """Try the pixels `down` rows and `right` columns from `index`; take those of lower cost."""
        styles, rows, columns = self._places(index)
        index = self.indices(styles, rows + down, columns + right)
        cost = self._cost(index)
        is_better = cost < self.cost
        self.index[self.active[is_better]] = index[is_better]
        self.cost = torch.where(is_better, cost, self.cost)

    def pixels(self, painted: Sequence[Tensor]) -> Tensor:
        """Return the picture (1, 3, h, w) of the matched pixels."""
        return _joined(painted)[:, self.index].view(1, 3, *self.size)

    def mean_of_patches(self, painted: Sequence[Tensor]) -> Tensor:
        """Return (1, 3, h, w): at each pixel, the mean of the copied patches that cover it."""
        values, reach, (height, width) = _joined(painted), PATCH // 2, self.size
        y, x = (torch.arange(side, device=self.index.device) for side in self.size)
        styles, rows, columns = self.places()
        around = [  # source, and how far down and right of the pixel its match lies
            pad(one[None, None].float(), (reach,) * 4, mode="replicate")[0, 0].long()
            for one in (styles, rows - y[:, None], columns - x)
        ]
        total = values.new_zeros(3, *self.size)
        for down in range(PATCH):
            for right in range(PATCH):
                styles, rows, columns = (
                    one[down : down + height, right : right + width] for one in around
                )
                total += values[:, self.indices(styles, rows + y[:, None], columns + x)]
        return total[None] / PATCH**2

    def result(self) -> Correspondence:
        """Return the matches, on the CPU."""
        styles, rows, columns = (one.cpu() for one in self.places())
        return Correspondence(styles, rows, columns, self.cells)


def _within(weights: Tensor | None, size: Size) -> Tensor | bool:
    """Return (h, w), True where a weight is at least 0.5 or the largest; True without weights."""
    if weights is None:
        return True
    shares = resize(weights, size, "bilinear")[0, 0]
    return shares >= min(0.5, float(shares.max()))


def _pooled(axes: Tensor, size: Size) -> Tensor:
    """Return the means (cells, D) of `axes` (h * w, D) over CELL x CELL pixels; size is (h, w)."""
    return avg_pool2d(axes.mT.reshape(1, -1, *size), CELL)[0].flatten(1).mT


def _joined(pictures: Sequence[Tensor]) -> Tensor:
    """Return the pixels (3, n) of all pictures, one picture after the other."""
    return torch.cat([picture[0].flatten(1) for picture in pictures], 1)
