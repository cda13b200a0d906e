"""A style transfer that is ready to run: its scales, their steps and sizes, and its start."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor
from styletransfer.losses import LossMode
from styletransfer.objective import Criterion
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.targets import Targets
from styletransfer.pictures.color import in_palette, palette
from styletransfer.pictures.images import is_grey, resize, scaled_size
from styletransfer.settings import StyleTransferConfig, each

# Values of `init` that are not the path of a picture.
STARTS = ("content", "style", "noise")
# Longer side in pixels below which `scales=0` adds no coarser size: VGG's deep layers have few
# positions there. A match loss needs coarser sizes, to place large shapes of the style, such as
# stars; if the sizes begin at 48 pixels, these shapes also cover faces.
SMALLEST_SCALE, SMALLEST_MATCHED_SCALE = 128, 96
# Smallest shorter side in pixels that `scales=0` chooses: two positions of the deepest layer.
SHORTEST_SIDE = 32

# Fraction of the steps that the finest of more than three scales makes. In runs of 100 steps up to
# 1536 pixels, 25 steps at the finest scale gave two pictures 1.2 and 2.6 times their style error at
# 512 pixels, and 42 steps gave 0.7 and 1.3 times.
FINEST_SHARE = 0.42
# The same fraction if there are match losses, for two scales or more. At 512 pixels a fraction of
# 0.42 took 1.5 times the time of 0.2 and made calm areas grainy; 0.2 gave paler colours than 0.3.
MATCHED_FINEST_SHARE = 0.25

# Stride of VGG's deepest layers: pixels per position along each axis.
DEEPEST = 16

# Fraction of the starting picture's fine detail that each finer scale adds; see `enlarge`. With 0
# the final losses of three pictures were 3 to 14 % higher; with 1 edges stayed, without strokes.
DETAIL = 0.5


@dataclass(frozen=True)
class Scale:
    """A scale is one level of the pyramid: picture sizes and a number of steps."""

    size: tuple[int, int]  # (height, width) of the pastiche in pixels
    style_sizes: tuple[tuple[int, int], ...]  # (height, width) of each style image
    steps: int  # number of steps


@dataclass(frozen=True)
class Job:
    """A job is a style transfer that is ready to run."""

    config: StyleTransferConfig  # the settings
    extractor: FeatureExtractor  # the network, on its device, in its precision
    mode: LossMode  # how losses are computed and differentiated
    # content, styles and regions, of any size; the pastiche has the content's aspect ratio.
    pictures: Inputs
    # Result of `style_targets_of` for a job of one scale, or None to compute it.
    styles: Targets | None = None

    @cached_property
    def criterion(self) -> Criterion:
        """The losses and their weights, at every scale."""
        return Criterion.of(self.config.objective)

    @cached_property
    def scales(self) -> list[Scale]:
        """The levels of the pyramid, coarse to fine."""
        return make_scales(self.config, self.pictures)

    @cached_property
    def is_grey(self) -> bool:
        """True if content, styles and start are grey, so that the pastiche must be grey."""
        start = self.pictures.start
        return is_grey([*self.pictures.tensors, *([] if start is None else [start])])

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return next(self.extractor.parameters()).device

    @property
    def precision(self) -> str:
        """The network's dtype, such as "bfloat16"."""
        return self.extractor.precision

    def pictures_at(self, side: int) -> Inputs:
        """Return the pictures on the device, at the scale of `side` pixels (longer side)."""
        scale = make_scale(self.config, self.pictures, side, steps=0)
        moved = self.pictures.to(self.on_device(self.pictures.content))
        return self.in_style_palette(moved.resized(scale.size, scale.style_sizes))

    def in_style_palette(self, pictures: Inputs) -> Inputs:
        """Return pictures with the content in the colours of its styles, for color=style_palette.

        In each region the content's colours get the mean and covariance of those of its styles
        (those used at the first style layer). Each pixel keeps its lightness, so that the light and
        shade of the content stay. Transparent pixels of the content do not count.
        """
        if self.config.color != "style_palette":
            return pictures
        content = result = pictures.content
        first = next(iter(self.criterion.styles), "")
        seen = torch.ones_like(content[:, :1])
        if pictures.alpha is not None:
            seen = resize(pictures.alpha.to(content), _size(content), "bilinear")
        for region in pictures.regions:
            own = seen if region.weights is None else seen * region.weights
            if own.sum() == 0:
                continue
            start = palette([(1.0, content, own)])
            end = palette(
                (part.share, pictures.styles[part.style], part.weights)
                for part in region.sources_at(first)
            )
            moved = in_palette(content, start, end, self.config.color_strength, keep_light=True)
            weights = 1.0 if region.weights is None else region.weights
            result = result + weights * (moved - content)
        return replace(pictures, content=result.clamp(0, 1))

    def on_device(self, image: Tensor) -> Tensor:
        """Return `image` on the device, in float64 if the network is, else in float32."""
        exact = self.extractor.dtype == torch.float64
        return image.to(self.device, torch.float64 if exact else torch.float32)


