"""Chooses and builds the rows of the benchmark: each row is one way to evaluate the losses."""

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from benchmarks.evaluations.config import BenchmarkConfig, default_config
from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.job.choices import Choices
from styletransfer.job.memory import FIXED, KEPT_IN_TILES, USABLE, activation_bytes
from styletransfer.job.prepare import load
from styletransfer.job.sources import Sources
from styletransfer.losses import LOSS_MODES
from styletransfer.objective import Criterion, gradient_at, smallest_tile
from styletransfer.objective.inputs import Inputs, Region, StylePart, pair
from styletransfer.objective.whole import Objective
from styletransfer.pictures.images import resize
from styletransfer.system.devices import PRECISIONS, readable
from styletransfer.tiling.tiled import TiledObjective

# The only loss mode measured in tiles, and the only one measured above `plain_up_to`.
CLOSED_FORM = "autograd_function"
# Side in pixels of the largest tile that tile=0 chooses.
LARGEST_TILE = 1024


@dataclass(frozen=True)
class Candidate:
    """A Candidate is one way to evaluate the objective, which may become a row."""

    mode: str  # name of a loss mode
    precision: str  # precision of the network
    tile: int | None = None  # side of a tile in pixels, or None for the whole picture at once
    regions: int = 1  # number of regions of the picture

    @property
    def name(self) -> str:
        """The row's name, such as "autograd_function bfloat16 2 regions tiled"."""
        divided = "" if self.regions == 1 else f" {self.regions} regions"
        return f"{self.mode} {self.precision}{divided}" + ("" if self.tile is None else " tiled")


def candidates(
    config: BenchmarkConfig, network: FeatureExtractor, size: int, auto: torch.dtype, free: float
) -> tuple[list[Candidate], list[str]]:
    """Return the rows to measure at `size` pixels, without the plain loop, and the rows left out.

    Sizes up to `plain_up_to` have every loss mode in every precision. Larger sizes have only the
    mode CLOSED_FORM, in precision `auto` (what precision=auto means) if config.precisions has it,
    else in all of config.precisions; and the whole picture at once only if it should fit into
    `free` bytes.
    """
    chosen: list[Candidate] = []
    skipped: list[str] = []
    precisions, modes = config.precisions, config.modes
    small = size <= config.plain_up_to
    if not small:
        precisions = [name for name in precisions if PRECISIONS[name] == auto] or precisions
        modes = [CLOSED_FORM]
        skipped.append(f"plain and slower rows at {size}, above plain_up_to={config.plain_up_to}")
    tile = tile_at(config, network, size)
    for precision in precisions:
        for mode in modes:
            whole = Candidate(mode, precision)
            needed = 0.0 if small else _memory(config, network, whole, size)
            if needed <= USABLE * free:
                chosen.append(whole)
            else:
                skipped.append(f"{whole.name} at {size}, which would need {readable(needed)}")
        if CLOSED_FORM in modes and tile < size:
            chosen.append(Candidate(CLOSED_FORM, precision, tile))
        elif CLOSED_FORM in modes:
            skipped.append(f"{CLOSED_FORM} {precision} tiled at {size}, a single tile")
    closed = [candidate for candidate in chosen if candidate.mode == CLOSED_FORM]
    divided = [replace(way, regions=count) for way in closed for count in config.regions]
    return [*chosen, *divided], skipped


def tile_at(config: BenchmarkConfig, network: FeatureExtractor, size: int) -> int:
    """Return a tile's side in pixels: `config.tile`, or if that is 0, half of `size`.

    The half is limited to LARGEST_TILE, and rounded down to a multiple of the smallest tile.
    """
    if config.tile:
        return config.tile
    stride = smallest_tile(network, Criterion.of(config.objective))
    return max(stride, min(size // 2, LARGEST_TILE) // stride * stride)


def build_network(config: BenchmarkConfig, device: torch.device) -> FeatureExtractor:
    """Return the feature extractor in float32, up to the deepest layer that has a loss.

    (UserError: see `build_features` and `Criterion.of`.)
    """
    layers = Criterion.of(config.objective).layers
    network = build_features(config.features, config.seed).ended_at(layers).to(device)
    return network.to(memory_format=torch.channels_last)


def in_precision(network: FeatureExtractor, precision: str) -> FeatureExtractor:
    """Return a copy of `network` in `precision`, optimised for inference."""
    device = next(network.layers.parameters()).device
    return optimize_for_inference(copy.deepcopy(network), device, PRECISIONS[precision])


def squares(config: BenchmarkConfig, size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the central squares of content and style image, (1, 3, size, size) each, float32.

    (UserError: see `load`.)
    """
    settings = default_config(config, size)
    choices = Choices.of(settings)
    content, style = load(choices, Sources.read(settings, choices.pyramid)).tensors
    return _square(content, size).to(device), _square(style, size).to(device)


def evaluation(
    config: BenchmarkConfig,
    candidate: Candidate,
    network: FeatureExtractor,
    content: Tensor,
    style: Tensor,
) -> Callable[[], Tensor]:
    """Return a function that evaluates the objective once and returns only the gradient.

    `network` is in the candidate's precision; content (1, 3, H, W) and style (1, 3, h, w) are
    sRGB in [0, 1]. The targets are computed here, once.
    """
    dtype = torch.float64 if network.dtype == torch.float64 else torch.float32
    content, style = content.to(dtype), style.to(dtype)
    pictures = pair(content, style)
    if candidate.regions > 1:
        pictures = striped(content, style, candidate.regions)
    mode, criterion = LOSS_MODES[candidate.mode], Criterion.of(config.objective)
    settings = (network, mode, criterion, pictures)
    image = middle(content, style)
    if candidate.tile is None:
        return functools.partial(gradient_at, Objective(*settings), image)
    return functools.partial(gradient_at, TiledObjective(*settings, candidate.tile), image)


def striped(content: Tensor, style: Tensor, count: int) -> Inputs:
    """Return inputs whose regions are `count` vertical stripes, which have two styles in turn."""
    width = content.shape[3]
    regions = []
    for number in range(count):
        weights = torch.zeros_like(content[:, :1])
        weights[..., width * number // count : width * (number + 1) // count] = 1
        regions.append(Region(str(number + 1), weights, (StylePart(number % 2),)))
    return Inputs(content, (style, style.flip(2)), tuple(regions))


def middle(content: Tensor, style: Tensor) -> Tensor:
    """Return the mean of two pictures of the same size. No loss is 0 at this mean."""
    return (content + style) / 2


def _square(image: Tensor, size: int) -> Tensor:
    height, width = image.shape[2:]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return resize(image[..., top : top + side, left : left + side], (size, size))


def _memory(
    config: BenchmarkConfig, network: FeatureExtractor, candidate: Candidate, size: int
) -> float:
    """Return the estimated bytes of one evaluation, its targets included."""
    # The estimate depends on the parameters' dtype; a cast on the "meta" device takes no memory.
    cast = copy.deepcopy(network).to("meta").to(PRECISIONS[candidate.precision])
    layers = Criterion.of(config.objective).layers
    pixels, each = size**2, activation_bytes(cast.ended_at(layers))
    if candidate.tile is None or candidate.tile >= size:
        return FIXED + each * pixels
    return FIXED + each * (KEPT_IN_TILES * pixels + candidate.tile**2)
