"""How much memory an optimisation takes at its peak: an estimate from the actual layers.

Above what the process holds once network and pictures are loaded, that is the sum of:

- the optimisation: PICTURES tensors of the picture's size, and 2 per pair of L-BFGS's history;
- the targets: the content's features, and a few matrices (C, C) per style tap;
- one evaluation: what autograd keeps of the layers, by their actual channels, strides and dtype
  (a ReLU in place adds nothing, a maximum pool its 8-byte indices), plus three tensors of the
  size of the layer at which backward has arrived; times the pixels of the largest tile. Without a
  graph a layer costs its input and twice its output.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn

from styletransfer.config import StyleTransferConfig
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.losses import LossMode
from styletransfer.objective import layer_weights
from styletransfer.tiling.objective import WIDER
from styletransfer.tiling.tiles import grid, is_pool

# (height, width) in pixels.
Size = tuple[int, int]

# Tensors of the picture's size beside the history: content, style, the scale before, and about ten
# for the optimiser, by measurement; a running mean, and total variation's in passing.
PICTURES = 15
# Of a tap: target, sum, product, difference and the like.
GRAMS = 6
# Reordered weights and the like.
FIXED = 64 * 2**20


@dataclass(frozen=True)
class Memory:
    """Estimated bytes at the peak of a scale, by purpose.

    Attributes:
        pictures: tensors of the picture's size, the optimiser's included.
        history: L-BFGS's pairs of vectors.
        targets: what the picture is compared with.
        evaluation: activations and their gradients.
    """

    pictures: float
    history: float
    targets: float
    evaluation: float

    @property
    def total(self) -> float:
        """All of them, in bytes."""
        return self.pictures + self.history + self.targets + self.evaluation


@dataclass(frozen=True)
class _Cost:
    """Bytes per pixel of the picture at one layer: `kept` includes all layers before it."""

    name: str
    input: float
    output: float
    kept: float
    columns: float
    channels: int
    positions: float


def estimate(
    extractor: FeatureExtractor,
    mode: LossMode,
    config: StyleTransferConfig,
    size: Size,
    style_size: Size,
    tile: int | None,
    history: int,
) -> Memory:
    """Estimate the peak of optimising a picture of `size` (height, width).

    Args:
        extractor: the network in the dtype of the computation.
        mode: how losses reach the image's gradient.
        config: the optimiser and the taps.
        size: of the pastiche.
        style_size: of the style image.
        tile: side in pixels, or None for the whole picture at once.
        history: pairs that L-BFGS keeps.
    """
    contents, styles = layer_weights(config.objective)
    extractor = extractor.ended_at([*contents, *styles])
    pixels, style_pixels = size[0] * size[1], style_size[0] * style_size[1]
    picture = 3 * pixels * (8 if extractor.dtype == torch.float64 else 4)
    costs = _costs(extractor)
    content_costs = [cost for cost in costs if cost.name in contents]
    style_costs = [cost for cost in costs if cost.name in styles]
    backward = max(cost.kept + 3 * max(cost.input, cost.output) + cost.columns for cost in costs)
    forward = max(cost.input + 2 * cost.output + cost.columns for cost in costs)
    if mode.name != "autograd_function":
        # Autograd keeps the difference F - P, in float32 too, and fake_backward a weighted copy.
        backward += sum(3 * 4 * cost.channels * cost.positions for cost in content_costs)
    if tile is None:
        tapped = sum(cost.output for cost in content_costs + style_costs)
        evaluation = max(backward * pixels, (forward + tapped) * max(pixels, style_pixels))
    else:
        wide = int(tile * WIDER)
        evaluation = max(
            backward * _largest(extractor, size, tile),
            forward * _largest(extractor, size, wide),
            forward * _largest(extractor, style_size, wide),
        )
    lbfgs = config.optimizer.name == "lbfgs"
    return Memory(
        pictures=PICTURES * picture,
        history=2 * history * picture if lbfgs else 0.0,
        targets=sum(cost.output * pixels for cost in content_costs)
        + sum(GRAMS * 8 * cost.channels**2 for cost in style_costs),
        evaluation=evaluation + FIXED,
    )


def relative_work(
    extractor: FeatureExtractor, config: StyleTransferConfig, size: Size, tile: int | None
) -> float:
    """Return the work of an evaluation in tiles over that of the whole picture.

    The whole picture takes a forward and a backward, of about the same cost since no weight needs
    a gradient; tiles take another forward, and read their halos as well.
    """
    if tile is None:
        return 1.0
    ended = extractor.ended_at(
        [tap for weights in layer_weights(config.objective) for tap in weights]
    )
    wide, narrow = (
        sum(each.area for each in grid(ended.layers, size, side))
        for side in (int(tile * WIDER), tile)
    )
    return (wide + 2 * narrow) / (2 * size[0] * size[1])


def _costs(extractor: FeatureExtractor) -> list[_Cost]:
    size = extractor.dtype.itemsize
    channels, positions = 3, 1.0
    # The picture and its gradient, and its normalised self in two precisions.
    output = channels * size + 12.0
    kept = output + 12.0
    costs = []
    for name, layer in extractor.layers.items():
        before, columns = output, 0.0
        if isinstance(layer, nn.Conv2d):
            channels = layer.out_channels
            if extractor.dtype == torch.float64:
                # The CPU's fast convolutions know no float64: torch copies each pixel's window.
                columns = before * math.prod(layer.kernel_size)
        if is_pool(layer):
            positions /= 4
        output = channels * positions * size
        if not (isinstance(layer, nn.ReLU) and layer.inplace):
            kept += output
        if isinstance(layer, nn.MaxPool2d):
            kept += channels * positions * 8
        costs.append(_Cost(name, before, output, kept, columns, channels, positions))
    return costs


def _largest(extractor: FeatureExtractor, size: Size, tile: int) -> int:
    """Return how many pixels the largest tile reads."""
    return max(each.area for each in grid(extractor.layers, size, tile))
