"""What the losses at the positions of one band add to the objective, and to its gradient."""

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.functions.fed_tap import fed_tap
from styletransfer.functions.moments import Moments
from styletransfer.functions.moments_tap import add_moments_gradient
from styletransfer.functions.precision import gradient_dtype
from styletransfer.losses import mean_square
from styletransfer.objective.bands import Band
from styletransfer.objective.scan import Scan
from styletransfer.objective.targets import Targets
from styletransfer.objective.tiles import Tile

# Name of a loss -> dL/dmean and dL/dsecond, None where the loss does not depend on one.
Slopes = dict[str, tuple[Tensor | None, Tensor | None]]


@dataclass(eq=False)
class BandLosses:
    """The losses at the positions that one band owns."""

    scan: Scan  # how features are measured
    targets: Targets  # of content features, the rows that the band owns
    band: Band  # whose positions count
    image: Tensor  # (1, 3, H, W), the whole picture, detached
    terms: dict[str, Tensor]  # name -> content loss so far, 0-d; added to on the way back
    sums: dict[str, Moments]  # name -> moments so far; added to by `measure`
    slopes: Slopes  # filled before any gradient arrives at what `feed` has seen

    def measure(self, layer: str, tile: Tile, features: Tensor) -> Tensor:
        """Add to the moments."""
        for target in self.targets.styles.get(layer, []):
            place, seen = (layer, target.positions), (self.band, tile, features.detach())
            self.scan.add_moments(self.sums, target.name, place, *seen, self.image)
        return features

    def feed(self, layer: str, tile: Tile, features: Tensor) -> Tensor:
        """Let the layer's own losses feed their gradients."""
        if layer not in self.targets.contents and not self.targets.styles.get(layer):
            return features
        return fed_tap(features, functools.partial(self._joined, tile, layer))

    def measure_and_feed(self, layer: str, tile: Tile, features: Tensor) -> Tensor:
        """Do both."""
        return self.feed(layer, tile, self.measure(layer, tile, features))

    def _joined(self, tile: Tile, layer: str, features: Tensor, gradient: Tensor) -> Tensor:
        """Return `gradient` plus dL/dF of the layer's own losses where band and tile own it."""
        own, _ = self.band.counted(layer, tile, self.scan.extractor.stride(layer))
        share, dtype = gradient[own], gradient_dtype(features.dtype)
        if not share.numel():
            return gradient
        for target in self.targets.styles.get(layer, []):
            place = layer, target.positions
            weights, total = self.scan.weights(place, self.band, tile, self.image)
            if weights is not None and not weights.any():
                continue
            slope = self.slopes[target.name]
            joined = add_moments_gradient(share, features[own], *slope, total, weights)
            assert joined is not None
            share = joined
        if content := self.targets.contents.get(layer):
            difference, count = self._difference(layer, tile, features)
            part = content.weight * difference.numel() / count
            self.terms[content.name] += mean_square(difference) * part
            # dL/dF = 2 w (F - P) / (C H W)
            # No more than the dtype holds, or torch would fail: the loss is infinite then anyway.
            scale = min(2 * content.weight / count, torch.finfo(dtype).max)
            share = torch.add(share.to(dtype), difference.to(dtype), alpha=scale)
            share = share.to(features.dtype)
        if share.shape == gradient.shape:  # there is no halo
            return share
        whole = gradient.clone()
        whole[own] = share
        return whole

    def _difference(self, layer: str, tile: Tile, features: Tensor) -> tuple[Tensor, int]:
        """Return F - P where band and tile own it, and C H W of the whole picture."""
        stride = self.scan.extractor.stride(layer)
        own, place = self.band.counted_within(layer, tile, stride)
        count = (self.image.shape[2] // stride) * (self.image.shape[3] // stride)
        wanted = self.targets.contents[layer].value[place]
        return features[own] - wanted, features.shape[1] * count
