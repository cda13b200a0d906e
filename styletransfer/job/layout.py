"""How a run is laid out in memory: whole, in tiles or bands, with how much L-BFGS history."""

from collections.abc import Iterator
from dataclasses import dataclass

from styletransfer.job.job import Job, Scale, make_scale, parse_tile
from styletransfer.job.memory import Memory, Prediction
from styletransfer.objective.criterion import check_tile, smallest_tile
from styletransfer.system.memory import readable

# The share of the free memory that a plan may use: estimates err, and others need some too.
USABLE = 0.8
# Smaller tiles are halo more than anything else; before them, L-BFGS's history shrinks.
SMALL_TILE = 256
# Pairs of L-BFGS's history, before the picture is cut into bands, which take longer.
SHORT = 5


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
    """Choose the tile and the history for one scale.

    tile=auto takes the whole picture if it fits, otherwise the largest tile that does, and only
    with small tiles a shorter history. What still does not fit is cut into bands.

    Args:
        free: bytes of memory that may be used up.
        limit: the largest tile to consider, in pixels, after a larger one ran out of memory.

    Raises:
        UserError: a tile that cannot be.
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
    if asked is None or not job.mode.is_closed_form:
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
            other = " or loss_mode=autograd_function, which can work in tiles"
            return f"size={side} would fit" + ("" if job.mode.is_closed_form else other)
    return "no size would fit; close other programs or raise the limit"
