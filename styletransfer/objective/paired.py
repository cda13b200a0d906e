"""Paired painting: a photograph and its painting tell how another photograph would be painted.

For each pixel of the content image, a search finds the most similar pixel of the photographs that
were painted, and copies the pixel of the painting that lies there. This is image analogies
(Hertzmann et al. 2001) by the search of PatchMatch (Barnes et al. 2009). Strokes stay whole, since
neighbours propose their matches to each other, and since the search is repeated with the patches
of the picture so far beside those of the paintings, as in StyLit (Fiser et al. 2016).
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, interpolate, pad, unfold

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.objective.inputs import Anchor, Correspondence, Inputs
from styletransfer.objective.matching import Matching
from styletransfer.objective.patches import PATCH, PatchSearch
from styletransfer.pictures.images import blurred, resize, scaled_size, size_of

# Colours are compared after blurs with these standard deviations in pixels, and lightness also as
# the difference of blurs (EDGES), which is the same in another light. Each kind of axes is divided
# by its root mean square in the photographs, then multiplied by its weight.
COLORS, COLOR_WEIGHT = (0.7, 2.0), 1.0
EDGES, EDGES_WEIGHT = (0.8, 2.4), 0.7
# Layer -> weight of its features, of which the AXES principal axes are compared.
LAYERS, AXES = {"relu2_1": 0.4, "relu3_1": 0.2, "relu4_1": 0.2}, 8
# Weight of the position, from 0 to 1 along each side: of equal pixels, the one in place is taken.
POSITION_WEIGHT = 0.2
# After the first search, ROUNDS searches also compare patches of the picture so far with patches of
# the paintings, along PATCH_AXES principal axes; PATCH_WEIGHT is the weight of these axes.
PATCH_AXES, PATCH_WEIGHT, ROUNDS = 12, 0.7, 2
# Longer side in pixels of the content, and of a painting, in a search; larger ones are reduced, but
# no side to less than LEAST.
CONTENT_SIDE, STYLE_SIDE, LEAST = 512, 1024, 32
# Standard deviation in pixels of the blur below which the copied pixels keep the mean of the
# overlapping patches: single pixels are crisp, means have the right tone.
TONE = 2.0
# Weight of the mean square difference from the copied picture in the objective. Without it, steps
# of the match loss change its tones, because a cosine of features knows no lightness.
HELD = 100.0
LUMA = (0.299, 0.587, 0.114)
# `agreement` compares cells, FIT_CELLS along the longer side of pictures of FIT_SIDE pixels, along
# FIT_AXES principal axes; RIDGE is relative to the sum of their squares. Below FITS, a photograph
# and a painting show different things: so do 178 of 180 such pairs of six artists, and none of 36
# that fit (the least has 0.47).
FIT_SIDE, FIT_CELLS, FIT_AXES, RIDGE, FITS = 256, 16, 16, 0.05, 0.3


@torch.no_grad()
def correspondence(extractor: FeatureExtractor, pictures: Inputs) -> Correspondence:
    """Return the most similar pixel of `pictures.sources` for every pixel of the content image.

    Pictures larger than CONTENT_SIDE, or STYLE_SIDE, are all reduced by one factor. The result
    depends on no global random state.
    """
    sides = [(max(pictures.content.shape), CONTENT_SIDE)]
    sides += [(max(style.shape), STYLE_SIDE) for style in pictures.styles]
    shortest = min(min(image.shape[2:]) for image in pictures.tensors)
    factor = min(1.0, max(min(most / side for side, most in sides), LEAST / shortest))
    content, *others = (
        resize(image.float(), scaled_size(size_of(image), round(factor * max(image.shape))))
        for image in (pictures.content, *pictures.sources, *pictures.styles)
    )
    sources, painted = others[: len(pictures.sources)], others[len(pictures.sources) :]
    keys, wanted = _guides(extractor, content, sources)
    search = PatchSearch.over(content, sources, pictures.regions)
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
    search = PatchSearch.of(found)
    small = [resize(style.float(), cell) for style, cell in zip(styles, found.cells, strict=True)]
    tone = search.mean_of_patches(small) - search.pixels(small)
    matching = Matching.at(found, [{"pixels": style} for style in styles])
    picture = matching.values("pixels", size) + resize(_blurred(tone, TONE), size).to(styles[0])
    return picture.clamp(0, 1)


def matched(extractor: FeatureExtractor, pictures: Inputs) -> Inputs:
    """Return pictures with their correspondence.

    A film's frame then starts from the frame before where the motion is reliable, elsewhere from
    the copied picture, and stays near this start.
    """
    pictures = replace(pictures, correspondence=(found := correspondence(extractor, pictures)))
    if (anchor := pictures.anchor) is None:
        return pictures
    fresh = copied(found, pictures.styles, size_of(pictures.content))
    start = torch.lerp(fresh, anchor.target.to(fresh), anchor.weights.to(fresh))
    return replace(pictures, start=start, anchor=held(start))


def held(picture: Tensor) -> Anchor:
    """Return the anchor that keeps a pastiche near the copied picture (1, 3, H, W)."""
    return Anchor(picture, torch.ones_like(picture[:, :1]), HELD, "copied")


@torch.no_grad()
def agreement(extractor: FeatureExtractor, photograph: Tensor, painting: Tensor) -> float:
    """Return the share of a painting's variance that its photograph tells, at most 1.

    Ridge regression predicts the mean colours of the painting's cells from the photograph's colours
    and features there. Each of 4 x 4 parts of the picture is predicted from the others, by the
    closed form of leaving a part out. Both pictures are (1, 3, H, W) of one size.
    """
    seen = resize(photograph.float(), scaled_size(size_of(photograph), FIT_SIDE))
    features = extractor(seen.to(extractor.dtype), ["relu3_1"])["relu3_1"].float()
    cells = scaled_size(size_of(seen), FIT_CELLS)
    maps = torch.cat([adaptive_avg_pool2d(one, cells) for one in (features, seen)], 1)
    maps = (maps - maps.mean((2, 3), True)) / maps.std((2, 3), keepdim=True).clamp_min(1e-6)
    axes, _ = _weighed(*_reduced([maps], maps, min(FIT_AXES, maps.shape[1])), 1.0)
    axes = torch.cat([axes, torch.ones_like(axes[:, :1])], 1)
    colors = adaptive_avg_pool2d(painting.float(), cells)[0].flatten(1).mT
    colors = colors - colors.mean(0)
    second = axes.mT @ axes
    second.diagonal().add_(RIDGE * len(axes) / FIT_AXES)
    hat = axes @ torch.linalg.solve(second, axes.mT)
    left, numbers = colors - hat @ colors, torch.arange(len(colors)).view(cells)
    parts = [part.flatten() for rows in numbers.tensor_split(4) for part in rows.tensor_split(4, 1)]
    missed = [
        torch.linalg.solve(torch.eye(len(part)).to(hat) - hat[part][:, part], left[part])
        for part in parts
    ]
    return 1 - float(torch.cat(missed).square().sum() / colors.square().sum().clamp_min(1e-6))


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
    kinds.append(_both([POSITION_WEIGHT * _position(one) for one in images]))
    seen = [extractor(one.to(extractor.dtype), LAYERS) for one in images]
    for layer, weight in LAYERS.items():
        maps = [
            interpolate(one[layer].float(), size_of(image), mode="bilinear", align_corners=False)
            for one, image in zip(seen, images, strict=True)
        ]
        kinds.append(_weighed(*_reduced(maps[:-1], maps[-1], AXES), weight))
    keys, wanted = zip(*kinds, strict=True)
    return torch.cat(keys, 1), torch.cat(wanted, 1)


def _position(image: Tensor) -> Tensor:
    """Return the row and the column of each pixel, from 0 to 1, as channels, (1, 2, H, W)."""
    sides = (torch.linspace(0, 1, side, device=image.device) for side in size_of(image))
    return torch.stack(torch.meshgrid(*sides, indexing="ij"))[None]


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
    return unfold(wide, PATCH).view(1, -1, *size_of(image))


def _blurred(image: Tensor, deviation: float) -> Tensor:
    return blurred(image, deviation, reach=int(3 * deviation + 1))
