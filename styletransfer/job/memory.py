"""What a run takes at one scale, predicted from the actual layers: memory at its peak, and work.

Above what the process holds once network and pictures are loaded, the peak is the sum of:

- the optimisation: PICTURES tensors of the picture's size, and 2 per pair of L-BFGS's history;
- the targets: the content's features, and a few matrices (C, C) per style layer;
- one evaluation: what autograd keeps of the layers, by their actual channels, strides and dtype
  (a ReLU in place adds nothing), plus three tensors of the size of the layer at which backward has
  arrived. Without a graph a layer costs its input and twice its output. In tiles that is taken
  stage by stage, and the inputs of all stages are kept beside it, those of one band at a time.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn

from styletransfer.features.extractor import is_pool
from styletransfer.job.job import Job, Scale
from styletransfer.objective.bands import Band, band, shares
from styletransfer.objective.criterion import SEARCHED
from styletransfer.objective.matching import BLOCK
from styletransfer.objective.targets import REFERENCE_SIDE
from styletransfer.objective.tiles import pooling, stages
from styletransfer.system.memory import is_large
from styletransfer.system.processes import Processes

# Tensors of the picture's size beside the history: content, style, the scale before, and about ten
# for the optimiser, by measurement; a running mean, and total variation's in passing.
PICTURES = 15
# Those in memory with Adam where the others lie in files: the picture, its gradient, and one in
# passing. Another comes when the evaluation is over.
IN_MEMORY = 3
# Of a layer: target, sum, product, difference and the like.
GRAMS = 6
# Of hypercolumns, the content's and a style's: features, enlarged ones, scaled and joined ones.
COLUMNS = 6
# Of an evaluation where every convolution's input is padded before it, by measurement.
PADDED = 1.3
# Reordered weights and the like.
FIXED = 64 * 2**20


@dataclass(frozen=True)
class Memory:
    """Estimated bytes at the peak of a scale, by purpose."""

    pictures: float  # tensors of the picture's size, the optimiser's included
    history: float  # L-BFGS's pairs of vectors
    targets: float  # what the picture is compared with
    evaluation: float  # activations and their gradients

    @property
    def total(self) -> float:
        """All of them, in bytes."""
        return self.pictures + self.history + self.targets + self.evaluation


@dataclass(frozen=True)
class Cost:
    """Bytes at one layer per position of the first layer's input; `saved` includes all before it.

    `work` is in multiplications per such position.
    """

    name: str
    input: float
    output: float
    saved: float
    columns: float
    channels: int
    positions: float
    work: float

    @property
    def backward(self) -> float:
        """Bytes while backward is at this layer."""
        return self.saved + 3 * max(self.input, self.output) + self.columns

    @property
    def forward(self) -> float:
        """Bytes while the layer runs without a graph."""
        return self.input + 2 * self.output + self.columns


class Prediction:
    """What a job takes at one scale, for one of its processes."""

    def __init__(self, job: Job, scale: Scale) -> None:
        self.job, self.size = job, scale.size
        self.style_size = max(scale.style_sizes, key=math.prod)
        self.other_styles = sum(map(math.prod, scale.style_sizes[1:]))
        self.extractor = job.extractor.ended_at(job.criterion.layers)
        self.exact = 8 if self.extractor.dtype == torch.float64 else 4  # bytes of a picture's value
        self.costs = costs_of(self.extractor.layers, 3, self.extractor.dtype)
        self.contents = [cost for cost in self.costs if cost.name in job.criterion.contents]
        self.styles = [cost for cost in self.costs if cost.name in job.criterion.styles]
        self.stages, channels = stages(self.extractor), 3  # tiles pass one after another
        # Of the layers of each stage, per position of the stage's input.
        self.stage_costs: list[list[Cost]] = []
        for stage in self.stages:
            self.stage_costs.append(costs_of(stage.layers, channels, self.extractor.dtype))
            channels = self.stage_costs[-1][-1].channels

    def memory(self, tile: int | None, history: int, bands: int = 1) -> Memory:
        """Estimate the peak, in tiles of so many pixels a side (None: the whole picture at once).

        `history` is the pairs that L-BFGS keeps, `bands` those that each process takes in turn.
        """
        pixels, regions = math.prod(self.size), len(self.job.pictures.regions)
        picture = 3 * pixels * self.exact
        bands *= self.job.processes.count
        whole = tile is None and self.job.processes.count == 1
        evaluation = self._as_a_whole() if whole else self._in_tiles(tile or max(self.size), bands)
        lbfgs, count = self.job.config.optimizer.name == "lbfgs", PICTURES
        if not lbfgs and is_large(picture) and self.job.device.type == "cpu":
            count, evaluation = IN_MEMORY, max(evaluation, picture)
        # Styles beside the first, and what regions add, in float32.
        extra = 3 * 4 * (self.other_styles + (regions > 1) * regions * pixels)
        features = sum(cost.output for cost in self.contents) * pixels / bands
        matrices = sum(GRAMS * 8 * cost.channels**2 for cost in self.styles)
        return Memory(
            pictures=count * picture + extra,
            history=2 * history * picture if lbfgs else 0.0,
            targets=features + regions * matrices + self._matching(),
            evaluation=evaluation + FIXED,
        )

    def _matching(self) -> float:
        """Return the bytes of the styles' features, of hypercolumns, and of a block's cosines."""
        matches = self.job.criterion.matches
        features = sum(cost.output for cost in self.contents if cost.name in matches)
        channels = sum(cost.channels for cost in self.costs if cost.name in SEARCHED)
        searched = min(math.prod(self.size), REFERENCE_SIDE**2) / 16 if matches else 0
        styles = math.prod(self.style_size) + self.other_styles
        return features * styles + self.exact * (COLUMNS * channels + BLOCK) * searched

    def work(self, tile: int | None, bands: int = 1) -> float:
        """Return the work of a process in an evaluation in tiles over that of the whole picture.

        The whole picture takes a forward and a backward, of about the same cost since no weight
        needs a gradient. Tiles take another forward, unless they are the only one of a last stage,
        and read their halos as well. With several bands a process takes yet another one, and one of
        the content.
        """
        processes, contents = self.job.processes.count, set(self.job.criterion.contents)
        if tile is None and processes == 1:
            return 1.0
        largest = self._largest_band(self.size, tile or max(self.size), bands * processes)
        whole = tiled = 0.0
        for part, costs in zip(largest.parts, self.stage_costs, strict=True):
            work = sum(cost.work for cost in costs)
            whole += 2 * work * math.prod(part.stage.size(self.size))
            passes = 2 if part in largest.whole else 3
            if bands > 1:
                passes += 1 + bool(contents)
                contents -= set(part.stage.layers)  # the content's features end at the deepest
            tiled += passes * work * sum(piece.area for piece in part.tiles)
        return bands * tiled / whole

    def _as_a_whole(self) -> float:
        """Return the bytes of an evaluation of the whole picture, or of making its targets."""
        pixels, style_pixels = math.prod(self.size), math.prod(self.style_size)
        backward = max(cost.backward for cost in self.costs)
        if self.job.criterion.seamless:
            backward *= PADDED
        if not self.job.mode.is_closed_form:
            # Autograd keeps F - P, in float32 too, and fake_backward a weighted copy.
            backward += sum(3 * 4 * cost.channels * cost.positions for cost in self.contents)
        compared = sum(cost.output for cost in self.contents + self.styles)
        forward = max(cost.forward for cost in self.costs) + compared
        return max(backward * pixels, forward * max(pixels, style_pixels))

    def _in_tiles(self, tile: int, bands: int) -> float:
        """Return the bytes of an evaluation in tiles, or of making its targets, at their peak."""
        largest = self._largest_band(self.size, tile, bands)
        style = self._largest_band(self.style_size, tile, bands)
        resident = peak = 0.0  # resident: inputs of stages, and graphs that are kept
        for part, shown, costs in zip(largest.parts, style.parts, self.stage_costs, strict=True):
            positions, last = part.rows * part.stage.size(self.size)[1], costs[-1].output
            backward = max(cost.backward for cost in costs)
            # The picture and its gradient are counted elsewhere.
            inputs = costs[0].input if part.stage.stride > 1 else 0.0
            resident += inputs * positions
            if part in largest.whole:
                peak = max(peak, resident + backward * positions)
                resident += costs[-1].saved * positions
                continue
            area = max(piece.area for piece in part.tiles)
            # The gradients at both ends of the stage.
            peak = max(peak, resident + (last + inputs) * positions + backward * area)
            area = max(piece.area for piece in shown.tiles)
            ends = (costs[0].input + last) * shown.rows * shown.stage.size(self.style_size)[1]
            peak = max(peak, ends + max(cost.forward for cost in costs) * area)
        return peak

    def _largest_band(self, size: tuple[int, int], tile: int, bands: int) -> Band:
        """Return the one in the middle: no other reads more rows."""
        stride = self.stages[-1].stride * pooling(self.stages[-1].layers)
        owned = shares(size[0], stride, Processes(), bands)
        return band(self.stages, size, tile, owned[len(owned) // 2])


def costs_of(layers: nn.ModuleDict, channels: int, dtype: torch.dtype) -> list[Cost]:
    """Return the cost of each layer, given its channels of input: 3 mean the picture."""
    # The picture and its gradient, and its normalised self in two precisions.
    extra = 12.0 if channels == 3 else 0.0
    output = channels * dtype.itemsize + extra
    saved, positions, costs = output + extra, 1.0, []
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
            saved += output
        costs.append(Cost(name, before, output, saved, columns, channels, positions, work))
    return costs
