"""From a config to a job: everything that a style transfer needs, loaded and checked.

And how a run is laid out in memory: whole, in tiles or bands, with how much L-BFGS history.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.job.job import (
    DEEPEST,
    Job,
    Scale,
    check_run,
    make_scale,
    make_scales,
    parse_tile,
    pastiche_size,
)
from styletransfer.job.load import Given, Loaded, files_read, load
from styletransfer.job.memory import Memory, Prediction
from styletransfer.losses import LossMode, get_loss_mode
from styletransfer.objective.criterion import (
    Criterion,
    check_size,
    check_tile,
    smallest_tile,
    tiles_need,
)
from styletransfer.objective.inputs import at_layers
from styletransfer.pictures import images
from styletransfer.settings import StyleTransferConfig
from styletransfer.system.devices import choose_device, choose_precision
from styletransfer.system.files import check_outputs
from styletransfer.system.memory import free_bytes, readable
from styletransfer.system.processes import Processes

logger = logging.getLogger(__name__)

# The share of the free memory that a plan may use: estimates err, and others need some too.
USABLE = 0.8
# Smaller tiles are halo more than anything else; before them, L-BFGS's history shrinks.
SMALL_TILE = 256
# Pairs of L-BFGS's history, before the picture is cut into bands, which take longer.
SHORT = 5


def prepare(
    config: StyleTransferConfig,
    given: Given | None = None,
    *,
    enlarge: bool = True,
    processes: Processes | None = None,
    like: Job | None = None,
) -> Job:
    """Load and check everything that `config` names; a UserError says what would make it fail.

    `given` and `enlarge` are as for `load`; of the `processes` that share the work each prepares
    the same; the network of a job `like` this one is taken if it is the same.
    """
    # Cheap checks come first.
    check_run(config)
    criterion = Criterion.of(config.objective)
    layers = criterion.layers
    mode = get_loss_mode(config.loss_mode.name)
    processes = processes or Processes()
    _check_shareable(config, mode, criterion, processes)
    device = choose_device(config.device)
    dtype = choose_precision(config.precision, device)
    if config.output is not None:
        images.check_writable(config.output)
        check_outputs([config.output], files_read(config))
    loaded = load(config, given, enlarge=enlarge)
    same = ("features", "seed", "device", "precision")
    if like is not None and (
        like.criterion.layers != layers
        or any(getattr(like.config, key) != getattr(config, key) for key in same)
    ):
        like = None
    extractor = build_features(config.features, config.seed) if like is None else like.extractor
    check_layers(extractor, layers, config, loaded)
    if like is None:
        extractor = optimize_for_inference(extractor.ended_at(layers), device, dtype)
    start, alpha = loaded.start, loaded.alpha
    job = Job(config, extractor, mode, loaded.pictures, start, alpha, processes=processes)
    _tell_vanished(job)
    problem = choose_layout(job, job.scales[-1], free_bytes(job.device)).problem
    if problem is not None:
        if parse_tile(config.tile) == 0:
            raise UserError(problem, "size")
        logger.warning("%s; trying all the same", problem)
    return job


def check_layers(
    extractor: FeatureExtractor, layers: list[str], config: StyleTransferConfig, loaded: Loaded
) -> None:
    """Refuse unknown layers, and pictures that do not reach them at the coarsest scale."""
    ended, (coarsest, *_) = extractor.ended_at(layers), make_scales(config, loaded.pictures)
    content = loaded.pictures.content
    shape = (content.shape[2], content.shape[3])
    height, width = size = images.scaled_size(shape, config.size)
    if size != pastiche_size(config, shape, config.size):
        raise UserError(
            f"a seamless picture's sides must be multiples of {DEEPEST} pixels, not {width} x "
            f"{height}; choose another size, or a content that is cut so"
        )
    for size, name in zip((coarsest.size, *coarsest.style_sizes), loaded.names, strict=True):
        check_size(ended, size, Path(name).name)


def _check_shareable(
    config: StyleTransferConfig, mode: LossMode, criterion: Criterion, processes: Processes
) -> None:
    """Refuse several processes that have nothing to share."""
    if processes.count == 1:
        return
    if needed := tiles_need(mode, criterion):
        raise UserError(
            f"processes share the tiles of a picture, and those need {needed}; choose that, or "
            "start it without torchrun"
        )
    if parse_tile(config.tile) is None:
        raise UserError("tile=off leaves nothing to share; leave it out, or start without torchrun")


def _tell_vanished(job: Job) -> None:
    """Log which regions are too small for which layers at the coarsest scale.

    A UserError reports that all regions are too small for all layers, without a content loss.
    """
    layers = list(job.criterion.styles)
    is_any_seen = False
    for region in job.pictures_at(max(job.scales[0].size)).regions:
        gone: set[str] = set()
        for weights in (region.weights, *(part.weights for part in region.sources)):
            if weights is not None:
                seen = at_layers(job.extractor, weights, layers)
                gone.update(layer for layer, positions in seen.items() if positions is None)
        if gone:
            logger.warning(
                "the region %s is too small for %s at the coarsest scale, and is left out there",
                region.name or "that is not protected",
                ", ".join(layer for layer in layers if layer in gone),
            )
        if region.weights is not None:
            own = at_layers(job.extractor, region.weights, layers)
            is_any_seen |= any(positions is not None for positions in own.values())
        else:
            is_any_seen = True
    if layers and not job.criterion.contents and not is_any_seen:
        raise UserError(
            "what is left to paint is too small for every style layer at the coarsest scale; "
            "raise size, lower scales, or protect less"
        )


@dataclass(frozen=True)
class MemoryLayout:
    """What was chosen for one scale."""

    tile: int | None  # side in pixels, or None for the whole picture at once
    history: int  # pairs that L-BFGS keeps
    memory: Memory  # estimated
    bands: int = 1  # that each process takes in turn
    # None, or one line saying that not even this may fit, and what would.
    problem: str | None = None


def choose_layout(job: Job, scale: Scale, free: float, limit: int | None = None) -> MemoryLayout:
    """Choose the tile and the history for one scale, with `free` bytes of memory to use up.

    tile=auto takes the whole picture if it fits, otherwise the largest tile that does, and only
    with small tiles a shorter history. What still does not fit is cut into bands. `limit` is the
    largest tile to consider, in pixels, after a larger one ran out of memory. (UserError: a tile
    that cannot be.)
    """
    asked = parse_tile(job.config.tile)
    if asked:
        check_tile(job.extractor, job.mode, job.criterion, asked)
    prediction, usable, wanted = Prediction(job, scale), USABLE * free, job.config.optimizer.history
    for tile in _candidates(job, scale.size, asked, limit):
        if (memory := prediction.memory(tile, wanted)).total <= usable:
            return MemoryLayout(tile, wanted, memory)
    for bands in _band_counts(job, scale.size, tile):
        least = prediction.memory(tile, 1, bands)
        pairs = (usable - least.total) / least.history if least.history else wanted
        history = min(wanted, 1 + int(pairs)) if usable >= least.total else 0
        if history >= min(wanted, SHORT):
            break
    problem = None
    if not history:
        # Who named a tile may know better than an estimate.
        history = wanted if asked != 0 else 1
        height, width = scale.size
        problem = (
            f"a picture of {width} x {height} pixels with tile={job.config.tile} needs about "
            f"{readable(least.total)}, and {readable(usable)} of memory can be used; "
            + _advice(job, scale, usable)
        )
    return MemoryLayout(tile, history, prediction.memory(tile, history, bands), bands, problem)


def _band_counts(job: Job, size: tuple[int, int], tile: int | None) -> Iterator[int]:
    """Yield how many bands each process may take in turn: none is lower than small tiles are."""
    bands = 1
    yield bands
    is_whole = tile is None and job.processes.count == 1
    while not is_whole and size[0] >= 2 * bands * job.processes.count * SMALL_TILE:
        bands *= 2
        yield bands


def _candidates(
    job: Job, size: tuple[int, int], asked: int | None, limit: int | None = None
) -> Iterator[int | None]:
    """Yield the tiles to consider, the largest first; None is the whole picture."""
    if limit is not None:
        yield min(limit, asked or limit)
        return
    if asked:
        yield None if asked >= max(size) else asked
        return
    yield None
    if asked is None or tiles_need(job.mode, job.criterion):
        return
    stride = smallest_tile(job.extractor, job.criterion)
    for count in range(2, max(size) + 1):
        tile = -(-max(size) // (count * stride)) * stride
        if tile < max(SMALL_TILE, stride):
            return
        yield tile


def _advice(job: Job, scale: Scale, usable: float) -> str:
    """Name a size that would fit, to the nearest 5 % below."""
    side = max(scale.size)
    while side > SMALL_TILE // 4:
        side = int(side * 0.95)
        smaller = make_scale(job.config, job.pictures, side, steps=0)
        *_, tile = _candidates(job, smaller.size, asked=0)
        *_, bands = _band_counts(job, smaller.size, tile)
        if Prediction(job, smaller).memory(tile, 1, bands).total <= usable:
            needed = tiles_need(job.mode, job.criterion)
            return f"size={side} would fit" + (needed and f", or {needed} with its tiles")
    return "no size would fit; close other programs or raise the limit"
