"""The objective and its exact gradient tile by tile: memory grows far slower than the picture.

A style loss couples all positions, but only through its Gram matrix, which is a sum over positions.
So pass one adds up the Gram matrices of all tiles without a graph, stage by stage, and keeps every
stage's input. From the Gram matrices dL/dF = M F is known at every position, with
M = 4 w / (C^2 * C H W) * (G - A). Pass two takes the stages in reverse, runs each tile again, this
time with a graph, and feeds M F where the tile owns positions, and at the stage's end the gradient
that the next stage has found. Content losses are sums over positions themselves.

The price is a second forward, half as much work again (the weights are frozen, so a backward costs
no more than a forward). It is not paid where the last stages are one tile each: pass one then
keeps their graphs.
"""

import functools
import math
from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.config import ObjectiveConfig
from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.functions.fed_tap import fed_tap
from styletransfer.functions.gram import gram_matrix
from styletransfer.functions.precision import gradient_dtype
from styletransfer.functions.style_tap import add_product
from styletransfer.losses.functional import mean_square, total_variation
from styletransfer.modes import LossMode
from styletransfer.objective.stages import Stage, Visit, stages
from styletransfer.objective.tiles import Tile
from styletransfer.objective.whole import Losses, check_size, layer_weights, loss_layers


@dataclass(frozen=True)
class _Target:
    """What a tap is compared with: P (1, C, h, w) or A (C, C), and the loss's linear weight."""

    value: Tensor
    weight: float


