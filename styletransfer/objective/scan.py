"""The features, moments and loss gradients of a picture, computed tile by tile."""

import functools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.features.tiles import Tile, stages
from styletransfer.losses import mean_square
from styletransfer.losses.cosine import cosine_gradient, cosine_loss
from styletransfer.losses.moments import Moments, add_moments_gradient, moments
from styletransfer.objective.fed_tap import fed_tap
from styletransfer.objective.passes import Passes, passes
from styletransfer.objective.targets import Target, Targets, WeightedLayer
from styletransfer.system.tensors import accumulate_dtype

# Name of a style loss L -> dL/dmean (C,), dL/dsecond (C, C); None for a moment that L does not use.
Slopes = dict[str, tuple[Tensor | None, Tensor | None]]


@dataclass(eq=False)
class Scan:
    """A scan applies a network to pictures, tile by tile."""

    extractor: FeatureExtractor  # ends at the deepest layer with a loss
    tile: int  # side of a tile in pixels, without the halo that it also reads; see `Stage.tiles`
    with_mean: bool  # whether the moments include the mean

    def passes(self, image: Tensor, layers: Collection[str] = ()) -> Passes:
        """Return the passes through `image`, up to the deepest of `layers` (default: all)."""
        extractor = self.extractor.ended_at(layers) if layers else self.extractor
        return passes(stages(extractor), (image.shape[2], image.shape[3]), self.tile)

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

    def measured(self, image: Tensor, weighted: Sequence[WeightedLayer]) -> list[Moments]:
        """Return the moments of the image's features at each weighted layer."""
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
        """Return moments of zeros for a layer, on the device of `image`."""
        channels = 3
        for module in self.extractor.ended_at([layer]).layers.values():
            channels = getattr(module, "out_channels", channels)
        dtype = accumulate_dtype(self.extractor.dtype)
        mean = image.new_zeros(channels if self.with_mean else 0, dtype=dtype)
        return Moments(mean, image.new_zeros(channels, channels, dtype=dtype))

    def add_moments(
        self, sums: Moments, weighted: WeightedLayer, tile: Tile, features: Tensor, image: Tensor
    ) -> Moments:
        """Return `sums` plus what the positions that a tile owns add to the image's moments.

        `features` (1, C, h, w) are the layer's output, of the tile and the halo around it. The
        layer's weights must be above 0 somewhere in the image.
        """
        owned = features[tile.own[weighted[0]]]
        weights, total = self.weights(weighted, tile, image)
        if not owned.numel() or (weights is not None and not weights.any()):  # adds nothing
            return sums
        part = (owned[0, 0].numel() if weights is None else weights.sum()) / total
        seen = moments(owned, self.with_mean, weights)
        return Moments(*(old + part * moment for old, moment in zip(sums, seen, strict=True)))

    def weights(
        self, weighted: WeightedLayer, tile: Tile, image: Tensor
    ) -> tuple[Tensor | None, Tensor | float]:
        """Return the weights of a tile's own positions (None: all 1), and the whole image's sum."""
        layer, positions = weighted
        stride = self.extractor.stride(layer)
        if positions is None:
            return None, math.prod((image.shape[2] // stride, image.shape[3] // stride))
        _, rows, columns = tile.whole[layer]
        return positions[rows, columns], positions.sum()


@dataclass(eq=False)
class TileLosses:
    """`TileLosses` adds up the losses of one evaluation, tile by tile."""

    scan: Scan  # computes features and moments
    targets: Targets  # what the picture is compared with
    image: Tensor  # (1, 3, H, W), the whole picture, detached
    terms: dict[str, Tensor]  # name -> content or match loss, 0-d; backward adds to it
    sums: dict[str, Moments]  # name of a style loss -> moments so far; `measure` adds to them
    slopes: Slopes  # gradients w.r.t. the moments, set between the two passes

    def measure(self, layer: str, tile: Tile, features: Tensor) -> Tensor:
        """Add the tile's contribution to the moments at `layer`; return the features."""
        for target in self.targets.get(layer, []):
            if target.kind != "style":
                continue
            weighted, before = (layer, target.positions), self.sums[target.name]
            seen = (tile, features.detach(), self.image)
            self.sums[target.name] = self.scan.add_moments(before, weighted, *seen)
        return features

    def feed(self, layer: str, tile: Tile, features: Tensor) -> Tensor:
        """Return the features; their backward adds the gradients of the losses at `layer`."""
        if layer not in self.targets:
            return features
        return fed_tap(features, functools.partial(self._joined, tile, layer))

    def measure_and_feed(self, layer: str, tile: Tile, features: Tensor) -> Tensor:
        """Call `measure`, then `feed`."""
        return self.feed(layer, tile, self.measure(layer, tile, features))

    def _joined(self, tile: Tile, layer: str, features: Tensor, gradient: Tensor) -> Tensor:
        """Return `gradient` plus dL/dF of the layer's losses at the positions that a tile owns."""
        own = tile.own[layer]
        share = gradient[own]
        if not share.numel():
            return gradient
        for target in self.targets[layer]:
            add = self._add_style if target.kind == "style" else self._add_positional
            share = add(share, features[own], target, layer, tile)
        if share.shape == gradient.shape:  # the tile has no halo
            return share
        whole = gradient.clone()
        whole[own] = share
        return whole

    def _add_style(
        self, share: Tensor, seen: Tensor, target: Target, layer: str, tile: Tile
    ) -> Tensor:
        """Return `share`, the gradient of a tile's features `seen`, plus dL/dF of a style loss."""
        weights, total = self.scan.weights((layer, target.positions), tile, self.image)
        if weights is not None and not weights.any():
            return share
        joined = add_moments_gradient(share, seen, *self.slopes[target.name], total, weights)
        assert joined is not None
        return joined

    def _add_positional(
        self, share: Tensor, seen: Tensor, target: Target, layer: str, tile: Tile
    ) -> Tensor:
        """Add a tile's part to a content or match loss; return the gradient `share` plus dL/dF."""
        stride, value = self.scan.extractor.stride(layer), target.value[tile.whole[layer]]
        count = math.prod(side // stride for side in self.image.shape[2:])  # positions of the layer
        part = target.weight * seen[0, 0].numel() / count
        if target.kind == "match":
            self.terms[target.name] += cosine_loss(seen, value) * part
            slope, scale = cosine_gradient(seen, value), target.weight / count
        else:  # dL/dF = 2 w (F - P) / (C H W)
            slope, scale = seen - value, 2 * target.weight / (count * seen.shape[1])
            self.terms[target.name] += mean_square(slope) * part
        # torch fails for an alpha above the dtype's range, where the loss is infinite anyway.
        return torch.add(share, slope, alpha=min(scale, torch.finfo(seen.dtype).max))
