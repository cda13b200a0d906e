"""Copies pieces of a painting whole, so that regular textures such as halftone are not torn apart.

Where a photograph is flat, many matches are about equally good. If each pixel chose alone there,
the phases of a halftone or of hatching would mix. Therefore blocks of pixels also try a common
offset from pixel to match, as in shift maps (Pritch et al. 2009). A block takes the offset if this
lowers the sum of the costs of all matches and of all seams. A seam lies between neighbouring pixels
whose matches are not neighbours. Its cost is the difference between the painted patches at the seam
and those that would continue the texture (Kwatra et al. 2003), or 0 if both sides are in phase.
"""

import torch
from torch import Tensor

from styletransfer.copying.patches import PatchSearch

# Sides in pixels of the blocks, which are the fields of a random grid. Each side gets TRIES grids.
SIDES, TRIES = (32, 16, 8), 12
# The weight of a seam is SEAM times the mean cost of the first search's seams. This mean is about 1
# if the painted patches at seams have nothing in common, and less if the photographs predict the
# painting well. Seams should lie at edges of the content: the weight is halved where the squared
# difference of two neighbouring pixels is CALM times its mean.
SEAM, CALM = 1.0, 0.03


class Seams:
    """`Seams` tells what the seams between pairs of neighbouring pixels cost.

    `wanted` (h * w, D) are the content's values; `shown` (pixels of all sources, P) are those of
    the paintings' patches.
    """

    def __init__(self, search: PatchSearch, wanted: Tensor, shown: Tensor) -> None:
        self.search, self.shown = search, shown
        grid = torch.arange(len(wanted), device=wanted.device).view(search.size)
        first = torch.cat([grid[:, :-1].flatten(), grid[:-1].flatten()])
        second = torch.cat([grid[:, 1:].flatten(), grid[1:].flatten()])  # right, lower neighbours
        self.pairs, self.down = torch.stack([first, second]), (second - first) // search.size[1]
        contrast = (wanted[first] - wanted[second]).square_().sum(1)
        mean = contrast.double().mean().float()  # rounded: equal for any number of threads
        self.weights = 1 / (1 + contrast / (CALM * mean).clamp_min(1e-12))
        costs = self.costs(search.index, self.down >= 0).double()
        total = self.weights[costs > 0].double().sum().clamp_min(1e-12)
        self.weights *= (SEAM * costs.sum() / total).float()

    def costs(self, index: Tensor, chosen: Tensor) -> Tensor:
        """Return the costs of the seams at the `chosen` pairs, for matches `index` (h * w,)."""
        (first, second), down = index[self.pairs[:, chosen]], self.down[chosen]
        after = self.search.moved(first, down, 1 - down)
        before = self.search.moved(second, -down, down - 1)
        cost = (self.shown[after] - self.shown[second]).square_().sum(1)
        cost += (self.shown[first] - self.shown[before]).square_().sum(1)
        return self.weights[chosen] * cost


def join(search: PatchSearch, keys: Tensor, wanted: Tensor, seams: Seams) -> None:
    """Let blocks of pixels take a common offset where that lowers the sum of all costs.

    `keys` (pixels of all sources, D) and `wanted` (h * w, D) give the costs of matches.
    """
    search.compare(keys, wanted)
    generator = torch.Generator().manual_seed(0)
    for side in SIDES * TRIES:
        blocks, offered = _offered(search, side, generator)
        cost = search.cost_of(offered)
        moves = ((offered != search.index[search.active]) & cost.isfinite()).nonzero()[:, 0]
        at, new, is_moving = search.active[moves], search.index.clone(), torch.zeros_like(blocks)
        new[at], is_moving[at] = offered[moves], 1
        chosen = is_moving[seams.pairs].any(0).nonzero()[:, 0]
        first, second = seams.pairs[:, chosen]
        owners = torch.cat([torch.where(is_moving[first] == 1, first, second), at])
        change = seams.costs(new, chosen) - seams.costs(search.index, chosen)
        change = torch.cat([change, cost[moves] - search.cost[moves]])
        # The CPU adds in order, so that sums do not depend on the number of threads.
        total = torch.bincount(blocks[owners].cpu(), change.double().cpu())
        is_better = (total < -1e-6).to(at.device)[blocks[at]]
        moves, at = moves[is_better], at[is_better]
        search.index[at], search.cost[moves] = offered[moves], cost[moves]


def _offered(search: PatchSearch, side: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the blocks of a random grid, and matches that the pixels of a block take together.

    They are the number of each pixel's block, (h * w,), and the active pixels' matches, (n,), with
    the offset of a random pixel in the block or near it. No pixel moves out of the source. Nor do
    white fields of the chessboard of blocks move, because neighbours must not move at once.
    """
    height, width = search.size
    top, left = torch.randint(side, (2,), generator=random).tolist()
    pixels = torch.arange(height * width, device=search.index.device)
    rows, columns = (pixels // width + top) // side, (pixels % width + left) // side
    blocks = rows * width + columns
    near = torch.randint(2 * side, (2, int(blocks.max()) + 1), generator=random) - side // 2
    near_y, near_x = near.to(blocks)[:, blocks]
    y = (rows * side - top + near_y).clamp(0, height - 1)
    x = (columns * side - left + near_x).clamp(0, width - 1)
    known, y, x = search.index[y * width + x], pixels // width - y, pixels % width - x
    offered = search.moved(known, y, x)
    stays = (search.moved(offered, -y, -x) != known) | ((rows + columns) % 2 == 1)
    return blocks, torch.where(stays, search.index, offered)[search.active]
