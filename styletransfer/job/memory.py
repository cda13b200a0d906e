"""How much memory an optimisation takes at its peak: an estimate from the actual layers.

Above what the process holds once network and pictures are loaded, that is the sum of:

- the optimisation: PICTURES tensors of the picture's size, and 2 per pair of L-BFGS's history;
- the targets: the content's features, and a few matrices (C, C) per style layer;
- one evaluation: what autograd keeps of the layers, by their actual channels, strides and dtype
  (a ReLU in place adds nothing), plus three tensors of the size of the layer at which backward has
  arrived. Without a graph a layer costs its input and twice its output. In tiles that is taken
  stage by stage, and the inputs of all stages are kept beside it, those of one band at a time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from styletransfer.config import StyleTransferConfig
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.job.costs import (
    Cost,
    Size,
    costs_of,
    largest_band,
    stages_of,
)
from styletransfer.modes import LossMode
from styletransfer.objective.terms import layer_weights
from styletransfer.system.storage import is_large

# Tensors of the picture's size beside the history: content, style, the scale before, and about ten
# for the optimiser, by measurement; a running mean, and total variation's in passing.
PICTURES = 15
# Those in memory with Adam where the others lie in files: the picture, its gradient, and one in
# passing. Another comes when the evaluation is over.
IN_MEMORY = 3
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


def estimate(
    extractor: FeatureExtractor,
    mode: LossMode,
    config: StyleTransferConfig,
    size: Size,
    style_sizes: Sequence[Size],
    tile: int | None,
    history: int,
    regions: int = 1,
    bands: int = 1,
    processes: int = 1,
) -> Memory:
    """Estimate the peak of optimising a picture of `size` (height, width), for one process.

    Args:
        extractor: the network in the dtype of the computation.
        mode: how losses reach the image's gradient.
        config: the optimiser and the layers.
        size: of the pastiche.
        style_sizes: of each style image.
        tile: side in pixels, or None for the whole picture at once.
        history: pairs that L-BFGS keeps.
        regions: of the pastiche, each with its own style.
        bands: that each process takes in turn; in tiles only.
        processes: that share the picture.
    """
    style_size = max(style_sizes, key=math.prod)
    contents, styles = layer_weights(config.objective)
    extractor = extractor.ended_at([*contents, *styles])
    pixels = math.prod(size)
    picture = 3 * pixels * (8 if extractor.dtype == torch.float64 else 4)
    costs = costs_of(extractor.layers, 3, extractor.dtype)
    content_costs = [cost for cost in costs if cost.name in contents]
    style_costs = [cost for cost in costs if cost.name in styles]
    if tile is None and processes == 1:
        compared = content_costs, style_costs
        evaluation = _as_a_whole(mode, costs, *compared, pixels, math.prod(style_size))
    else:
        evaluation = _in_tiles(extractor, size, style_size, tile or max(size), bands * processes)
    lbfgs = config.optimizer.name == "lbfgs"
    on_disk = is_large(picture) and next(extractor.parameters()).device.type == "cpu"
    count = IN_MEMORY if on_disk and not lbfgs else PICTURES
    evaluation = max(evaluation, picture if count == IN_MEMORY else 0.0)
    return Memory(
        pictures=count * picture + _extra(size, style_sizes, regions),
        history=2 * history * picture if lbfgs else 0.0,
        targets=sum(cost.output * pixels for cost in content_costs) / (bands * processes)
        + regions * sum(GRAMS * 8 * cost.channels**2 for cost in style_costs),
        evaluation=evaluation + FIXED,
    )


def _as_a_whole(
    mode: LossMode,
    costs: list[Cost],
    contents: list[Cost],
    styles: list[Cost],
    pixels: int,
    style_pixels: int,
) -> float:
    """Return the bytes of an evaluation of the whole picture, or of making its targets."""
    backward = max(cost.backward for cost in costs)
    if not mode.is_closed_form:
        # Autograd keeps F - P, in float32 too, and fake_backward a weighted copy.
        backward += sum(3 * 4 * cost.channels * cost.positions for cost in contents)
    compared = sum(cost.output for cost in contents + styles)
    forward = max(cost.forward for cost in costs) + compared
    return max(backward * pixels, forward * max(pixels, style_pixels))


def _extra(size: Size, style_sizes: Sequence[Size], regions: int) -> float:
    """Return the bytes of styles beside the first and of what regions add, in float32."""
    styles = 3 * 4 * sum(map(math.prod, style_sizes[1:]))
    return styles + (regions > 1) * regions * 4 * 3 * math.prod(size)


def relative_work(
    extractor: FeatureExtractor,
    config: StyleTransferConfig,
    size: Size,
    tile: int | None,
    bands: int = 1,
    processes: int = 1,
) -> float:
    """Return the work of a process in an evaluation in tiles over that of the whole picture.

    The whole picture takes a forward and a backward, of about the same cost since no weight needs
    a gradient. Tiles take another forward, unless they are the only one of a last stage, and read
    their halos as well. With several bands a process takes yet another one, and one of the content.
    """
    if tile is None and processes == 1:
        return 1.0
    contents, styles = layer_weights(config.objective)
    staged = stages_of(extractor.ended_at([*contents, *styles]))
    whole = sum(2 * _work(costs) * math.prod(stage.size(size)) for stage, costs in staged)
    largest = largest_band(staged, size, tile or max(size), bands * processes)
    tiled = 0.0
    for part, (stage, costs) in zip(largest.parts, staged, strict=True):
        passes = 2 if part in largest.whole else 3
        if bands > 1:
            passes += 1 + bool(contents)
            # The content's features end at its deepest layer.
            contents = {layer: contents[layer] for layer in contents if layer not in stage.layers}
        tiled += passes * _work(costs) * sum(each.area for each in part.tiles)
    return bands * tiled / whole


def _in_tiles(
    extractor: FeatureExtractor, size: Size, style_size: Size, tile: int, bands: int
) -> float:
    """Return the bytes of an evaluation in tiles, or of making its targets, at their peak."""
    staged = stages_of(extractor)
    largest = largest_band(staged, size, tile, bands)
    style = largest_band(staged, style_size, tile, bands)
    held = peak = 0.0  # held: inputs of stages, and graphs that are kept
    for part, shown, (stage, costs) in zip(largest.parts, style.parts, staged, strict=True):
        positions, last = part.rows * stage.size(size)[1], costs[-1].output
        backward = max(cost.backward for cost in costs)
        if stage.stride > 1:
            held += costs[0].input * positions
        if part in largest.whole:
            peak = max(peak, held + backward * positions)
            held += costs[-1].kept * positions
            continue
        # The gradients at both ends of the stage; at the picture's own it is counted elsewhere.
        ends = last + (costs[0].input if stage.stride > 1 else 0.0)
        area = max(each.area for each in part.tiles)
        peak = max(peak, held + ends * positions + backward * area)
        area = max(each.area for each in shown.tiles)
        inputs = (costs[0].input + last) * shown.rows * stage.size(style_size)[1]
        peak = max(peak, inputs + max(cost.forward for cost in costs) * area)
    return peak


def _work(costs: list[Cost]) -> float:
    return sum(cost.work for cost in costs)
