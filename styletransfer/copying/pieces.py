"""Copies pieces of a painting whole, so that textures such as stipple are not torn apart.

Where a photograph has little detail, many matches are about equally good. If each pixel chose
alone there, textures would break. Therefore blocks of pixels also try a common offset from pixel to
match, as in shift maps (Pritch et al. 2009). A block takes the offset if this lowers the sum of the
costs of all matches and of all seams. A seam lies between neighbouring pixels whose matches are not
neighbours. Its cost is the difference between the painted patches at the seam and those that would
continue the texture (Kwatra et al. 2003). It is 0 if the texture happens to continue at the seam.
Lines, and textures with a period, need no blocks; see `screens.py`.
"""

import torch
from torch import Tensor

from styletransfer.copying.patches import PatchSearch

# `join` divides the content into square blocks by a grid at a random position. It does so TRIES
# times with each of these sides of a block, in pixels.
SIDES, TRIES = (32, 16, 8), 12
# The cost of a seam has a weight: SEAM times the mean cost of the seams after the first search. The
# mean is about 1 if the painted patches at seams have nothing in common, and less if the
# photographs predict the painting well. As seams should lie at edges of the content, the weight is
# halved where the squared difference of the two pixels is CALM times its mean over all pairs.
SEAM, CALM = 1.0, 0.03


class Seams:
    """`Seams` computes the costs of seams between neighbouring pixels of the content.

    `wanted` (h * w, D) are the values of the content's pixels; `shown` (pixels of all sources, P)
    are the values of the paintings' patches.
    """

    def __init__(self, search: PatchSearch, wanted: Tensor, shown: Tensor) -> None:
        self.search, self.shown = search, shown
        grid = torch.arange(len(wanted), device=wanted.device).view(search.size)
        first = torch.cat([grid[:, :-1].flatten(), grid[:-1].flatten()])
        second = torch.cat([grid[:, 1:].flatten(), grid[1:].flatten()])  # on the right, or below
        self.pairs, self.down = torch.stack([first, second]), (second - first) // search.size[1]
        contrast = (wanted[first] - wanted[second]).square_().sum(1)
        mean = contrast.double().mean().float()  # rounded: the number of threads has no effect
        self.weights = 1 / (1 + contrast / (CALM * mean).clamp_min(1e-12))
        costs = self.costs(search.index, self.down >= 0).double()
        total = self.weights[costs > 0].double().sum().clamp_min(1e-12)
        self.weights *= (SEAM * costs.sum() / total).float()

    def costs(self, index: Tensor, chosen: Tensor) -> Tensor:
        """Return the costs of the seams at the `chosen` pairs, if `index` holds the matches."""
        (first, second), down = index[self.pairs[:, chosen]], self.down[chosen]
        after = self.search.moved(first, down, 1 - down)
        before = self.search.moved(second, -down, down - 1)
        cost = (self.shown[after] - self.shown[second]).square_().sum(1)
        cost += (self.shown[first] - self.shown[before]).square_().sum(1)
        return self.weights[chosen] * cost


def join(search: PatchSearch, keys: Tensor, wanted: Tensor, seams: Seams) -> None:
    """Give the pixels of a block a common offset to their matches, if that lowers the total cost.

    The cost of a match is the squared distance between `keys` (pixels of all sources, D) and
    `wanted` (h * w, D).
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
        # On the CPU, `bincount` adds in order: the sums do not depend on the number of threads.
        total = torch.bincount(blocks[owners].cpu(), change.double().cpu())
        is_better = (total < -1e-6).to(at.device)[blocks[at]]
        moves, at = moves[is_better], at[is_better]
        search.index[at], search.cost[moves] = offered[moves], cost[moves]


def _offered(search: PatchSearch, side: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Cut the content into blocks, and offer to each block matches with a common offset.

    Return the number of each pixel's block, (h * w,), and a match for each active pixel, (n,). The
    offset of a block is that of the match of a random pixel in or near the block. A pixel is
    offered its old match if the new one would lie outside the source, or if its block is a white
    field of a chessboard of blocks: neighbouring blocks must not change at once.
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
