"""Estimates the memory that a scale of a run needs, and chooses the size of its first tiles.

The formula adds up, per pixel of the picture, the tensors of the picture's size, L-BFGS's history,
match targets and the activations that autograd keeps. The figures below were measured on x86, and
no test compares them with a GPU's. The estimate may be too low: `Run` halves the tile if memory
runs out.
"""

import logging
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import nn

from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor, is_pool
from styletransfer.job.choices import Choices
from styletransfer.job.job import Job
from styletransfer.job.scales import Scale
from styletransfer.objective import check_tile, smallest_tile, tiles_need
from styletransfer.settings import OptimizerConfig
from styletransfer.system.devices import free_bytes, readable

logger = logging.getLogger(__name__)

# Share of the free memory that a run may use: the formula is rough, and other programs need some.
# On a GPU the rest is also for cuDNN's workspaces and the blocks of `at_a_time`.
USABLE = 0.8
# Smallest side in pixels of a tile with which `tile=auto` begins. Smaller tiles consist mostly of
# halo, the surroundings that a tile also reads.
SMALL_TILE = 256
# Number of tensors of the picture's size, rounded up: content, style, coarser picture, and about
# ten tensors of the optimiser, without L-BFGS's history.
PICTURES = 15
# Bytes per pixel of an input picture: three channels of float32, and a copy while it is resized.
PIXEL_BYTES = 24
# Number of gradients, each as large as the largest activation, that backward holds at one time.
GRADIENTS = 3
# Fraction of all activations that stay in memory with tiles: the inputs of all stages (sequences
# of layers), and the content's features.
KEPT_IN_TILES = 1 / 12
# Bytes that do not grow with the picture, such as reordered weights.
FIXED = 64 * 2**20


class MemoryPlan(NamedTuple):
    """A memory plan is the size of tiles for one scale, and an estimate of the memory needed."""

    tile: int | None  # side in pixels, or None for the whole picture at once
    bytes: float  # estimated peak, minus the bytes that the process holds before the run


def picture_bytes(optimizer: OptimizerConfig, dtype: torch.dtype) -> int:
    """Return the bytes per pixel of all tensors of the picture's size; `dtype` is the network's."""
    history = 2 * optimizer.history if optimizer.name == "lbfgs" else 0
    value = 8 if dtype == torch.float64 else 4  # bytes of one value of a picture
    return (PICTURES + history) * 3 * value


def check_room(choices: Choices, shape: tuple[int, int], count: int) -> None:
    """Raise UserError if the pictures do not fit in free main memory, even if a GPU paints.

    On a CPU the optimiser's tensors count as well. `shape` is the content's (h, w); `count` is the
    number of styles, `style_detail` included.
    """
    pyramid, network = choices.pyramid, choices.network
    height, width = pyramid.pastiche(shape)
    styles = sum(factor**2 for factor in pyramid.factors(count))
    on_cpu = network.device.type == "cpu"
    content = picture_bytes(choices.optimizer, network.dtype) if on_cpu else PIXEL_BYTES
    needed = height * width * (content + PIXEL_BYTES * styles)
    free = free_bytes(torch.device("cpu"))
    if needed > free:
        raise UserError(
            f"size={pyramid.side} makes a picture of {width} x {height} pixels, which takes "
            f"at least {readable(needed)}, and {readable(free)} are free; choose less",
            "size",
        )


def _sizes(extractor: FeatureExtractor) -> Iterator[tuple[str, nn.Module, float]]:
    """Yield each layer's name, the layer, and how many values its output has per image pixel."""
    channels, positions = 3, 1.0
    for name, layer in extractor.layers.items():
        if isinstance(layer, nn.Conv2d):
            channels = layer.out_channels
        elif is_pool(layer):
            positions /= 4
        yield name, layer, channels * positions


def activation_bytes(extractor: FeatureExtractor) -> float:
    """Return the bytes per pixel that one forward and backward of a network hold at their peak.

    Autograd keeps the output of each convolution and pool; a ReLU works in place.
    """
    kept = [3.0, *(size for _, layer, size in _sizes(extractor) if not isinstance(layer, nn.ReLU))]
    return (sum(kept) + GRADIENTS * max(kept)) * extractor.dtype.itemsize


def plan_memory(job: Job, scale: Scale, free: float) -> MemoryPlan:
    """Choose the tile with which a scale begins, if `free` bytes of memory are left.

    `tile=auto` takes the whole picture if it fits, else the largest tile that fits, but at least
    SMALL_TILE. Raises UserError if the tile is set in pixels and `check_tile` refuses it.
    """
    tile, pixels = job.tile, math.prod(scale.size)
    if tile:
        check_tile(job.extractor, job.mode, job.criterion, tile)
    matched = sum(size for name, _, size in _sizes(job.extractor) if name in job.criterion.matches)
    # Bytes per pixel of the match targets, and of the style features that they copy.
    matches = 2 * matched * job.extractor.dtype.itemsize
    picture = picture_bytes(job.optimizer, job.extractor.dtype)
    pictures = FIXED + (picture + matches) * pixels
    activations = activation_bytes(job.extractor.ended_at(job.criterion.layers))
    usable, whole = USABLE * free, pictures + activations * pixels
    kept = pictures + KEPT_IN_TILES * activations * pixels
    if tile == 0 and whole > usable and not tiles_need(job.mode, job.criterion):
        stride = smallest_tile(job.extractor, job.criterion)
        side = math.sqrt(max(usable - kept, 0) / activations)
        tile = max(int(side) // stride * stride, SMALL_TILE, stride)
    if not tile or tile >= max(scale.size):
        return MemoryPlan(None, whole)
    return MemoryPlan(tile, kept + activations * tile**2)


def halved_tile(job: Job, side: int, *, is_first: bool) -> int:
    """Return half of a tile's side, after memory ran out; UserError if no tile can be so small."""
    smaller, least = side // 2, smallest_tile(job.extractor, job.criterion)
    if (needed := tiles_need(job.mode, job.criterion)) or smaller < least:
        advice = f", or {needed} with its tiles" if needed else ""
        raise UserError(f"memory ran out; choose a smaller size{advice}")
    if is_first:
        logger.warning(
            "memory ran out; going on in tiles of %d pixels, or less if need be", smaller
        )
    return smaller


def plan(job: Job) -> str:
    """Return a few lines of text: the scales of a run, with their steps, tiles and memory."""
    free, peak = free_bytes(job.device), 0.0
    lines = [f"{job.device}, {job.precision}, {job.mode.name}, {job.optimizer.name}"]
    for scale in job.scales:
        (tile, needed), (height, width) = plan_memory(job, scale, free), scale.size
        peak = max(peak, needed)
        how = "whole" if tile is None else f"tiles of {tile} px"
        lines.append(f"{width} x {height}: {scale.steps} steps, {how}, about {readable(needed)}")
    left = "" if free == float("inf") else f" of {readable(free)} free"
    return "\n".join([*lines, f"in all about {readable(peak)}{left}"])
