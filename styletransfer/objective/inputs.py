"""What an objective is made of: a content image, style images, and which of them paints where.

Where is told by pixels, and followed to the positions of a layer: how much of a region each sees.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.pictures.images import resize
from styletransfer.system.precision import to_float64

# (height, width) in pixels.
Size = tuple[int, int]
# (a tensor, the style image that it is or lies on, None for the content image) -> another.
Change = Callable[[Tensor, int | None], Tensor]
# Below so many positions in all, a region has vanished from a layer: nothing is divided by about 0.
FEWEST = 1.0


@dataclass(frozen=True)
class StylePart:
    """A part of what a region's style is made of."""

    style: int = 0  #: index of a style image
    share: float = 1.0  #: above 0; the moments of all sources are averaged with these weights
    #: (1, 1, h, w) in [0, 1], where in the style image to look; None for everywhere.
    weights: Tensor | None = None
    #: The layers to which it speaks, of those that have style losses; None for all.
    layers: Collection[str] | None = None


@dataclass(frozen=True)
class Region:
    """Positions of the pastiche that are to have one style, and that style."""

    name: str = ""  #: as in the names of its losses; empty for a picture that is not divided
    weights: Tensor | None = None  #: (1, 1, H, W) in [0, 1], like an opacity; None for 1 everywhere
    sources: tuple[StylePart, ...] = (StylePart(),)  #: what its style is made of

    @property
    def share(self) -> float:
        """Its share of the picture, in [0, 1]."""
        return 1.0 if self.weights is None else float(to_float64(self.weights).mean())


@dataclass(frozen=True)
class Anchor:
    """What a film's frame is expected to look like, from the frame before."""

    target: Tensor  #: (1, 3, H, W), sRGB in [0, 1], the expected frame
    weights: Tensor  #: (1, 1, H, W) in [0, 1], how far each of its pixels is to be believed
    weight: float  #: linear weight of the temporal loss in the objective


@dataclass(frozen=True)
class Protection:
    """Pixels that stay as they are."""

    content: Tensor  #: (1, 3, H, W), what they stay
    protected: Tensor  #: (1, 1, H, W) in [0, 1]; between 0 and 1 the picture is a mixture

    def hold(self, image: Tensor) -> Tensor:
        """Return `image` (1, 3, H, W) with the content where that is protected."""
        return torch.lerp(image, self.content, self.protected)


@dataclass(frozen=True)
class Inputs:
    """The pictures of an objective, or of a whole run before they are resized for a scale."""

    content: Tensor  #: (1, 3, H, W), sRGB in [0, 1]
    styles: tuple[Tensor, ...]  #: (1, 3, h, w) each, sRGB in [0, 1]
    #: Which style paints where. By default the first one paints everywhere.
    regions: tuple[Region, ...] = (Region(),)
    #: (1, 1, H, W) in [0, 1], where the pastiche is to stay the content image; there the regions
    #: have no weight, since no style loss can move it. None for nowhere.
    protected: Tensor | None = None
    painted: Tensor | None = None  #: (1, 3, H, W), the pastiche so far, None at its beginning
    anchor: Anchor | None = None  #: what the pastiche is held to beside that, None for nothing

    @property
    def tensors(self) -> list[Tensor]:
        """The content image and all style images."""
        return [self.content, *self.styles]

    @property
    def protection(self) -> Protection | None:
        """What holds the protected pixels; None where none are."""
        return None if self.protected is None else Protection(self.content, self.protected)

    def resized(self, size: Size, style_sizes: Sequence[Size]) -> Self:
        """Return the pictures at one scale: `size` is the content's, and that of all on it."""

        def at(style: int | None) -> Size:
            return size if style is None else style_sizes[style]

        return self._changed(
            lambda image, style: resize(image, at(style)),
            lambda weights, style: resize(weights, at(style), "bilinear"),
        )

    def to(self, like: Tensor) -> Self:
        """Return the pictures on the device and in the dtype of `like`."""
        return self._changed(lambda image, _: image.to(like), lambda weights, _: weights.to(like))

    def _changed(self, image: Change, weights: Change) -> Self:
        """Return the same with other images and other weights."""

        def known(old: Tensor | None, style: int | None = None) -> Tensor | None:
            return None if old is None else weights(old, style)

        def part(old: StylePart) -> StylePart:
            return replace(old, weights=known(old.weights, old.style))

        if (anchor := self.anchor) is not None:
            target, believed = image(anchor.target, None), weights(anchor.weights, None)
            anchor = replace(anchor, target=target, weights=believed)
        return replace(
            self,
            content=image(self.content, None),
            styles=tuple(image(style, number) for number, style in enumerate(self.styles)),
            regions=tuple(
                replace(old, weights=known(old.weights), sources=tuple(map(part, old.sources)))
                for old in self.regions
            ),
            protected=known(self.protected),
            anchor=anchor,
        )


def pair(content: Tensor, style: Tensor) -> Inputs:
    """Return one content and one style image, without regions."""
    return Inputs(content, (style,))


def at_layers(
    extractor: FeatureExtractor, weights: Tensor, layers: Collection[str]
) -> dict[str, Tensor | None]:
    """Return layer -> weights (h, w) in [0, 1] of its positions, or None if they sum to below 1.

    The weights (1, 1, H, W) in [0, 1] are a region's at the pixels. A position's weight is the mean
    over the pixels of its stride.
    """
    positions: dict[str, Tensor | None] = {}
    for layer in layers:
        stride = extractor.stride(layer)
        mean = avg_pool2d(weights, stride) if stride > 1 else weights
        positions[layer] = None if mean.sum() < FEWEST else mean[0, 0]
    return positions
