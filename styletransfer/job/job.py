"""A style transfer, ready to run, and its plan: scales, their steps and sizes, where it starts."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor
from styletransfer.losses import LossMode
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.targets import StyleTargets
from styletransfer.pictures.color import is_grey
from styletransfer.pictures.images import resize, scaled_size
from styletransfer.settings import StyleTransferConfig, each

# What `init` may be beside the path of a picture.
STARTS = ("content", "style", "noise")
# Longer side in pixels below which `scales=0` adds no coarser scale; VGG's deep layers see little
# there. Matching needs coarser ones: there large shapes of the style, such as stars, find a place.
SMALLEST_SCALE, SMALLEST_MATCHED_SCALE = 128, 48
# Shorter side in pixels that `scales=0` leaves every picture: two positions of the deepest layer.
SHORTEST_SIDE = 32

# Of the steps, where an even share would be less than the finest scale takes: of 100 steps at 1536
# pixels 25 left 1.2 and 2.6 times the style error that two pairs have at 512, and 42 left 0.7 and
# 1.3 times it.
FINEST_SHARE = 0.42

# Pixels along each axis for which a position of VGG's deepest layers stands.
DEEPEST = 16

# Of the detail that a finer scale brings back. Without it losses ended 3 to 14 % higher on three
# pairs, and all of it left a photograph's edges where strokes belong.
DETAIL = 0.5


@dataclass(frozen=True)
class Scale:
    """One level of the pyramid."""

    size: tuple[int, int]  # (height, width) of the pastiche in pixels
    style_sizes: tuple[tuple[int, int], ...]  # (height, width) of each style image
    steps: int  # to be made


@dataclass(frozen=True)
class Job:
    """A style transfer, ready to run."""

    config: StyleTransferConfig  # what was asked for
    extractor: FeatureExtractor  # the network, on its device, in its precision
    mode: LossMode  # how losses reach the image's gradient
    # content, styles and regions, of any size; the pastiche has the content's aspect ratio.
    pictures: Inputs
    # (1, 3, h, w), the picture to begin with, or None for what `config.init` names.
    start: Tensor | None = None
    alpha: Tensor | None = None  # (1, 1, H, W), the content's transparency, or None
    # Of `style_targets_of` for a job of one scale, or None to have them made.
    styles: StyleTargets | None = None

    @cached_property
    def criterion(self) -> Criterion:
        """What pictures are compared by, at every scale."""
        return Criterion.of(self.config.objective)

    @cached_property
    def scales(self) -> list[Scale]:
        """The levels of the pyramid, coarse to fine."""
        return make_scales(self.config, self.pictures)

    @cached_property
    def is_grey(self) -> bool:
        """True if content, styles and the picture to begin with are grey; the pastiche then is."""
        return is_grey([*self.pictures.tensors, *([] if self.start is None else [self.start])])

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.extractor.parameters()).device

    @property
    def precision(self) -> str:
        """That of the network, such as "bfloat16"."""
        return self.extractor.precision

    def pictures_at(self, side: int) -> Inputs:
        """Return the pictures as a run has them where its longer side is `side` pixels."""
        scale = make_scale(self.config, self.pictures, side, steps=0)
        moved = self.pictures.to(self.on_device(self.pictures.content))
        return moved.resized(scale.size, scale.style_sizes)

    def on_device(self, image: Tensor) -> Tensor:
        """Return `image` as a run computes with it: on the device, at least in float32."""
        exact = self.extractor.dtype == torch.float64
        return image.to(self.device, torch.float64 if exact else torch.float32)


def parse_tile(text: str) -> int | None:
    """Return the pixels that `config.tile` names; 0 for auto, and None for off."""
    text = text.strip().lower()
    if text == "auto":
        return 0
    if text in ("off", "false"):  # YAML reads a bare off as false
        return None
    if not text.isdecimal() or int(text) == 0:
        raise UserError(f"tile={text} must be auto, off or a number of pixels above 0", "tile")
    return int(text)


def pyramid(size: int, scales: int, steps: int, smallest: float = SMALLEST_SCALE) -> list[int]:
    """Return the longer sides in pixels from coarse to fine, doubling, up to `size`.

    There are `scales` of them, for 0 as many as are at least `smallest`, and never more than steps.
    """
    sides = [size]
    while len(sides) < min(scales or steps, steps):
        side = round(size / 2 ** len(sides))
        if side < (1 if scales else smallest):
            break
        sides.append(side)
    return sides[::-1]


def steps_at_scale(steps: int, scales: int, index: int) -> int:
    """Return the steps of scale `index`, of which there are at least as many steps.

    Up to three scales share evenly, the remainder going to the finest. Of more than three the
    finest has FINEST_SHARE, and the others share the rest evenly.
    """
    if scales > 3:
        finest = min(round(FINEST_SHARE * steps), steps - (scales - 1))
        if index == scales - 1:
            return finest
        steps, scales = steps - finest, scales - 1
    return steps // scales + (1 if scales - index <= steps % scales else 0)


def make_scales(config: StyleTransferConfig, pictures: Inputs) -> list[Scale]:
    """Return the levels of a run, coarse to fine; the pastiche has the content's aspect ratio."""
    sides = pyramid(config.size, config.scales, config.steps, _smallest(config, pictures))
    return [
        make_scale(config, pictures, side, steps_at_scale(config.steps, len(sides), index))
        for index, side in enumerate(sides)
    ]


