"""Paired painting: a photograph and its painting show how to paint another photograph.

The content image is to be painted. For each of its pixels, a search finds the most similar pixel of
the photographs that have a painting. The painting's pixel at the same row and column is copied.
This method is image analogies (Hertzmann et al. 2001), and the search is PatchMatch (Barnes et al.
2009). Strokes stay whole for four reasons. Each pixel tries the matches of its neighbours. If a
texture such as halftone is fixed to the painting's page, a match has the same place in the texture,
see `screens.py`. Where the photograph has little detail, whole blocks are copied, see `pieces.py`.
And the search is repeated; it then also compares patches of the picture copied so far with patches
of the paintings, as in StyLit (Fiser et al. 2016).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, pad

from styletransfer.copying.copied import Refinement
from styletransfer.copying.patches import Axes, PatchSearch, patches
from styletransfer.copying.pieces import Seams, join
from styletransfer.copying.screens import Screen
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.objective.inputs import Correspondence, Inputs
from styletransfer.pictures.images import blurred, luma, resize, scaled_size, size_of

# These are compared: the colours of two blurred copies of a picture, with the standard deviations
# COLORS in pixels; and the difference of two blurred copies of its lightness, with the standard
# deviations EDGES, which does not change if the whole picture is lighter. Values of each kind are
# divided by their root mean square in the photographs, then multiplied by a weight.
COLORS, COLOR_WEIGHT = (0.7, 2.0), 1.0
EDGES, EDGES_WEIGHT = (0.8, 2.4), 0.7
# Layer -> weight of its features. Of each kind of values, AXES principal components are compared.
LAYERS, AXES = {"relu2_1": 0.4, "relu3_1": 0.2, "relu4_1": 0.2}, 8
# Weight of the difference in row and column: among equally similar pixels, the nearest one wins.
POSITION_WEIGHT = 0.08
WEIGHTS = (*(COLOR_WEIGHT for _ in COLORS), EDGES_WEIGHT, POSITION_WEIGHT, *LAYERS.values())
# After the first search, `pieces.join` and another search run in turn, ROUNDS times each. These
# searches also compare patches of the picture copied so far with patches of the paintings: their
# PATCH_AXES principal components, with the weight PATCH_WEIGHT.
PATCH_AXES, PATCH_WEIGHT, ROUNDS = 12, 0.7, 2
# Longest side in pixels that the content, or a painting, has in a search. If a picture is larger,
# all pictures are reduced by the same factor, but no side becomes shorter than LEAST.
CONTENT_SIDE, STYLE_SIDE, LEAST = 512, 1024, 32
# Number of steps that the progress bar shows for `correspondence`: one that computes the values of
# all pixels, 1 + ROUNDS searches, and one that computes the matches at full size.
PARTS = 3 + ROUNDS
# `agreement` reduces the photograph to FIT_SIDE pixels along its longer side, and divides both
# pictures into cells, FIT_CELLS along the longer side. They form a chessboard with FIT_PARTS fields
# along each side. FIT_AXES principal components describe a cell. The penalty of the ridge
# regression is RIDGE times the number of cells. If `agreement` is below FITS, the photograph and
# the painting count as pictures of different things. It was below FITS for 178 of 180 pairs of
# different things, by six artists, and at least 0.44 for 36 pairs of the same thing.
FIT_SIDE, FIT_CELLS, FIT_PARTS, FIT_AXES, RIDGE, FITS = 256, 16, 4, 16, 0.003, 0.3


class Photographs:
    """`Photographs` holds the photographs of `pictures`, and values that describe their pixels.

    If the content is larger than CONTENT_SIDE, or a painting is larger than STYLE_SIDE, all
    pictures are reduced by the same factor.
    """

    @torch.no_grad()
    def __init__(self, extractor: FeatureExtractor, pictures: Inputs) -> None:
        self.extractor, self.pictures = extractor, pictures
        sides = [(max(pictures.content.shape), CONTENT_SIDE)]
        sides += [(max(style.shape), STYLE_SIDE) for style in pictures.styles]
        shortest = min(min(image.shape[2:]) for image in pictures.tensors)
        self.factor = min(1.0, max(min(most / side for side, most in sides), LEAST / shortest))
        self.sources, self.painted = (
            list(map(self.reduced, images)) for images in (pictures.sources, pictures.styles)
        )
        seen = list(map(self._seen, self.sources))
        kinds = zip(zip(*seen, strict=True), WEIGHTS, strict=True)
        self.axes = [Axes.of(maps, weight, AXES) for maps, weight in kinds]
        self.screen = Screen.of(pictures.styles, pictures.sources)
        self.keys = torch.cat(list(map(self._guides, self.sources, seen, count())))
        shown = list(map(patches, self.painted))
        self.texture = Axes.of(shown, PATCH_WEIGHT, PATCH_AXES)
        self.shown = torch.cat([self.texture.along(one, size_of(one)) for one in shown])

    def reduced(self, image: Tensor) -> Tensor:
        """Return an image (1, 3, H, W) in float32, resized by the factor `self.factor`."""
        size = scaled_size(size_of(image), round(self.factor * max(image.shape)))
        return resize(image.to(self.pictures.content.device, torch.float32), size)

    @torch.no_grad()
    def match(
        self,
        content: Tensor,
        kept: tuple[Correspondence, Tensor] | None = None,
        distances: Sequence[float] = (),
        told: Callable[[], object] = bool,
    ) -> Correspondence:
        """Return the most similar pixel of the photographs for every pixel of a reduced image.

        `kept` is a pair: known matches, and a bool mask (h, w) that is True where the result takes
        these matches. `distances` has one number for each photograph; its square is added to the
        squared distances of this photograph's pixels. `told` is called after each of the 1 + ROUNDS
        searches. The result does not depend on torch's global random generator.
        """
        search = PatchSearch.over(content, self.sources, self.pictures.regions)
        wanted, keys = self._guides(content, self._seen(content)), self.keys
        if any(distances):
            lengths = torch.tensor([height * width for height, width in search.cells])
            apart = torch.tensor(distances).repeat_interleave(lengths)[:, None].to(keys)
            keys, wanted = torch.cat([keys, apart], 1), pad(wanted, (0, 1))
        if kept is not None:
            search.keep(*kept)
        search.begin(keys, wanted)
        search.improve(keys, wanted)
        told()
        both = torch.cat([keys, self.shown], 1)
        # With a screen, matches are in phase, and `join` would change nothing that is seen.
        seams = None if self.screen else Seams(search, wanted, self.shown)
        for _ in range(ROUNDS):
            if seams is not None:
                join(search, keys, wanted, seams)
            made = patches(search.pixels(self.painted))
            search.improve(both, torch.cat([wanted, self.texture.along(made, size_of(made))], 1))
            told()
        found = search.result()
        if kept is None:
            return found
        known, mask = kept
        return replace(found, places=torch.where(mask, known.places, found.places))

    @cached_property
    def _refinement(self) -> Refinement:
        return Refinement(self.pictures, self.sources, self.painted)

    def full_size(self, found: Correspondence, content: Tensor) -> Correspondence:
        """Return matches for the pixels of `content`; `found` are those of the reduced content."""
        is_full = found.size == size_of(content)
        return found if is_full else self._refinement.of(found, content)

    def _seen(self, image: Tensor) -> list[Tensor]:
        """Return what is compared of an image: a list of (1, C, h, w), one for each of WEIGHTS."""
        fine, wide = (blurred(luma(image), deviation) for deviation in EDGES)
        features = self.extractor(image.to(self.extractor.dtype), LAYERS)
        colors = [blurred(image, deviation) for deviation in COLORS]
        return [*colors, fine - wide, _position(image), *(features[one].float() for one in LAYERS)]

    def _guides(self, image: Tensor, seen: Sequence[Tensor], number: int = 0) -> Tensor:
        """Return the values (pixels, D) by which an image's pixels are compared; see `_seen`.

        `number` is that of the painting whose place on the page the pixels have; see `screens.py`.
        """
        kinds, size = zip(self.axes, seen, strict=True), size_of(image)
        values = [axes.along(maps, size) for axes, maps in kinds]
        return torch.cat([*values, self.screen.phases(image, self.factor, number)], 1)


def correspondence(
    extractor: FeatureExtractor, pictures: Inputs, told: Callable[[], object] = bool
) -> Correspondence:
    """Return the most similar pixel of `pictures.sources` for every pixel of the content image.

    `told` is called after each of the PARTS steps.
    """
    photographs, content = Photographs(extractor, pictures), pictures.content
    told()
    found = photographs.match(photographs.reduced(content), told=told)
    found = photographs.full_size(found, content)
    told()
    return found


@torch.no_grad()
def agreement(extractor: FeatureExtractor, photograph: Tensor, painting: Tensor) -> float:
    """Return the fraction of a painting's colour variance that its photograph predicts, at most 1.

    Ridge regression predicts the mean colours of the painting's cells from the photograph's colours
    and features in these cells. The cells are grouped into the fields of a chessboard: the black
    fields are predicted by a regression that has seen the white ones, and vice versa. Both pictures
    are (1, 3, H, W), of any size, and should show the same view.
    """
    seen = resize(photograph.float(), scaled_size(size_of(photograph), FIT_SIDE))
    features = extractor(seen.to(extractor.dtype), ["relu3_1"])["relu3_1"].float()
    cells = scaled_size(size_of(seen), FIT_CELLS)
    maps = torch.cat([adaptive_avg_pool2d(one, cells) for one in (features, seen)], 1)
    maps = (maps - maps.mean((2, 3), True)) / maps.std((2, 3), keepdim=True).clamp_min(1e-6)
    axes = Axes.of([maps], 1.0, FIT_AXES).along(maps, cells)
    colors = adaptive_avg_pool2d(painting.float(), cells)[0].flatten(1).mT
    colors = colors - colors.mean(0)
    y, x = (torch.arange(side) * FIT_PARTS // side for side in cells)
    black, missed = ((y[:, None] + x) % 2 == 0).flatten(), colors.new_zeros(())
    for field in (black, ~black):
        known = axes[~field]
        penalty = RIDGE * len(known) * torch.eye(known.shape[1]).to(known)
        weights = torch.linalg.solve(known.mT @ known + penalty, known.mT @ colors[~field])
        missed += (colors[field] - axes[field] @ weights).square().sum()
    return 1 - float(missed / colors.square().sum().clamp_min(1e-6))


def fits(extractor: FeatureExtractor, photograph: Tensor, painting: Tensor) -> bool:
    """Return whether a painting seems to show what a photograph shows; see `agreement`."""
    return agreement(extractor, photograph, painting) >= FITS


def _position(image: Tensor) -> Tensor:
    """Return the row and the column of each pixel, from 0 to 1, as channels, (1, 2, H, W)."""
    sides = (torch.linspace(0, 1, side, device=image.device) for side in size_of(image))
    return torch.stack(torch.meshgrid(*sides, indexing="ij"))[None]
