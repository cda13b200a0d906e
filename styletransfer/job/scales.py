"""The scales of a job: sizes of the pastiche and of its style images, and a number of steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from styletransfer.errors import UserError
from styletransfer.objective.inputs import Inputs, Size
from styletransfer.pictures.images import scaled_size, size_of
from styletransfer.settings import StyleTransferConfig, each

# Smallest longer side in pixels of a size that `scales=0` adds. Below SMALLEST_SCALE, VGG's deep
# layers have too few positions. With match losses the limit is SMALLEST_MATCHED_SCALE, because they
# need coarser sizes to place large shapes of the style, such as stars. If the sizes began at 48
# pixels, these shapes would also cover faces.
SMALLEST_SCALE, SMALLEST_MATCHED_SCALE = 128, 96
# Smallest shorter side in pixels of pastiche and styles at the coarser scales that `scales=0` adds:
# two positions of the deepest layer.
SHORTEST_SIDE = 32

# If there are more than three scales, the finest scale makes this fraction of the steps. In runs of
# 100 steps up to 1536 pixels, the style errors of two pictures were 1.2 and 2.6 times their errors
# at 512 pixels if the finest scale made 25 steps, and 0.7 and 1.3 times if it made 42.
FINEST_SHARE = 0.42
# The same fraction for jobs with match losses, if there are two scales or more. At 512 pixels a
# fraction of 0.42 took 1.5 times as long as 0.2 and made calm areas grainy; 0.2 gave paler colours
# than 0.3.
MATCHED_FINEST_SHARE = 0.25

# Stride of VGG's deepest layers: pixels per position along each axis.
DEEPEST = 16


@dataclass(frozen=True)
class Scale:
    """A scale is one level of the pyramid: picture sizes and a number of steps."""

    size: Size  # (height, width) of the pastiche in pixels
    style_sizes: tuple[Size, ...]  # (height, width) of each style image in pixels
    steps: int  # number of optimiser steps at this scale


@dataclass(frozen=True)
class Pyramid:
    """A pyramid says which scales a job has, before the shapes of its pictures are known."""

    side: int  # longer side of the pastiche in pixels
    count: int  # number of scales, or 0 for all that are large enough
    steps: int  # number of steps of all scales together
    # Ratio of a style image's longer side to the pastiche's: one number for all, or one for each.
    style_scale: tuple[float, ...]
    has_detail: bool  # whether the last style image is `style_detail`, whose ratio is 1
    is_matched: bool  # whether there are match losses
    is_seamless: bool  # whether opposite edges of the pastiche fit together

    @classmethod
    def of(cls, config: StyleTransferConfig) -> Self:
        """Return the pyramid of the settings."""
        return cls(
            config.size,
            config.scales,
            config.steps,
            tuple(each(config.style_scale)),
            config.style_detail is not None,
            config.objective.match_weight > 0,
            config.objective.seamless,
        )

    def scales(self, pictures: Inputs) -> tuple[Scale, ...]:
        """Return the scales for the shapes of these pictures, coarse to fine.

        The pastiche has the content's aspect ratio. Raises UserError if a side of a seamless
        pastiche is no multiple of DEEPEST, or if `style_scale` has the wrong length.
        """
        shape, style_shapes = size_of(pictures.content), list(map(size_of, pictures.styles))
        height, width = size = scaled_size(shape, self.side)
        if size != self.pastiche(shape):
            raise UserError(
                f"a seamless picture's sides must be multiples of {DEEPEST} pixels, not {width} x "
                f"{height}; choose another size, or a content that is cut so"
            )
        factors = self.factors(len(style_shapes))
        smallest: float = SMALLEST_MATCHED_SCALE if self.is_matched else SMALLEST_SCALE
        for sides, factor in zip([shape, *style_shapes], [1.0, *factors], strict=True):
            smallest = max(smallest, SHORTEST_SIDE * max(sides) / (min(sides) * factor))
        longer = longer_sides(self.side, self.count, self.steps, smallest)
        share = MATCHED_FINEST_SHARE if self.is_matched else None
        return tuple(
            Scale(
                self.pastiche(shape, side),
                tuple(
                    scaled_size(style, max(1, round(factor * side)))
                    for style, factor in zip(style_shapes, factors, strict=True)
                ),
                steps_at_scale(self.steps, len(longer), index, share),
            )
            for index, side in enumerate(longer)
        )

    def pastiche(self, shape: Size, side: int | None = None) -> Size:
        """Return the (height, width) of a pastiche with the aspect ratio of `shape`.

        The longer side is `side` pixels, by default as at the finest scale. No pooling layer
        may drop a row or column of a seamless pastiche, so its sides are rounded to
        multiples of DEEPEST.
        """
        height, width = scaled_size(shape, side or self.side)
        if self.is_seamless:
            height, width = (
                max(1, round(length / DEEPEST)) * DEEPEST for length in (height, width)
            )
        return height, width

    def factors(self, styles: int) -> list[float]:
        """Return, for each style image, its longer side divided by the pastiche's longer side."""
        details = [1.0] * self.has_detail
        return [*for_each("style_scale", self.style_scale, styles - len(details)), *details]


def for_each(key: str, numbers: Sequence[float], styles: int) -> list[float]:
    """Return one number for each style; UserError unless `numbers` holds 1 or `styles` numbers."""
    if (count := len(numbers)) not in (1, styles):
        raise UserError(
            f"{key} holds {count} numbers but there are {styles} styles; give one number, or "
            "one for each",
            key,
        )
    return list(numbers) * styles if count == 1 else list(numbers)


def longer_sides(size: int, scales: int, steps: int, smallest: float = SMALLEST_SCALE) -> list[int]:
    """Return each scale's longer side in pixels: each is twice the one before, up to `size`.

    There are `scales` sides, or for scales=0 all sides of at least `smallest` pixels. There are
    never more than `steps` sides, because each scale makes a step or more.
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
    Without `share`, up to three scales divide the steps evenly; if there are more, the finest makes
    the fraction FINEST_SHARE. `steps` is at least `scales`.
    """
    if share is None and scales > 3:
        share = FINEST_SHARE
    if share is not None and scales > 1:
        finest = max(1, min(round(share * steps), steps - (scales - 1)))
        if index == scales - 1:
            return finest
        steps, scales = steps - finest, scales - 1
    return steps // scales + (1 if scales - index <= steps % scales else 0)
