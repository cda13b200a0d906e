"""The features, moments and loss gradients of a picture, computed tile by tile."""

import functools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.features.tensors import accumulate_dtype
from styletransfer.losses import (
    ContentDistance,
    MatchDistance,
    PositionalDistance,
    StyleDistance,
)
from styletransfer.losses.moments import Moments, add_moments_gradient, moments
from styletransfer.objective.reader import WeightedLayer
from styletransfer.objective.targets import Targets
from styletransfer.pictures.images import size_of
from styletransfer.tiling.fed_tap import FedTap
from styletransfer.tiling.passes import Passes, passes
from styletransfer.tiling.tiles import Tile, stages

# Gradients of a style loss with respect to its two moments, the mean (C,) and the second moments
# (C, C). A gradient is None if the loss does not use this moment.
Slope = tuple[Tensor | None, Tensor | None]
Slopes = dict[str, Slope]  # name of a style loss -> these gradients


@dataclass(eq=False)
class Scan:
    """A Scan runs a network on a picture tile by tile, and collects its features or moments."""

    extractor: FeatureExtractor  # the network, up to the deepest layer that is read
    tile: int  # side of a tile in pixels, without the halo that it also reads; see `Stage.tiles`
    with_mean: bool  # whether the moments include the mean

    def passes(self, image: Tensor, layers: Collection[str] = ()) -> Passes:
        """Return the passes for `image`, up to the deepest of `layers` (default: all layers)."""
        extractor = self.extractor.ended_at(layers) if layers else self.extractor
        return passes(stages(extractor), size_of(image), self.tile)

    def features(self, image: Tensor, layers: Collection[str]) -> dict[str, Tensor]:
        """Return layer -> features (1, C, h, w) of an image (1, 3, H, W)."""
        wholes: dict[str, Tensor] = {}

        def keep(layer: str, tile: Tile, features: Tensor) -> Tensor:
            if layer in layers:
                stride = self.extractor.stride(layer)
                if layer not in wholes:
                    height, width = (side // stride for side in image.shape[2:])
                    shape = (1, features.shape[1], height, width)
                    empty = features.new_empty(shape)
                    wholes[layer] = empty.to(memory_format=torch.channels_last)
                wholes[layer][tile.whole[layer]] = features[tile.own[layer]]
            return features

        if layers:
            self.passes(image, layers).show(image, keep)
        return wholes

    def moments(self, image: Tensor, weighted: Sequence[WeightedLayer]) -> list[Moments]:
        """Return the moments of the image's features for each (layer, weights) in `weighted`."""
        sums, layers = [self.blank(layer, image) for layer, _ in weighted], dict(weighted).keys()

        def add(layer: str, tile: Tile, features: Tensor) -> Tensor:
            for index, one in enumerate(weighted):
                if one[0] == layer:
                    sums[index] = self.add_moments(sums[index], one, tile, features, image)
            return features

        if layers:
            self.passes(image, layers).show(image, add)
        return sums

    def blank(self, layer: str, image: Tensor) -> Moments:
        """Return moments of a layer that are all zero, on the device of `image`."""
        channels = 3
        for module in self.extractor.ended_at([layer]).layers.values():
            channels = getattr(module, "out_channels", channels)
        dtype = accumulate_dtype(self.extractor.dtype)
        mean = image.new_zeros(channels if self.with_mean else 0, dtype=dtype)
        return Moments(mean, image.new_zeros(channels, channels, dtype=dtype))

    def add_moments(
        self, sums: Moments, weighted: WeightedLayer, tile: Tile, features: Tensor, image: Tensor
    ) -> Moments:
        """Return `sums` plus what the positions that a tile owns contribute to the moments.

        `features` (1, C, h, w) are the layer's output for the tile and the halo around it. The
        layer's weights must be above 0 somewhere in the image.
        """
        owned = features[tile.own[weighted[0]]]
        weights, total = self.weights(weighted, tile, image)
        if not owned.numel() or (weights is not None and not weights.any()):
            return sums  # the tile owns no position whose weight is above 0
        part = (owned[0, 0].numel() if weights is None else weights.sum()) / total
        seen = moments(owned, self.with_mean, weights)
        return Moments(*(old + part * moment for old, moment in zip(sums, seen, strict=True)))

    def weights(
        self, weighted: WeightedLayer, tile: Tile, image: Tensor
    ) -> tuple[Tensor | None, Tensor | float]:
        """Return the weights of a tile's positions (None: all 1), and the sum of all weights."""
        layer, positions = weighted
        stride = self.extractor.stride(layer)
        if positions is None:
            return None, math.prod((image.shape[2] // stride, image.shape[3] // stride))
        _, rows, columns = tile.whole[layer]
        return positions[rows, columns], positions.sum()


@dataclass(eq=False)
class TileLosses:
    """`TileLosses` adds up the losses of one evaluation, tile by tile."""

    scan: Scan  # adds up moments over tiles
    targets: Targets  # layer -> the content, match and style losses at this layer
    image: Tensor  # (1, 3, H, W), the whole picture, detached
    # Name -> weighted loss, 0-d. The backward pass adds content and match losses, tile by tile.
    terms: dict[str, Tensor]
    sums: dict[str, Moments]  # name of a style loss -> moments of the tiles seen so far
    slopes: Slopes  # gradients of style losses with respect to `sums`, for the backward pass

    def measure(self, layer: str, tile: Tile, features: Tensor) -> Tensor:
        """Add a tile's features to the moments of the layer's style losses; return the features."""
        for target in self.targets.get(layer, []):
            if not isinstance(target.distance, StyleDistance):
                continue
            weighted, before = (layer, target.distance.weights), self.sums[target.name]
            seen = (tile, features.detach(), self.image)
            self.sums[target.name] = self.scan.add_moments(before, weighted, *seen)
        return features

    def feed(self, layer: str, tile: Tile, features: Tensor) -> Tensor:
        """Return the features, with a graph node whose backward adds the losses' gradients."""
        if layer not in self.targets:
            return features
        fed: Tensor = FedTap.apply(features, functools.partial(self._joined, tile, layer))
        return fed

    def measure_and_feed(self, layer: str, tile: Tile, features: Tensor) -> Tensor:
        """Call `measure`, then `feed`."""
        return self.feed(layer, tile, self.measure(layer, tile, features))

    def _joined(self, tile: Tile, layer: str, features: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient of a tile's features, plus the gradients of the layer's losses."""
        own = tile.own[layer]
        share = gradient[own]
        if not share.numel():
            return gradient
        for target in self.targets[layer]:
            match target.distance:
                case StyleDistance() as style:
                    weighted, slopes = (layer, style.weights), self.slopes[target.name]
                    share = self._add_style(share, features[own], weighted, slopes, tile)
                case PositionalDistance() as whole:
                    part, positions = whole.at(tile.whole[layer]), whole.target[0, 0].numel()
                    weight = target.weight * share[0, 0].numel() / positions
                    share, loss = _add_positional(share, features[own], part, weight)
                    self.terms[target.name] += loss
        if share.shape == gradient.shape:  # no halo: the tile owns all positions
            return share
        joined = gradient.clone()
        joined[own] = share
        return joined

    def _add_style(
        self, share: Tensor, seen: Tensor, weighted: WeightedLayer, slopes: Slope, tile: Tile
    ) -> Tensor:
        """Return the gradient `share` of features `seen`, plus the gradient of a style loss."""
        weights, total = self.scan.weights(weighted, tile, self.image)
        if weights is not None and not weights.any():
            return share
        joined = add_moments_gradient(share, seen, *slopes, total, weights)
        assert joined is not None
        return joined


def _add_positional(
    share: Tensor, seen: Tensor, distance: ContentDistance | MatchDistance, weight: float
) -> tuple[Tensor, Tensor]:
    """Return `share` plus the gradient of weight * L with respect to `seen`, and weight * L.

    L is the `distance` of the tile's features `seen`, and `share` their gradient so far. `weight`
    is the weight of L in the objective, times the fraction of all positions that the tile owns.
    """
    with torch.enable_grad():
        leaf = seen.detach().requires_grad_()
        tapped, loss = distance.tap(leaf)
    (joined,) = torch.autograd.grad((tapped, loss), leaf, (share, torch.full_like(loss, weight)))
    return joined, weight * loss.detach()
