"""How a run is laid out in memory: whole or in tiles, with how much L-BFGS history."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from styletransfer.objective.limits import check_tile, smallest_tile
from styletransfer.optimize.job import Job
from styletransfer.optimize.memory import Memory, Size, estimate
from styletransfer.optimize.schedule import Scale, make_scale, parse_tile
from styletransfer.pictures.images import scaled_size
from styletransfer.system.memory import readable

# The share of the free memory that a plan may use: estimates err, and others need some too.
USABLE = 0.8
# Smaller tiles are halo more than anything else; before them, L-BFGS's history shrinks.
SMALL_TILE = 256


@dataclass(frozen=True)
class Layout:
    """What was chosen for one scale.

    Attributes:
        tile: side in pixels, or None for the whole picture at once.
        history: pairs that L-BFGS keeps.
        memory: estimated.
        problem: None, or one line saying that not even this may fit, and what would.
    """

    tile: int | None
    history: int
    memory: Memory
    problem: str | None = None


def choose_layout(job: Job, scale: Scale, free: float, limit: int | None = None) -> Layout:
    """Choose the tile and the history for one scale.

    tile=auto takes the whole picture if it fits, otherwise the largest tile that does, and only
    with small tiles a shorter history.

    Args:
        job: the network in the dtype of the computation, the loss mode, of which only
            autograd_function can work in tiles, and the config.
        scale: the sizes of the pictures.
        free: bytes of memory that may be used up.
        limit: the largest tile to consider, in pixels, after a larger one ran out of memory.

    Raises:
        UserError: a tile that cannot be.
    """
    asked = parse_tile(job.config.tile)
    if asked:
        check_tile(job.extractor, job.mode, job.config.objective, asked)
    usable, wanted = USABLE * free, job.config.optimizer.history
    for tile in _candidates(job, scale.size, asked, limit):
        if (needed := _estimate(job, scale.size, scale.style_sizes, tile, wanted)).total <= usable:
            return Layout(tile, wanted, needed)
    least = _estimate(job, scale.size, scale.style_sizes, tile, 1)
    spare = usable - least.total
    if spare >= 0 and least.history > 0:
        history = min(wanted, 1 + int(spare / least.history))
        memory = _estimate(job, scale.size, scale.style_sizes, tile, history)
        return Layout(tile, history, memory)
    # Who named a tile may know better than an estimate.
    history = wanted if asked != 0 else 1
    height, width = scale.size
    problem = (
        f"a picture of {width} x {height} pixels with tile={job.config.tile} needs about "
        f"{readable(least.total)}, and {readable(usable)} of memory can be used; "
        + _advice(job, scale, usable)
    )
    memory = _estimate(job, scale.size, scale.style_sizes, tile, history)
    return Layout(tile, history, memory, problem)


def _estimate(
    job: Job, size: Size, style_sizes: Sequence[Size], tile: int | None, history: int
) -> Memory:
    given = (job.extractor, job.mode, job.config)
    return estimate(*given, size, style_sizes, tile, history, regions=len(job.pictures.regions))


def _candidates(job: Job, size: Size, asked: int | None, limit: int | None) -> Iterator[int | None]:
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
    stride = smallest_tile(job.extractor, job.config.objective)
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
        size = scaled_size(scale.size, side)
        style_sizes = make_scale(job.config, job.pictures, side, steps=0).style_sizes
        *_, tile = _candidates(job, size, 0, None)
        if _estimate(job, size, style_sizes, tile, 1).total <= usable:
            other = " or loss_mode=autograd_function, which can work in tiles"
            return f"size={side} would fit" + ("" if job.mode.is_closed_form else other)
    return "no size would fit; close other programs or raise the limit"