def _smallest(config: StyleTransferConfig, pictures: Inputs) -> float:
    """Return the longer side in pixels below which `scales=0` adds no coarser scale."""
    is_matched = config.objective.match_weight > 0
    smallest: float = SMALLEST_MATCHED_SCALE if is_matched else SMALLEST_SCALE
    factors = [1.0, *style_scales(config, len(pictures.styles))]
    for image, factor in zip(pictures.tensors, factors, strict=True):
        shorter, longer = sorted(_size(image))
        smallest = max(smallest, SHORTEST_SIDE * longer / (shorter * factor))
    return smallest


def make_scale(config: StyleTransferConfig, pictures: Inputs, side: int, steps: int) -> Scale:
    """Return the scale whose longer side is `side` pixels."""
    factors = style_scales(config, len(pictures.styles))
    style_sizes = tuple(
        scaled_size(_size(style), max(1, round(factor * side)))
        for style, factor in zip(pictures.styles, factors, strict=True)
    )
    return Scale(pastiche_size(config, _size(pictures.content), side), style_sizes, steps)


def pastiche_size(
    config: StyleTransferConfig, shape: tuple[int, int], side: int
) -> tuple[int, int]:
    """Return the (height, width) of a pastiche in the shape of another picture.

    Its longer side is `side` pixels; or the nearest of which no pool leaves out a rest, as a
    seamless picture has to be.
    """
    height, width = scaled_size(shape, side)
    if config.objective.seamless:
        height, width = (max(1, round(length / DEEPEST)) * DEEPEST for length in (height, width))
    return height, width


def style_scales(config: StyleTransferConfig, styles: int) -> list[float]:
    """Return one factor per style image: `style_scale`, and 1 for that of `style_detail`."""
    factors, detail = each(config.style_scale), [1.0] * (config.style_detail is not None)
    if len(factors) == 1:
        factors = factors * (styles - len(detail))
    return [*factors, *detail]


def _size(image: Tensor) -> tuple[int, int]:
    return image.shape[2], image.shape[3]


def starting_picture(config: StyleTransferConfig, pictures: Inputs) -> Tensor:
    """Return the picture (1, 3, h, w) that `init` content, style or noise names, of any size."""
    content = pictures.content
    if config.init == "content":
        return content
    if config.init == "style":  # the first that paints
        return pictures.styles[pictures.regions[0].sources[0].style]
    generator = torch.Generator().manual_seed(config.seed)
    return torch.rand(content.shape, generator=generator, dtype=content.dtype)


def enlarge(
    image: Tensor, start: Tensor, size: tuple[int, int], init: str, wraps: bool = False
) -> Tensor:
    """Return `image` at a finer scale, with some of the finest detail of where the run began.

    An enlarged picture is a blur, and the first ten steps would go into finding some detail again.
    Noise, as `init` says, has no detail worth keeping.

    The image (1, 3, h, w) is what the scale before has made of `start` (1, 3, H, W), or that very
    picture; `size` is the (height, width) of the finer scale; a picture that `wraps` goes on at its
    other side.
    """
    larger = resize(image, size, wraps=wraps)
    if init == "noise":
        return larger
    coarse = resize(start, (image.shape[2], image.shape[3]), wraps=wraps)
    detail = resize(start, size, wraps=wraps) - resize(coarse, size, wraps=wraps)
    return detail.mul_(DETAIL).add_(larger).clamp_(0, 1)