def parse_tile(text: str) -> int | None:
    """Return the side of a tile in pixels; 0 for auto, None for off (UserError: other text)."""
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

    There are `scales` sides, or for scales=0 all sides of at least `smallest`; at most `steps`.
    """
    sides = [size]
    while len(sides) < min(scales or steps, steps):
        side = round(size / 2 ** len(sides))
        if side < (1 if scales else smallest):
            break
        sides.append(side)
    return sides[::-1]


def steps_at_scale(steps: int, scales: int, index: int, share: float | None = None) -> int:
    """Return the number of steps of scale `index`, counted from 0; the sum over scales is `steps`.

    The finest scale makes the fraction `share` of all steps, and the others divide the rest evenly.
    Without `share`, up to three scales divide all evenly; of more, the finest makes FINEST_SHARE.
    `steps` is at least `scales`.
    """
    if share is None and scales > 3:
        share = FINEST_SHARE
    if share is not None and scales > 1:
        finest = max(1, min(round(share * steps), steps - (scales - 1)))
        if index == scales - 1:
            return finest
        steps, scales = steps - finest, scales - 1
    return steps // scales + (1 if scales - index <= steps % scales else 0)


def make_scales(config: StyleTransferConfig, pictures: Inputs) -> list[Scale]:
    """Return the levels of a run, coarse to fine; the pastiche has the content's aspect ratio."""
    sides = pyramid(config.size, config.scales, config.steps, _smallest(config, pictures))
    share = MATCHED_FINEST_SHARE if config.objective.match_weight > 0 else None
    return [
        make_scale(config, pictures, side, steps_at_scale(config.steps, len(sides), index, share))
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
    """Return the (height, width) of a pastiche with the aspect ratio of `shape` (height, width).

    The longer side is `side` pixels. No pool of the network may drop a row or column of a seamless
    pastiche, so its sides are rounded to multiples of DEEPEST.
    """
    height, width = scaled_size(shape, side)
    if config.objective.seamless:
        height, width = (max(1, round(length / DEEPEST)) * DEEPEST for length in (height, width))
    return height, width


def style_scales(config: StyleTransferConfig, styles: int) -> list[float]:
    """Return the relative size of each style image: `style_scale`, and 1 for `style_detail`."""
    factors, detail = each(config.style_scale), [1.0] * (config.style_detail is not None)
    if len(factors) == 1:
        factors = factors * (styles - len(detail))
    return [*factors, *detail]


def _size(image: Tensor) -> tuple[int, int]:
    return image.shape[2], image.shape[3]


def starting_picture(config: StyleTransferConfig, pictures: Inputs) -> Tensor:
    """Return the picture (1, 3, h, w), of any size, from which a run starts."""
    content = pictures.content
    if pictures.start is not None:
        return pictures.start
    if config.init == "content":
        return content
    if config.init == "style":  # the first style of the first region
        return pictures.styles[pictures.regions[0].sources[0].style]
    generator = torch.Generator().manual_seed(config.seed)
    return torch.rand(content.shape, generator=generator, dtype=content.dtype)


def enlarge(
    image: Tensor, start: Tensor, size: tuple[int, int], init: str, wraps: bool = False
) -> Tensor:
    """Return `image` at a finer scale, plus DETAIL times the finest detail of `start`.

    An enlarged picture is blurred, and the first ten steps would only make detail again. For
    init=noise nothing is added, because the detail of noise is useless. If the scale before changed
    nothing, as with one picture for content and style, the result is `start` at the finer scale.

    `image` (1, 3, h, w) is the result of the scale before, or `start` (1, 3, H, W) itself. `size`
    is the (height, width) of the finer scale. If `wraps`, each edge continues at the opposite edge.
    """
    larger = resize(image, size, wraps=wraps)
    if init == "noise":
        return larger
    coarse = resize(start, (image.shape[2], image.shape[3]), wraps=wraps)
    fine = resize(start, size, wraps=wraps)
    if torch.equal(image, coarse):
        return fine
    detail = fine - resize(coarse, size, wraps=wraps)
    return detail.mul_(DETAIL).add_(larger).clamp_(0, 1)
