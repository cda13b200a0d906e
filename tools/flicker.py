"""How much films flicker, and how far they have a style: docs/film.md measures by it."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from statistics import fmean

from torch import Tensor

from styletransfer.films.motion import Motion, motion_between, warp
from styletransfer.job.job import Job
from styletransfer.objective.whole import Objective, style_targets_of
from styletransfer.system.measure import table

# Frames between the two that are compared, for the short and the long term.
GAPS = (1, 5)
# A frame (1, 3, H, W) -> its style loss.
StyleLoss = Callable[[Tensor], float]


@dataclass(frozen=True)
class Flicker:
    """What is measured of a film; None for what there is nothing to measure of."""

    short: float | None  # mean `warping_error` between neighbours
    long: float | None  # the same over five frames
    style: float | None  # mean style loss of its frames


def measure(
    films: Mapping[str, Iterable[Tensor]], style_loss: StyleLoss | None = None
) -> dict[str, Flicker]:
    """Measure films of one length and size, frame by frame.

    A film is its frames (1, 3, H, W) in [0, 1]; the first one is the input of the others, and has
    no style loss. Only as many frames are in memory as the longest gap spans.
    """
    names = list(films)
    # In the order of Flicker's fields.
    found: dict[str, list[list[float]]] = {name: [[], [], []] for name in names}
    earlier: deque[tuple[Tensor, ...]] = deque(maxlen=max(GAPS))
    for frames in zip(*films.values(), strict=True):
        for number, gap in enumerate(GAPS):
            if gap > len(earlier):
                continue
            moved = motion_between(frames[0], earlier[-gap][0])
            for name, frame, before in zip(names, frames, earlier[-gap], strict=True):
                if (error := warping_error(moved, frame, before)) is not None:
                    found[name][number].append(error)
        if style_loss is not None:
            for name, frame in zip(names[1:], frames[1:], strict=True):
                found[name][-1].append(style_loss(frame))
        earlier.append(frames)
    return {
        name: Flicker(*(fmean(values) if values else None for values in lists))
        for name, lists in found.items()
    }


def warping_error(motion: Motion, image: Tensor, before: Tensor) -> float | None:
    """Return the mean squared difference of two frames (1, 3, H, W) that motion does not explain.

    E_warp of Lai et al. 2018 (arXiv:1808.00449), equation 11, as a mean over channels, too; with
    motion and occlusion of the input, from the frame to the earlier one. None across a cut, or
    without a pixel that can be relied on.
    """
    relied = motion.reliability.to(image)
    if motion.is_cut or not bool(relied.any()):
        return None
    difference = (warp(before, motion.flow.to(before)) - image).square().mean(1, keepdim=True)
    return float((relied * difference).sum() / relied.sum())


def style_loss_of(job: Job) -> StyleLoss | None:
    """Return what measures a frame's style as the objective of a job does; None without a style."""
    if not job.criterion.styles:
        return None
    criterion = replace(job.criterion, contents={}, tv_weight=0.0)
    pictures = job.pictures_at(max(job.scales[-1].size))
    targets = style_targets_of(job.extractor, criterion, pictures)

    def style_loss(frame: Tensor) -> float:
        image = job.on_device(frame).clone().requires_grad_()
        shown = replace(pictures, content=image.detach())
        objective = Objective(job.extractor, job.mode, criterion, shown, targets)
        return float(objective.evaluate(image).total)

    return style_loss


def report(films: Mapping[str, Flicker]) -> str:
    """Return a table."""
    headings = ["film", *(f"E_warp, {gap} frame{'s' * (gap > 1)}" for gap in GAPS), "style loss"]
    rows = [
        [name, *("-" if value is None else f"{value:.2e}" for value in astuple(film))]
        for name, film in films.items()
    ]
    return table(headings, rows)
