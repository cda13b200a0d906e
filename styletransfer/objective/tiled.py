"""The objective and its exact gradient tile by tile: memory grows far slower than the picture.

A style loss couples all positions, but only through two moments, which are means over positions.
So pass one adds up the moments of all tiles without a graph, stage by stage, and keeps every
stage's input. From the moments follow the losses, and by plain autograd on small matrices
g = dL/dmean and H = dL/dsecond: dL/dF is then known at every position (see `MomentsTap`). Pass two
takes the stages in reverse, runs each tile again, this time with a graph, and feeds dL/dF where the
tile owns positions, and at the stage's end the gradient that the next stage has found. Content
losses are sums over positions themselves.

The price is a second forward, half as much work again (the weights are frozen, so a backward costs
no more than a forward). It is not paid where the last stages are one tile each: pass one then
keeps their graphs.
"""

import functools
from collections.abc import Mapping

import torch
from torch import Tensor

from styletransfer.config import ObjectiveConfig
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.functions.fed_tap import fed_tap
from styletransfer.functions.moments import Moments
from styletransfer.functions.moments_tap import add_moments_gradient
from styletransfer.functions.precision import gradient_dtype
from styletransfer.losses import get_style_loss, mean_square
from styletransfer.modes import LossMode
from styletransfer.objective.limits import check_pictures, check_tile
from styletransfer.objective.pictures import Pictures
from styletransfer.objective.prior import Prior, total
from styletransfer.objective.scan import Scan
from styletransfer.objective.stages import Stage, stages
from styletransfer.objective.targets import StyleTargets, Target, make_targets
from styletransfer.objective.terms import Losses, loss_layers
from styletransfer.objective.tiles import Tile

# Name of a loss -> dL/dmean and dL/dsecond, None where the loss does not depend on one.
Slopes = dict[str, tuple[Tensor | None, Tensor | None]]


