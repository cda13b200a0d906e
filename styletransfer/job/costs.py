"""What each layer of a network costs in memory and work, and where bands have their tiles."""

import math
from dataclasses import dataclass

import torch
from torch import nn

from styletransfer.features.extractor import FeatureExtractor, is_pool
from styletransfer.objective.bands import Band, band, shares
from styletransfer.objective.stages import Stage, stages
from styletransfer.objective.tiles import pooling
from styletransfer.system.processes import Processes

# (height, width) in pixels.
Size = tuple[int, int]
# The stages of a network, and the costs of their layers per position of the stage's input.
Staged = list[tuple[Stage, list["Cost"]]]


@dataclass(frozen=True)
class Cost:
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


def stages_of(extractor: FeatureExtractor) -> Staged:
    """Return the stages, and the costs of their layers per position of the stage's input."""
    found: Staged = []
    channels = 3
    for stage in stages(extractor):
        costs = costs_of(stage.layers, channels, extractor.dtype)
        found.append((stage, costs))
        channels = costs[-1].channels
    return found


def largest_band(staged: Staged, size: Size, tile: int, bands: int) -> Band:
    """Return the one in the middle: no other reads more rows."""
    found = [stage for stage, _ in staged]
    stride = found[-1].stride * pooling(found[-1].layers)
    owned = shares(size[0], stride, Processes(), bands)
    return band(found, size, tile, owned[len(owned) // 2])


def costs_of(layers: nn.ModuleDict, channels: int, dtype: torch.dtype) -> list[Cost]:
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
        costs.append(Cost(name, before, output, kept, columns, channels, positions, work))
    return costs
