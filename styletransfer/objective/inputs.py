"""The inputs of an objective: a content image, style images, and the regions that they paint.

A region has a weight at each pixel; `at_layers` averages these weights over a layer's positions.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.features.tensors import to_float64
from styletransfer.pictures.images import resize

# (height, width) in pixels.
Size = tuple[int, int]
# A function (tensor, index of its style image) -> changed tensor. The index is None if the tensor
# belongs to the content image.
Change = Callable[[Tensor, int | None], Tensor]
# A region is used at a layer if the sum of its weights, over the layer's positions, is at least
# FEWEST, because its moments are divided by the sum.
FEWEST = 1.0


@dataclass(frozen=True)
class StylePart:
    """A style part is a style image, or some of its pixels, that paints a region."""

    style: int = 0  #: index of the style image in `Inputs.styles`
    share: float = 1.0  #: above 0; weight of this part's moments in the mean over a region's parts
    #: (1, 1, h, w) in [0, 1], weights of the style image's pixels; None for 1 everywhere.
    weights: Tensor | None = None
    #: Names of the layers at which this style image is used; None for all layers.
    layers: Collection[str] | None = None
    #: Factor, 0 or larger, on the region's style losses. If several style parts paint the region,
    #: each `share` is multiplied by the part's strength, and the losses by the mean strength,
    #: weighted by the shares.
    strength: float = 1.0


@dataclass(frozen=True)
class Region:
    """A region is a part of the pastiche, with the style images that paint it."""

    name: str = ""  #: used in the names of its losses; empty for an undivided picture
    weights: Tensor | None = None  #: (1, 1, H, W) in [0, 1], like an opacity; None for 1 everywhere
    sources: tuple[StylePart, ...] = (StylePart(),)  #: the style images that paint the region

    @property
    def share(self) -> float:
        """The fraction of the picture that the region covers, in [0, 1]."""
        return 1.0 if self.weights is None else float(to_float64(self.weights).mean())

    def sources_at(self, layer: str) -> tuple[StylePart, ...]:
        """Return the style parts that are used at `layer`, or all parts if none is used there."""
        acting = (part for part in self.sources if part.layers is None or layer in part.layers)
        return tuple(acting) or self.sources

    def strength_at(self, layer: str) -> float:
        """Return the mean strength of the style parts used at `layer`, weighted by their shares."""
        parts = self.sources_at(layer)
        strength = sum(part.share * part.strength for part in parts)
        return strength / sum(part.share for part in parts)


@dataclass(frozen=True)
class Anchor:
    """An anchor is a picture to which the pastiche is kept similar.

    In a film it is the expected frame, predicted from the frame before. In paired painting it is
    the picture of copied pixels.
    """

    target: Tensor  #: (1, 3, H, W), sRGB in [0, 1]
    weights: Tensor  #: (1, 1, H, W) in [0, 1], the confidence in each pixel of `target`
    weight: float  #: weight of the `temporal_loss` between the pastiche and `target`
    name: str = "temporal"  #: name of this loss


@dataclass(frozen=True)
class Protection:
    """A protection says at which pixels the pastiche shows the content image."""

    content: Tensor  #: (1, 3, H, W), the content image
    protected: Tensor  #: (1, 1, H, W) in [0, 1], 1 where the content image is shown

    def hold(self, image: Tensor) -> Tensor:
        """Return `image` (1, 3, H, W) with the content image at protected pixels."""
        return torch.lerp(image, self.content, self.protected)

    def resized(self, size: Size) -> Self:
        """Return the protection of a picture of `size`, (height, width)."""
        return replace(
            self,
            content=resize(self.content, size),
            protected=resize(self.protected, size, "bilinear"),
        )


@dataclass(frozen=True)
class Correspondence:
    """A correspondence holds, for each pixel of the content, the matched pixel of a style image.

    A pixel here is a cell of a grid: the content is divided into (h, w) cells, and style image k
    into `cells[k]`. So the correspondence applies to pictures of any size. In a film, a match may
    lie between cells: its row and column are then not integers.
    """

    #: (3, h, w), float32, on the CPU: the index of the matched style image, and the row and the
    #: column of the matched cell in the grid of this style image.
    places: Tensor
    cells: list[tuple[int, int]]  #: (height, width) of each style image's grid, in cells

    @property
    def size(self) -> Size:
        """The (height, width) of the content's grid, in cells."""
        return self.places.shape[1], self.places.shape[2]

    @property
    def own(self) -> Tensor:
        """(3, h, w), float32: 0, row and column of each cell in the content's own grid."""
        rows, columns = (torch.arange(float(side)) for side in self.size)
        zero, *grid = torch.meshgrid(torch.zeros(1), rows, columns, indexing="ij")
        return torch.cat([zero, *grid])


