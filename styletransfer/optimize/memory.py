"""How much memory an optimisation takes at its peak: an estimate from the actual layers.

Above what the process holds once network and pictures are loaded, that is the sum of:

- the optimisation: PICTURES tensors of the picture's size, and 2 per pair of L-BFGS's history;
- the targets: the content's features, and a few matrices (C, C) per style layer;
- one evaluation: what autograd keeps of the layers, by their actual channels, strides and dtype
  (a ReLU in place adds nothing), plus three tensors of the size of the layer at which backward has
  arrived. Without a graph a layer costs its input and twice its output. In tiles that is taken
  stage by stage, and the inputs of all stages are kept beside it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from styletransfer.config import StyleTransferConfig
from styletransfer.features.extractor import FeatureExtractor, is_pool
from styletransfer.modes import LossMode
from styletransfer.objective.stages import Stage, stages
from styletransfer.objective.terms import layer_weights, loss_layers

# (height, width) in pixels.
Size = tuple[int, int]

# Tensors of the picture's size beside the history: content, style, the scale before, and about ten
# for the optimiser, by measurement; a running mean, and total variation's in passing.
PICTURES = 15
# Of a layer: target, sum, product, difference and the like.
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
    """Bytes at one layer per position of the first layer's input; `kept` includes all before it.

    `work` is in multiplications per such position.
    """

    name: str
    input: float
    output: float
    kept: float
    columns: float
    channels: int
    positions: float
    work: float

    @property
    def backward(self) -> float:
        """Bytes while backward is at this layer."""
        return self.kept + 3 * max(self.input, self.output) + self.columns

    @property
    def forward(self) -> float:
        """Bytes while the layer runs without a graph."""
        return self.input + 2 * self.output + self.columns


def estimate(
    extractor: FeatureExtractor,
    mode: LossMode,
    config: StyleTransferConfig,
    size: Size,
    style_sizes: Sequence[Size],
    tile: int | None,
    history: int,
    regions: int = 1,
) -> Memory:
    """Estimate the peak of optimising a picture of `size` (height, width).

    Args:
        extractor: the network in the dtype of the computation.
        mode: how losses reach the image's gradient.
        config: the optimiser and the layers.
        size: of the pastiche.
        style_sizes: of each style image.
        tile: side in pixels, or None for the whole picture at once.
        history: pairs that L-BFGS keeps.
        regions: of the pastiche, each with its own style.
    """
    style_size = max(style_sizes, key=math.prod)
    contents, styles = layer_weights(config.objective)
    extractor = extractor.ended_at([*contents, *styles])
    pixels = math.prod(size)
    picture = 3 * pixels * (8 if extractor.dtype == torch.float64 else 4)
    costs = _costs(extractor.layers, 3, extractor.dtype)
    content_costs = [cost for cost in costs if cost.name in contents]
    style_costs = [cost for cost in costs if cost.name in styles]
    if tile is None:
        backward = max(cost.backward for cost in costs)
        if not mode.is_closed_form:
            # Autograd keeps F - P, in float32 too, and fake_backward a weighted copy.
            backward += sum(3 * 4 * cost.channels * cost.positions for cost in content_costs)
        compared = sum(cost.output for cost in content_costs + style_costs)
        forward = max(cost.forward for cost in costs) + compared
        evaluation = max(backward * pixels, forward * max(pixels, math.prod(style_size)))
    else:
        evaluation = _in_tiles(extractor, size, style_size, tile)
    lbfgs = config.optimizer.name == "lbfgs"
    return Memory(
        pictures=PICTURES * picture + _extra(size, style_sizes, regions),
        history=2 * history * picture if lbfgs else 0.0,
        targets=sum(cost.output * pixels for cost in content_costs)
        + regions * sum(GRAMS * 8 * cost.channels**2 for cost in style_costs),
        evaluation=evaluation + FIXED,
    )


def _extra(size: Size, style_sizes: Sequence[Size], regions: int) -> float:
    """Return the bytes of styles beside the first and of what regions add, in float32."""
    styles = 3 * 4 * sum(map(math.prod, style_sizes[1:]))
    return styles + (regions > 1) * regions * 4 * 3 * math.prod(size)


def relative_work(
    extractor: FeatureExtractor, config: StyleTransferConfig, size: Size, tile: int | None
) -> float:
    """Return the work of an evaluation in tiles over that of the whole picture.

    The whole picture takes a forward and a backward, of about the same cost since no weight needs
    a gradient. Tiles take another forward, unless they are the only one of a last stage, and read
    their halos as well.
    """
    if tile is None:
        return 1.0
    layers = loss_layers(config.objective)
    whole = tiled = 0.0
    is_kept = True
    for stage, costs in reversed(_staged(extractor.ended_at(layers))):
        tiles = stage.tiles(size, tile)
        is_kept = is_kept and len(tiles) == 1
        work = sum(cost.work for cost in costs)
        whole += 2 * work * math.prod(stage.size(size))
        tiled += (2 if is_kept else 3) * work * sum(each.area for each in tiles)
    return tiled / whole


def _in_tiles(extractor: FeatureExtractor, size: Size, style_size: Size, tile: int) -> float:
    """Return the bytes of an evaluation in tiles, or of making its targets, at their peak."""
    staged = _staged(extractor)
    grids = [stage.tiles(size, tile) for stage, _ in staged]
    held = peak = 0.0  # held: inputs of stages, and graphs that are kept
    for index, (stage, costs) in enumerate(staged):
        positions, last = math.prod(stage.size(size)), costs[-1].output
        backward = max(cost.backward for cost in costs)
        if stage.stride > 1:
            held += costs[0].input * positions
        if all(len(tiles) == 1 for tiles in grids[index:]):
            peak = max(peak, held + backward * positions)
            held += costs[-1].kept * positions
            continue
        # The gradients at both ends of the stage; at the picture's own it is counted elsewhere.
        ends = last + (costs[0].input if stage.stride > 1 else 0.0)
        largest = max(each.area for each in grids[index])
        peak = max(peak, held + ends * positions + backward * largest)
        styles = max(each.area for each in stage.tiles(style_size, tile))
        inputs = (costs[0].input + last) * math.prod(stage.size(style_size))
        peak = max(peak, inputs + max(cost.forward for cost in costs) * styles)
    return peak


def _staged(extractor: FeatureExtractor) -> list[tuple[Stage, list[_Cost]]]:
    """Return the stages, and the costs of their layers per position of the stage's input."""
    found: list[tuple[Stage, list[_Cost]]] = []
    channels = 3
    for stage in stages(extractor):
        costs = _costs(stage.layers, channels, extractor.dtype)
        found.append((stage, costs))
        channels = costs[-1].channels
    return found


def _costs(layers: nn.ModuleDict, channels: int, dtype: torch.dtype) -> list[_Cost]:
    """Return the cost of each layer.

    Args:
        layers: from the preprocessing on, or from some pool on.
        channels: of their input; 3 means the picture.
        dtype: of the features.
    """
    output = channels * dtype.itemsize + (12.0 if channels == 3 else 0.0)
    # The picture and its gradient, and its normalised self in two precisions.
    kept = output + (12.0 if channels == 3 else 0.0)
    positions = 1.0
    costs = []
    for name, layer in layers.items():
        before, columns, work = output, 0.0, 0.0
        if isinstance(layer, nn.Conv2d):
            channels = layer.out_channels
            work = layer.weight.numel() * positions
            if dtype == torch.float64:
                # The CPU's fast convolutions know no float64: torch copies each pixel's window.
                columns = before * math.prod(layer.kernel_size)
        if is_pool(layer):
            positions /= 4
        output = channels * positions * dtype.itemsize
        if not (isinstance(layer, nn.ReLU) and layer.inplace):
            kept += output
        costs.append(_Cost(name, before, output, kept, columns, channels, positions, work))
    return costs
