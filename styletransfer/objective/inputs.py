"""What an objective is made of: a content image, style images, and which of them paints where."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from styletransfer.pictures.images import resize

# (height, width) in pixels.
Size = tuple[int, int]


@dataclass(frozen=True)
class StylePart:
    """A part of what a region's style is made of."""

    style: int = 0  # index of a style image
    share: float = 1.0  # above 0; the moments of all sources are averaged with these weights
    # (1, 1, h, w) in [0, 1], where in the style image to look; None for everywhere.
    weights: Tensor | None = None
    # The layers to which it speaks, of those that have style losses; None for all.
    layers: Collection[str] | None = None


@dataclass(frozen=True)
class Region:
    """Positions of the pastiche that are to have one style, and that style."""

    name: str = ""  # as in the names of its losses; empty for a picture that is not divided
    weights: Tensor | None = None  # (1, 1, H, W) in [0, 1], like an opacity; None for 1 everywhere
    sources: tuple[StylePart, ...] = (StylePart(),)  # what its style is made of

    @property
    def share(self) -> float:
        """Its share of the picture, in [0, 1]."""
        return 1.0 if self.weights is None else float(self.weights.double().mean())


@dataclass(frozen=True)
class Anchor:
    """What a film's frame is expected to look like, from the frame before."""

    target: Tensor  # (1, 3, H, W), sRGB in [0, 1], the expected frame
    weights: Tensor  # (1, 1, H, W) in [0, 1], how far each of its pixels is to be believed
    weight: float  # linear weight of the temporal loss in the objective

    def resized(self, size: Size) -> Self:
        """Return the same at (height, width) `size`."""
        weights = _resized(self.weights, size)
        assert weights is not None
        return replace(self, target=resize(self.target, size), weights=weights)

    def to(self, like: Tensor) -> Self:
        """Return the same on the device and in the dtype of `like`."""
        return replace(self, target=self.target.to(like), weights=self.weights.to(like))


@dataclass(frozen=True)
class Protection:
    """Pixels that stay as they are."""

    content: Tensor  # (1, 3, H, W), what they stay
    protected: Tensor  # (1, 1, H, W) in [0, 1]; between 0 and 1 the picture is a mixture

    def hold(self, image: Tensor) -> Tensor:
        """Return `image` (1, 3, H, W) with the content where that is protected."""
        return torch.lerp(image, self.content, self.protected)


@dataclass(frozen=True)
class Inputs:
    """The pictures of an objective, or of a whole run before they are resized for a scale."""

    content: Tensor  # (1, 3, H, W), sRGB in [0, 1]
    styles: tuple[Tensor, ...]  # (1, 3, h, w) each, sRGB in [0, 1]
    # Which style paints where. By default the first one paints everywhere.
    regions: tuple[Region, ...] = (Region(),)
    # (1, 1, H, W) in [0, 1], where the pastiche is to stay the content image; there the regions
    # have no weight, since no style loss can move it. None for nowhere.
    protected: Tensor | None = None
    painted: Tensor | None = None  # (1, 3, H, W), the pastiche so far, None at its beginning
    anchor: Anchor | None = None  # what the pastiche is held to beside that, None for nothing

    @property
    def tensors(self) -> list[Tensor]:
        """The content image and all style images."""
        return [self.content, *self.styles]

    @property
    def protection(self) -> Protection | None:
        """What holds the protected pixels; None where none are."""
        return None if self.protected is None else Protection(self.content, self.protected)

    def resized(self, size: Size, style_sizes: Sequence[Size]) -> Self:
        """Return the pictures at one scale.

        Args:
            size: (height, width) of the content image and all that lies on it.
            style_sizes: of each style image and what lies on it.
        """
        return replace(
            self,
            content=resize(self.content, size),
            styles=tuple(map(resize, self.styles, style_sizes)),
            regions=self._regions_with(
                lambda weights, style: _resized(
                    weights, size if style is None else style_sizes[style]
                )
            ),
            protected=_resized(self.protected, size),
            anchor=self.anchor and self.anchor.resized(size),
        )

    def to(self, like: Tensor) -> Self:
        """Return the pictures on the device and in the dtype of `like`."""
        return replace(
            self,
            content=self.content.to(like),
            styles=tuple(style.to(like) for style in self.styles),
            regions=self._regions_with(
                lambda weights, style: None if weights is None else weights.to(like)
            ),
            protected=None if self.protected is None else self.protected.to(like),
            anchor=self.anchor and self.anchor.to(like),
        )

    def _regions_with(
        self, change: Callable[[Tensor | None, int | None], Tensor | None]
    ) -> tuple[Region, ...]:
        """Return the regions with other weights: those on the content, and on style images."""
        return tuple(
            replace(
                region,
                weights=change(region.weights, None),
                sources=tuple(
                    replace(part, weights=change(part.weights, part.style))
                    for part in region.sources
                ),
            )
            for region in self.regions
        )


def pair(content: Tensor, style: Tensor) -> Inputs:
    """Return one content and one style image, without regions."""
    return Inputs(content, (style,))


def _resized(weights: Tensor | None, size: Size) -> Tensor | None:
    """Resample by averages over areas, so that regions that add up to 1 still do."""
    if weights is None or weights.shape[2:] == size:
        return weights
    return interpolate(weights, size, mode="bilinear", antialias=True).clamp(0.0, 1.0)