@dataclass(frozen=True)
class Repetition:
    """A repetition says which places of a style image occur in it more than once."""

    weights: Tensor  #: (1, 1, h, w) in [0, 1]; 0 where no distant place looks alike
    strength: float  #: in [0, 1]: 0 if nothing is repeated, 1 if much of the picture is repeated


@dataclass(frozen=True)
class Inputs:
    """`Inputs` are the pictures of a run, or these pictures resized for one scale."""

    content: Tensor  #: (1, 3, H, W), sRGB in [0, 1]
    styles: tuple[Tensor, ...]  #: (1, 3, h, w) each, sRGB in [0, 1]
    #: The regions and their styles. By default the first style paints everywhere.
    regions: tuple[Region, ...] = (Region(),)
    #: (1, 1, H, W) in [0, 1], 1 where the pastiche keeps the content image. Regions have weight 0
    #: at these pixels, because no style loss can change them. None if no pixel is protected.
    protected: Tensor | None = None
    #: (1, 3, h, w), the picture of `init`, from which the run starts; None if `init` is content,
    #: style or noise. At a later scale, it is the pastiche from which that scale starts.
    start: Tensor | None = None
    anchor: Anchor | None = None  #: a picture to which the pastiche is kept similar, or None
    #: For each style image, a painting, the photograph that it was painted from, (1, 3, h, w); ()
    #: without photographs.
    sources: tuple[Tensor, ...] = ()
    #: For each content pixel, the most similar pixel of the sources; None without sources.
    correspondence: Correspondence | None = None
    #: For each style image, which places look like others in it; () to treat all places alike.
    repetitions: tuple[Repetition, ...] = ()
    #: (1, 1, H, W), the content's alpha at full size, 0 transparent to 1 opaque; or None.
    alpha: Tensor | None = None
    names: tuple[str, ...] = ()  #: names of the content image and of each style, for messages

    @property
    def tensors(self) -> list[Tensor]:
        """The content image and all style images."""
        return [self.content, *self.styles]

    @property
    def protection(self) -> Protection | None:
        """The protection of pixels, or None if no pixel is protected."""
        return None if self.protected is None else Protection(self.content, self.protected)

    def resized(self, size: Size, style_sizes: Sequence[Size]) -> Self:
        """Return resized pictures: the content at `size`, styles and sources at `style_sizes`."""

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
        """Apply the function `weights` to all weights, and the function `image` to all images."""

        def changed(old: Tensor | None, style: int | None = None) -> Tensor | None:
            return None if old is None else weights(old, style)

        def part(old: StylePart) -> StylePart:
            return replace(old, weights=changed(old.weights, old.style))

        if (anchor := self.anchor) is not None:
            target, confidence = image(anchor.target, None), weights(anchor.weights, None)
            anchor = replace(anchor, target=target, weights=confidence)
        return replace(
            self,
            content=image(self.content, None),
            styles=tuple(image(style, number) for number, style in enumerate(self.styles)),
            sources=tuple(image(source, number) for number, source in enumerate(self.sources)),
            repetitions=tuple(
                replace(old, weights=weights(old.weights, number))
                for number, old in enumerate(self.repetitions)
            ),
            regions=tuple(
                replace(old, weights=changed(old.weights), sources=tuple(map(part, old.sources)))
                for old in self.regions
            ),
            protected=changed(self.protected),
            start=None if self.start is None else image(self.start, None),
            anchor=anchor,
        )


def pair(content: Tensor, style: Tensor) -> Inputs:
    """Return inputs with one content image and one style image, without regions."""
    return Inputs(content, (style,))


def at_layers(
    extractor: FeatureExtractor, weights: Tensor | None, layers: Collection[str]
) -> dict[str, Tensor | None]:
    """Return layer -> weights (h, w) in [0, 1] of the layer's positions; None if `weights` is None.

    `weights` (1, 1, H, W) in [0, 1] are the weights of the pixels of an image; None weighs all
    pixels alike. The weight of a position is the mean over its stride x stride pixels. A layer is
    left out if the sum of its weights is below FEWEST.
    """
    if weights is None:
        return dict.fromkeys(layers)
    positions: dict[str, Tensor | None] = {}
    for layer in layers:
        stride = extractor.stride(layer)
        mean = avg_pool2d(weights, stride) if stride > 1 else weights
        if mean.sum() >= FEWEST:
            positions[layer] = mean[0, 0]
    return positions