class TiledObjective:
    """The losses and the gradient of `Objective`, in memory that the tile bounds.

    Beside one tile's activations it holds the content's features, the inputs of all stages, the
    picture and its gradient.

    Args:
        extractor: the frozen network, on the device and in the dtype of the computation.
        mode: must be autograd_function: tiling rests on the closed form of the gradient.
        config: layers and linear weights.
        content: (1, 3, H, W), sRGB in [0, 1].
        style: (1, 3, h, w), sRGB in [0, 1].
        tile: side of a tile in pixels without its halo; at least the stride of the deepest tap.
            See `Stage.tiles`.

    Raises:
        UserError: another loss mode, a tile below the stride, and what `Objective` refuses.
    """

    def __init__(
        self,
        extractor: FeatureExtractor,
        mode: LossMode,
        config: ObjectiveConfig,
        content: Tensor,
        style: Tensor,
        tile: int,
    ) -> None:
        check_tile(extractor, mode, config, tile)
        content_weights, style_weights = layer_weights(config)
        self.extractor = extractor.ended_at([*content_weights, *style_weights])
        for image, name in ((content, "the content image"), (style, "the style image")):
            check_size(self.extractor, _size(image), name)
        self.tile, self.tv_weight = tile, config.tv_weight
        self.in_tiles = [
            (stage, stage.tiles(_size(content), tile)) for stage in stages(self.extractor)
        ]
        # The last stages, if they are one tile each: pass one keeps their graph.
        self.whole: list[tuple[Stage, Tile]] = []
        while self.in_tiles and len(self.in_tiles[-1][1]) == 1:
            stage, (only,) = self.in_tiles.pop()
            self.whole.insert(0, (stage, only))
        relative = config.normalization == "target"
        self.contents: dict[str, _Target] = {}
        for tap, features in self._features(content, content_weights).items():
            norm = _norm(features) if relative else 1.0
            self.contents[tap] = _Target(features, content_weights[tap] / norm)
        self.styles: dict[str, _Target] = {}
        for tap, gram in self._grams(style, style_weights).items():
            norm = _norm(gram) if relative else 1.0
            self.styles[tap] = _Target(gram, style_weights[tap] / norm)

    def evaluate(self, image: Tensor) -> Losses:
        """Return the losses at `image`, and add d(total)/d(image) to `image.grad`.

        `image.grad` is touched last: an evaluation that runs out of memory leaves it as it was.

        Args:
            image: (1, 3, H, W), sRGB in [0, 1], a leaf that requires grad; of the content's size.
        """
        terms, gradient = self._differentiate(image.detach())
        if self.tv_weight > 0:
            prior = self.tv_weight * total_variation(image)
            gradient = gradient + torch.autograd.grad(prior, image)[0]
            terms["total_variation"] = prior.detach()
        gradient = gradient.contiguous()
        image.grad = gradient if image.grad is None else image.grad + gradient
        names = [f"{kind}/{tap}" for tap in self.extractor.layers for kind in ("content", "style")]
        names = [name for name in [*names, "total_variation"] if name in terms]
        return Losses({name: terms[name] for name in names})

    def _differentiate(self, image: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Return the content and style losses by name, and their gradient (1, 3, H, W)."""
        terms: dict[str, Tensor] = {}
        grams: dict[str, Tensor] = {}
        factors: dict[str, Tensor] = {}

        def measure(layer: str, tile: Tile, features: Tensor) -> Tensor:
            if layer in self.styles:
                _add(grams, layer, self._share_of_gram(layer, tile, features.detach(), image))
            if layer in self.contents:
                _add(terms, f"content/{layer}", self._content_share(layer, tile, features.detach()))
            return features

        def feed(layer: str, tile: Tile, features: Tensor) -> Tensor:
            if layer not in self.styles and layer not in self.contents:
                return features
            # `factors` is filled before any backward arrives.
            return fed_tap(features, functools.partial(self._joined, tile, layer, factors))

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

        for layer, gram in grams.items():
            target = self.styles[layer]
            difference = gram - target.value
            terms[f"style/{layer}"] = target.weight * mean_square(difference)
            # 2 D / C^2 is dL/dD; the other 2 / (C H W) comes from G = F F^T / (C H W).
            count = len(gram) * math.prod(self._size_at(layer, image))
            factors[layer] = difference * (4 * target.weight / (difference.numel() * count))

        # Pass two. Whatever reaches the pixels is fed at taps; the very end has nothing to add.
        gradient: Tensor | None = None
        if start is not None and end is not None:
            (gradient,) = torch.autograd.grad(end, start, torch.zeros_like(end))
        del features, start, end
        for stage, tiles in reversed(self.in_tiles):
            gradient = stage.backward(tiles, inputs.pop(), gradient, feed)
        assert gradient is not None
        return terms, gradient

    def _joined(
        self,
        tile: Tile,
        layer: str,
        factors: dict[str, Tensor],
        features: Tensor,
        gradient: Tensor,
    ) -> Tensor:
        """Return `gradient` plus dL/dF of the tap's own losses where the tile owns positions."""
        own, dtype = tile.own[layer], gradient_dtype(features.dtype)
        share = gradient[own]
        if layer in factors:
            share = add_product(share, factors[layer], features[own])
        if target := self.contents.get(layer):
            # dL/dF = 2 w (F - P) / (C H W)
            scale = 2 * target.weight / target.value.numel()
            difference = (features[own] - target.value[tile.place[layer]]).to(dtype)
            share = torch.add(share.to(dtype), difference, alpha=scale).to(features.dtype)
        if share.shape == gradient.shape:  # there is no halo
            return share
        joined = gradient.clone()
        joined[own] = share
        return joined

    def _share_of_gram(self, layer: str, tile: Tile, features: Tensor, image: Tensor) -> Tensor:
        """Return what the positions that `tile` owns add to the Gram matrix (C, C) of `image`."""
        mine = features[tile.own[layer]]
        return gram_matrix(mine) * (mine[0, 0].numel() / math.prod(self._size_at(layer, image)))

    def _content_share(self, layer: str, tile: Tile, features: Tensor) -> Tensor:
        """Return what the positions that `tile` owns add to a content loss, weighted."""
        mine, target = features[tile.own[layer]], self.contents[layer]
        loss = mean_square(mine - target.value[tile.place[layer]])
        return loss * (target.weight * mine.numel() / target.value.numel())

    def _grams(self, image: Tensor, taps: Collection[str]) -> dict[str, Tensor]:
        """Return tap -> Gram matrix (C, C) of the whole image's features."""
        grams: dict[str, Tensor] = {}

        def add(layer: str, tile: Tile, features: Tensor) -> Tensor:
            if layer in taps:
                _add(grams, layer, self._share_of_gram(layer, tile, features, image))
            return features

        self._scan(image, taps, add)
        return grams

    def _features(self, image: Tensor, taps: Collection[str]) -> dict[str, Tensor]:
        """Return tap -> features (1, C, h, w) of the whole image."""
        wholes: dict[str, Tensor] = {}

        def keep(layer: str, tile: Tile, features: Tensor) -> Tensor:
            if layer in taps:
                mine = features[tile.own[layer]]
                if layer not in wholes:
                    shape = (1, mine.shape[1], *self._size_at(layer, image))
                    wholes[layer] = mine.new_empty(shape).to(memory_format=torch.channels_last)
                wholes[layer][tile.place[layer]] = mine
            return features

        self._scan(image, taps, keep)
        return wholes

    def _scan(self, image: Tensor, taps: Collection[str], visit: Visit) -> None:
        """Show `visit` all features of the image, up to the deepest of `taps`."""
        features: Tensor | None = image
        for stage in stages(self.extractor.ended_at(taps)) if taps else []:
            assert features is not None
            features = stage.forward(stage.tiles(_size(image), self.tile), features, visit)

    def _size_at(self, layer: str, image: Tensor) -> tuple[int, int]:
        stride = self.extractor.stride(layer)
        return image.shape[2] // stride, image.shape[3] // stride


def smallest_tile(extractor: FeatureExtractor, config: ObjectiveConfig) -> int:
    """Return the stride of the deepest tap, in pixels: a tile holds one of its positions at least.

    Raises:
        UserError: an unknown tap or no weight; see `layer_weights`.
    """
    ended = extractor.ended_at(loss_layers(config))
    return ended.stride(list(ended.layers)[-1])


def check_tile(
    extractor: FeatureExtractor, mode: LossMode, config: ObjectiveConfig, tile: int
) -> None:
    """Check that there can be tiles of `tile` pixels.

    Raises:
        UserError: another loss mode than autograd_function, or less than `smallest_tile`.
    """
    if mode.name != "autograd_function":
        raise UserError(
            "tiles need the gradient in closed form: choose loss_mode=autograd_function, or "
            f"tile=off with {mode.name}"
        )
    if tile < (least := smallest_tile(extractor, config)):
        raise UserError(
            f"tile={tile} must be at least {least}, the pixels that one position of the deepest "
            "tap stands for; choose tile=auto to have it chosen"
        )


def _add(sums: dict[str, Tensor], name: str, share: Tensor) -> None:
    sums[name] = sums[name] + share if name in sums else share


def _size(image: Tensor) -> tuple[int, int]:
    return image.shape[2], image.shape[3]


def _norm(target: Tensor) -> float:
    """Return mean(target^2), or 1 where the target is all zero; row by row, to save memory."""
    rows = target.unbind(-2)
    return sum(mean_square(row.double()).item() for row in rows) / len(rows) or 1.0
