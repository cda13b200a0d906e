"""The objective and its exact gradient tile by tile: memory no longer grows with the picture.

A style loss couples all positions, but only through its Gram matrix, which is a sum over positions.
So pass one adds up the Gram matrices of all tiles without a graph. From them dL/dF = M F is known
at every position, with M = 4 w / (C^2 * C H W) * (G - A), and pass two runs each tile again, this
time with a graph, and feeds M F where the tile owns positions. Content losses are sums over
positions themselves and need no first pass.

The price is a second forward, half as much work again (the weights are frozen, so a backward costs
no more than a forward), and what the halos repeat.
"""

import functools
import math
from collections.abc import Collection, Iterator
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
from styletransfer.losses import LossMode
from styletransfer.losses.functional import mean_square, total_variation
from styletransfer.objective import Losses, check_size, layer_weights
from styletransfer.tiling.tiles import Tile, Window, grid

# Without a graph a pixel takes less than half the memory, so tiles may be wider: fewer halos.
WIDER = 1.5


@dataclass(frozen=True)
class _Target:
    """What a tap is compared with: P (1, C, h, w) or A (C, C), and the loss's linear weight."""

    value: Tensor
    weight: float


class TiledObjective:
    """The losses and the gradient of `Objective`, in memory that is bounded by the tile.

    Beside one tile's activations it holds the content's features, the picture and its gradient.

    Args:
        extractor: the frozen network, on the device and in the dtype of the computation.
        mode: must be autograd_function: tiling rests on the closed form of the gradient.
        config: layers and linear weights.
        content: (1, 3, H, W), sRGB in [0, 1].
        style: (1, 3, h, w), sRGB in [0, 1].
        tile: side of a tile in pixels without its halo; at least the stride of the deepest tap.
            It is rounded down to a multiple of that stride.

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
            check_size(self.extractor, (image.shape[2], image.shape[3]), name)
        self.tile, self.tv_weight = tile, config.tv_weight
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
        gradient = torch.zeros_like(image, memory_format=torch.contiguous_format)
        terms: dict[str, Tensor] = {}
        if self.tv_weight > 0:
            prior = self.tv_weight * total_variation(image)
            gradient += torch.autograd.grad(prior, image)[0]
            terms["total_variation"] = prior.detach()
        factors: dict[str, Tensor] = {}
        for tap, gram in self._grams(image.detach(), self.styles).items():
            target = self.styles[tap]
            difference = gram - target.value
            terms[f"style/{tap}"] = target.weight * mean_square(difference)
            # 2 D / C^2 is dL/dD; the other 2 / (C H W) comes from G = F F^T / (C H W).
            count = len(gram) * math.prod(self._size_at(tap, image))
            factors[tap] = difference * (4 * target.weight / (difference.numel() * count))
        for tile in grid(self.extractor.layers, _size(image), self.tile):
            self._add_tile(tile, image.detach(), factors, terms, gradient)
        image.grad = gradient if image.grad is None else image.grad + gradient
        names = [f"{kind}/{tap}" for tap in self.extractor.layers for kind in ("content", "style")]
        names = [name for name in [*names, "total_variation"] if name in terms]
        return Losses({name: terms[name] for name in names})

    def _add_tile(
        self,
        tile: Tile,
        image: Tensor,
        factors: dict[str, Tensor],
        terms: dict[str, Tensor],
        gradient: Tensor,
    ) -> None:
        """Add one tile's share to the content losses in `terms`, and to `gradient`.

        Args:
            tile: which part of the image.
            image: (1, 3, H, W), detached.
            factors: style tap -> M, (C, C).
            terms: name -> weighted loss.
            gradient: (1, 3, H, W), d(total)/d(image).
        """
        pixels = image[tile.pixels].requires_grad_()
        features = self.extractor.preprocess(pixels)
        for name, layer in self.extractor.layers.items():
            features = tile.trim(name, layer(features))
            if target := self.contents.get(name):
                mine = features.detach()[tile.own[name]]
                loss = mean_square(mine - target.value[tile.place[name]])
                share = loss * (target.weight * mine.numel() / target.value.numel())
                term = f"content/{name}"
                terms[term] = terms[term] + share if term in terms else share
            if name in self.contents or name in self.styles:
                feed = functools.partial(self._joined, tile, name, factors.get(name))
                features = fed_tap(features, feed)
        # Whatever reaches the pixels is fed at the taps; the end itself has nothing to add.
        (share,) = torch.autograd.grad(features, pixels, torch.zeros_like(features))
        gradient[tile.pixels] += share

    def _joined(
        self, tile: Tile, tap: str, factor: Tensor | None, features: Tensor, gradient: Tensor
    ) -> Tensor:
        """Return `gradient` plus dL/dF of the tap's own losses where the tile owns positions."""
        own, dtype = tile.own[tap], gradient_dtype(features.dtype)
        share = gradient[own]
        if factor is not None:
            share = add_product(share, factor, features[own])
        if target := self.contents.get(tap):
            # dL/dF = 2 w (F - P) / (C H W)
            scale = 2 * target.weight / target.value.numel()
            difference = (features[own] - target.value[tile.place[tap]]).to(dtype)
            share = torch.add(share.to(dtype), difference, alpha=scale).to(features.dtype)
        joined = gradient.clone()
        joined[own] = share
        return joined

    @torch.no_grad()
    def _scan(self, image: Tensor, taps: Collection[str]) -> Iterator[tuple[str, Window, Tensor]]:
        """Yield a tap, a place in its features for the whole image, and the features there."""
        if not taps:
            return
        extractor = self.extractor.ended_at(taps)
        for tile in grid(extractor.layers, _size(image), int(self.tile * WIDER)):
            features = extractor.preprocess(image[tile.pixels])
            for name, layer in extractor.layers.items():
                features = tile.trim(name, layer(features))
                if name in taps:
                    yield name, tile.place[name], features[tile.own[name]]

    def _grams(self, image: Tensor, taps: Collection[str]) -> dict[str, Tensor]:
        """Return tap -> Gram matrix (C, C) of the whole image's features."""
        grams: dict[str, Tensor] = {}
        for tap, _, mine in self._scan(image, taps):
            positions = math.prod(self._size_at(tap, image))
            gram = gram_matrix(mine) * (mine[0, 0].numel() / positions)
            grams[tap] = grams[tap] + gram if tap in grams else gram
        return grams

    def _features(self, image: Tensor, taps: Collection[str]) -> dict[str, Tensor]:
        """Return tap -> features (1, C, h, w) of the whole image."""
        whole: dict[str, Tensor] = {}
        for tap, place, mine in self._scan(image, taps):
            if tap not in whole:
                shape = (1, mine.shape[1], *self._size_at(tap, image))
                whole[tap] = mine.new_empty(shape).to(memory_format=torch.channels_last)
            whole[tap][place] = mine
        return whole

    def _size_at(self, tap: str, image: Tensor) -> tuple[int, int]:
        stride = self.extractor.stride(tap)
        return image.shape[2] // stride, image.shape[3] // stride


def smallest_tile(extractor: FeatureExtractor, config: ObjectiveConfig) -> int:
    """Return the stride of the deepest tap, in pixels: a tile holds one of its positions at least.

    Raises:
        UserError: an unknown tap or no weight; see `layer_weights`.
    """
    ended = extractor.ended_at([tap for weights in layer_weights(config) for tap in weights])
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


def _size(image: Tensor) -> tuple[int, int]:
    return image.shape[2], image.shape[3]


def _norm(target: Tensor) -> float:
    """Return mean(target^2), or 1 where the target is all zero; row by row, to save memory."""
    rows = target.unbind(-2)
    return sum(mean_square(row.double()).item() for row in rows) / len(rows) or 1.0
