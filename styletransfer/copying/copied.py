"""Makes the copied picture from the matches, and computes matches for its full size.

A search compares pictures of reduced size. If all pixels that become one reduced pixel took its
match, edges would look like stairs. Therefore each pixel at full size chooses between the matches
of the reduced pixels around it, as in joint upsampling (Kopf et al. 2007).
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import conv2d, grid_sample, pad

from styletransfer.copying.patches import PATCH, Axes, PatchSearch, patches
from styletransfer.objective.inputs import Anchor, Correspondence, Inputs
from styletransfer.pictures.images import blurred, luma
from styletransfer.system.devices import at_a_time

# Standard deviation in pixels of a blur. What remains after the blur is taken from the mean of
# overlapping patches, which has the right tones. Finer detail is taken from single copied pixels,
# which are sharp, as far as the mean is less rough than the painting; see `roughness`.
TONE = 2.0
# `roughness` is the root mean square difference of a picture's luma from itself, blurred with the
# standard deviation FINE in pixels. The mean is taken over a Gaussian window with the standard
# deviation AROUND in pixels.
FINE, AROUND = 0.5, 2.0
# Weight of the loss that `held` describes: the mean square difference from the copied picture.
# Without it, the match loss would change the tones of the picture, because cosines of features
# hardly depend on lightness.
HELD = 100.0
# `Refinement` compares AXES principal components of the patches of photographs, and as many of the
# patches of paintings. Within a patch, pixels have the weights of a Gaussian with the standard
# deviation CENTRE in pixels, so that pixels beyond an edge count little. The patches of photographs
# have weight 1, those of paintings PAINTED. A match within NEAR pixels of the best so far is not
# tried.
AXES, CENTRE, PAINTED, NEAR = 6, 0.7, 0.7, 0.5
# Number of pixels that are computed at a time on the CPU, to limit memory; see `at_a_time`.
BLOCK = 2**18


class Refinement:
    """A Refinement finds matches for the pixels of an image at full size.

    `pictures` are at full size. `sources` and `painted` are the photographs and the paintings in
    `pictures`, reduced to the size at which a search compares them.
    """

    @torch.no_grad()
    def __init__(
        self, pictures: Inputs, sources: Sequence[Tensor], painted: Sequence[Tensor]
    ) -> None:
        self.pictures = pictures
        squares = (torch.arange(PATCH) - PATCH // 2).square()
        window = torch.exp(-(squares[:, None] + squares) / (2 * CENTRE**2))
        self.window = window.flatten().repeat(3).to(sources[0])  # (3 * PATCH^2,)
        self.axes = [
            Axes.of([patches(one) * self.window.view(1, -1, 1, 1) for one in images], weight, AXES)
            for images, weight in ((sources, 1.0), (painted, PAINTED))
        ]
        pairs = zip(pictures.sources, pictures.styles, strict=True)
        self.keys = torch.cat([self._values(*pair) for pair in pairs])

    def _values(self, photograph: Tensor, painting: Tensor) -> Tensor:
        """Return the values (pixels, D) of the patches at each pixel of a pair of images."""
        values = []
        for axes, image in zip(self.axes, (photograph, painting), strict=True):
            # This convolution equals `Axes.along` of the weighted patches, but needs less memory.
            kernels = (self.window[:, None] * axes.directions).mT.reshape(-1, 3, PATCH, PATCH)
            wide = pad(image.float(), (PATCH // 2,) * 4, mode="replicate")
            values.append(conv2d(wide, kernels, -axes.mean @ axes.directions))
        return torch.cat(values, 1)[0].flatten(1).mT.contiguous()

    @torch.no_grad()
    def of(self, found: Correspondence, content: Tensor) -> Correspondence:
        """Return the matches of all pixels of `content` (1, 3, H, W).

        `found` are the matches of the reduced content, whose pixels are called cells here. Each
        pixel tries the match of the cell that contains it, and those of the eight cells around
        this cell, each shifted by the offset from the cell to the pixel. It takes the match whose
        two patches fit best: the photograph's patch is compared with the content's, and the
        painting's patch with that of a first copy, in which each pixel takes its cell's match.
        """
        search = PatchSearch.over(content, self.pictures.sources, self.pictures.regions)
        best = _enlarged(found, search, 0, 0)
        made = pixels(_matches(best, search), self.pictures.styles).clamp(0, 1)
        wanted = self._values(content, made)
        least = torch.full_like(best[0], torch.inf)
        block = at_a_time(BLOCK, wanted.device, wanted.shape[1])
        for down, right in product((0, -1, 1), repeat=2):
            places = _enlarged(found, search, down, right)
            is_new = least.isinf() | ((places - best).abs().amax(0) > NEAR)
            for at in torch.split(is_new.nonzero()[:, 0], block):
                index = search.indices(*places[:, at].round().long())
                cost = (wanted[at] - self.keys[index]).square_().sum(1)
                cost.masked_fill_(~search.allowed[search.owners[at], index], torch.inf)
                is_better = cost < least[at]
                better = at[is_better]
                best[:, better], least[better] = places[:, better], cost[is_better]
        return _matches(best, search)


def copied(found: Correspondence, styles: Sequence[Tensor]) -> Tensor:
    """Return the picture (1, 3, H, W) that is copied from the paintings `styles`.

    The mean of overlapping copied patches has smooth edges, but fine strokes and grain are blurred
    in it. Single copied pixels are as sharp as the painting, but a line or an edge may be broken
    between them: then they are rougher than the painting. The picture mixes both, so that it is
    about as rough as the painting at the matched places.
    """
    mean, single = _mean_of_patches(found, styles), pixels(found, styles)
    sharp = single + blurred(mean - single, TONE)
    rough = pixels(found, list(map(roughness, styles)))
    least, most = roughness(mean), roughness(sharp)
    share = ((rough - least) / (most - least).clamp_min(1e-6)).clamp(0, 1)
    return torch.lerp(mean, sharp, torch.where(most > least, share, 0)).clamp(0, 1)


def roughness(image: Tensor) -> Tensor:
    """Return the local strength (1, 1, H, W) of the finest detail of an image (1, 3, H, W)."""
    light = luma(image)
    return blurred((light - blurred(light, FINE)).square(), AROUND).sqrt()


def pixels(found: Correspondence, styles: Sequence[Tensor]) -> Tensor:
    """Return the values of the images `styles` (1, C, h, w) at the matched places, (1, C, H, W).

    Places may lie between pixels, so the values are interpolated bicubically.
    """
    numbers, rows, columns = found.places
    picture = styles[0].new_zeros(1, styles[0].shape[1], *found.size)
    for number, (style, (height, width)) in enumerate(zip(styles, found.cells, strict=True)):
        down, right = (rows + 0.5) * (2 / height) - 1, (columns + 0.5) * (2 / width) - 1
        grid = torch.stack((right, down), -1)[None].to(style)
        painted = grid_sample(style, grid, "bicubic", padding_mode="border", align_corners=False)
        picture = torch.where((numbers == number).to(style.device), painted, picture)
    return picture


def _mean_of_patches(found: Correspondence, styles: Sequence[Tensor]) -> Tensor:
    """Copy the patch around each match, and return their mean at each pixel, (1, 3, h, w).

    Of a patch, every second row and column is copied; all of them would hardly change the mean.
    """
    (height, width), own = found.size, found.own
    # The offset from each pixel to its match. A patch with its centre outside the picture, which
    # covers pixels at the border, has the offset of the pixel nearest to the centre.
    moves = pad((found.places - own)[None], (PATCH // 2,) * 4, mode="replicate")[0]
    total, steps = styles[0].new_zeros(1, 3, height, width), range(0, PATCH, 2)
    for down, right in product(steps, repeat=2):
        shifted = moves[:, down : down + height, right : right + width]
        total += pixels(replace(found, places=shifted + own), styles)
    return total / len(steps) ** 2


def held(picture: Tensor) -> Anchor:
    """Return the anchor that keeps a pastiche near the copied `picture` (1, 3, H, W)."""
    return Anchor(picture, torch.ones_like(picture[:, :1]), HELD, "copied")


def _enlarged(found: Correspondence, search: PatchSearch, down: int, right: int) -> Tensor:
    """Return a match at full size for each pixel of the content of `search`: places (3, pixels).

    It is the match of a cell (a pixel of the reduced content), shifted by the offset from the
    cell's centre to the pixel. The cell lies `down` rows below, and `right` columns to the right
    of, the cell that contains the pixel.
    """
    y, x = (
        (torch.arange(side) + 0.5) * cells / side
        for side, cells in zip(search.size, found.size, strict=True)
    )
    cell_rows = (y.long() + down).clamp(0, found.size[0] - 1)
    cell_columns = (x.long() + right).clamp(0, found.size[1] - 1)
    styles, rows, columns = found.places[:, cell_rows[:, None], cell_columns]
    sides = torch.tensor(search.cells)
    taller, wider = (sides / torch.tensor(found.cells))[styles.long()].unbind(-1)
    heights, widths = sides[styles.long()].unbind(-1)
    rows = (rows + (y - cell_rows)[:, None]) * taller - 0.5
    columns = (columns + (x - cell_columns)) * wider - 0.5
    inside = rows.clamp(min=0).minimum(heights - 1), columns.clamp(min=0).minimum(widths - 1)
    return torch.stack([styles, *inside]).flatten(1).to(search.index.device)


def _matches(places: Tensor, search: PatchSearch) -> Correspondence:
    """Return places (3, pixels) as a `Correspondence` for the content of `search`."""
    return Correspondence(places.view(3, *search.size).cpu(), search.cells)