class TiledObjective:
    """The losses and the gradient of `Objective`, in memory that the tile bounds.

    Beside one tile's activations it holds the content's features, the inputs of all stages, the
    picture and its gradient.

    Args:
        extractor: the frozen network, on the device and in the dtype of the computation.
        mode: must be autograd_function: tiling rests on the closed form of the gradient.
        config: layers and linear weights.
        pictures: content, styles and regions, on the same device.
        tile: side of a tile in pixels without its halo; at least the stride of the deepest layer.
            See `Stage.tiles`.
        styles: as for `Objective`.

    Raises:
        UserError: another loss mode, a tile below the stride, and what `Objective` refuses.
    """

    def __init__(
        self,
        extractor: FeatureExtractor,
        mode: LossMode,
        config: ObjectiveConfig,
        pictures: Pictures,
        tile: int,
        styles: StyleTargets | None = None,
    ) -> None:
        check_tile(extractor, mode, config, tile)
        self.extractor = extractor.ended_at(loss_layers(config))
        check_pictures(self.extractor, pictures)
        self.prior, self.measure = Prior(config, pictures), get_style_loss(config.style_loss)
        size = (pictures.content.shape[2], pictures.content.shape[3])
        self.in_tiles = [(stage, stage.tiles(size, tile)) for stage in stages(self.extractor)]
        # The last stages, if they are one tile each: pass one keeps their graph.
        self.whole: list[tuple[Stage, Tile]] = []
        while self.in_tiles and len(self.in_tiles[-1][1]) == 1:
            stage, (only,) = self.in_tiles.pop()
            self.whole.insert(0, (stage, only))
        self.scan = Scan(self.extractor, tile, self.measure.with_mean)
        looks = (self.scan.features, self.scan.measured)
        self.targets = make_targets(config, self.extractor, pictures, *looks, styles)

    def evaluate(self, image: Tensor) -> Losses:
        """Return the losses at `image`, and add d(total)/d(image) to `image.grad`.

        `image.grad` is touched last: an evaluation that runs out of memory leaves it as it was.

        Args:
            image: (1, 3, H, W), sRGB in [0, 1], a leaf that requires grad; of the content's size.
        """
        terms, gradient = self._differentiate(image.detach())
        priors = self.prior.losses(image)
        if (prior := total(priors)) is not None:
            gradient = gradient + torch.autograd.grad(prior, image)[0]
        gradient = gradient.contiguous()
        image.grad = gradient if image.grad is None else image.grad + gradient
        names = [target.name for layer in self.extractor.layers for target in self._targets(layer)]
        ordered = {name: terms[name] for name in names}
        return Losses(ordered | {name: value.detach() for name, value in priors.items()})

    def _targets(self, layer: str) -> list[Target]:
        """Return the targets at a layer, in the order of `Objective`'s losses."""
        content = self.targets.contents.get(layer)
        return [*([content] if content else []), *self.targets.styles.get(layer, [])]

    def _differentiate(self, image: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Return the content and style losses by name, and their gradient (1, 3, H, W)."""
        terms: dict[str, Tensor] = {}
        sums: dict[str, Moments] = {}
        slopes: Slopes = {}

        def measure(layer: str, tile: Tile, features: Tensor) -> Tensor:
            for target in self.targets.styles.get(layer, []):
                place = layer, target.positions
                self.scan.add_moments(sums, target.name, place, tile, features.detach(), image)
            if content := self.targets.contents.get(layer):
                share = self._content_share(layer, tile, features.detach())
                terms[content.name] = terms.get(content.name, 0.0) + share
            return features

        def feed(layer: str, tile: Tile, features: Tensor) -> Tensor:
            if not self._targets(layer):
                return features
            # `slopes` is filled before any backward arrives.
            return fed_tap(features, functools.partial(self._joined, tile, layer, slopes, image))

        def measure_and_feed(layer: str, tile: Tile, features: Tensor) -> Tensor:
            return feed(layer, tile, measure(layer, tile, features))

        # Pass one.
        inputs: list[Tensor] = []
        features: Tensor | None = image
        for stage, tiles in self.in_tiles:
            assert features is not None
            inputs.append(features)
            features = stage.forward(tiles, features, measure)
        start = end = features
        for stage, only in self.whole:
            assert end is not None
            end = stage.run(only, end.requires_grad_(), measure_and_feed)
        self._compare(sums, terms, slopes)

        # Pass two. Whatever reaches the pixels is fed at taps; the very end has nothing to add.
        gradient: Tensor | None = None
        if start is not None and end is not None:
            (gradient,) = torch.autograd.grad(end, start, torch.zeros_like(end))
        del features, start, end
        for stage, tiles in reversed(self.in_tiles):
            gradient = stage.backward(tiles, inputs.pop(), gradient, feed)
        assert gradient is not None
        return terms, gradient

    def _compare(
        self, sums: Mapping[str, Moments], terms: dict[str, Tensor], slopes: Slopes
    ) -> None:
        """Fill in the style losses, and their gradients with respect to the moments."""
        for target in (each for targets in self.targets.styles.values() for each in targets):
            leaves = Moments(*(moment.requires_grad_() for moment in sums[target.name]))
            with torch.enable_grad():
                loss = target.weight * self.measure.loss(leaves, target.value)
            slope = torch.autograd.grad(loss, leaves, allow_unused=True)
            terms[target.name], slopes[target.name] = loss.detach(), (slope[0], slope[1])

    def _joined(
        self,
        tile: Tile,
        layer: str,
        slopes: Slopes,
        image: Tensor,
        features: Tensor,
        gradient: Tensor,
    ) -> Tensor:
        """Return `gradient` plus dL/dF of the layer's own losses where the tile owns positions."""
        own, dtype = tile.own[layer], gradient_dtype(features.dtype)
        share = gradient[own]
        for each in self.targets.styles.get(layer, []):
            weights, total = self.scan.weights((layer, each.positions), tile, image)
            if weights is not None and not weights.any():
                continue
            slope = slopes[each.name]
            joined = add_moments_gradient(share, features[own], *slope, total, weights)
            assert joined is not None
            share = joined
        if target := self.targets.contents.get(layer):
            # dL/dF = 2 w (F - P) / (C H W)
            # No more than the dtype holds, or torch would fail: the loss is infinite then anyway.
            scale = min(2 * target.weight / target.value.numel(), torch.finfo(dtype).max)
            difference = (features[own] - target.value[tile.place[layer]]).to(dtype)
            share = torch.add(share.to(dtype), difference, alpha=scale).to(features.dtype)
        if share.shape == gradient.shape:  # there is no halo
            return share
        whole = gradient.clone()
        whole[own] = share
        return whole

    def _content_share(self, layer: str, tile: Tile, features: Tensor) -> Tensor:
        """Return what the positions that `tile` owns add to a content loss, weighted."""
        mine, target = features[tile.own[layer]], self.targets.contents[layer]
        loss = mean_square(mine - target.value[tile.place[layer]])
        return loss * (target.weight * mine.numel() / target.value.numel())
