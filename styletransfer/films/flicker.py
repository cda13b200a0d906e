"""Painted films, measured: how much they flicker, and how well they have the style."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import zip_longest

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.films.motion import FindMotion, Motion, motion_between
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
    films: Mapping[str, Iterable[Tensor]],
    style_loss: StyleLoss | None = None,
    motion: FindMotion = motion_between,
) -> dict[str, Flicker]:
    """Measure films frame by frame (UserError: they differ in length or size).

    Args:
        films: name -> frames (1, 3, H, W) in [0, 1]; the first is the input of the others. Only as
            many frames are in memory as the longest gap spans.
        style_loss: of a frame; that of the input is left out.
        motion: finds it, in the input.
    """
    names = list(films)
    errors: dict[str, list[list[float]]] = {name: [[] for _ in GAPS] for name in names}
    styles: dict[str, list[float]] = {name: [] for name in names}
    earlier: deque[tuple[Tensor, ...]] = deque(maxlen=max(GAPS))
    for frames in zip_longest(*films.values()):
        if any(frame is None for frame in frames):
            raise UserError("films of different lengths cannot be compared")
        if len({frame.shape for frame in frames}) > 1:
            raise UserError("films of different sizes cannot be compared")
        for number, gap in enumerate(GAPS):
            if gap > len(earlier):
                continue
            moved = motion(frames[0], earlier[-gap][0])
            for name, frame, before in zip(names, frames, earlier[-gap], strict=True):
                if (error := warping_error(moved, frame, before)) is not None:
                    errors[name][number].append(error)
        if style_loss is not None:
            for name, frame in zip(names[1:], frames[1:], strict=True):
                styles[name].append(style_loss(frame))
        earlier.append(frames)
    return {name: Flicker(*map(_mean, (*errors[name], styles[name]))) for name in names}


def warping_error(motion: Motion, image: Tensor, before: Tensor) -> float | None:
    """Return the mean squared difference of two frames (1, 3, H, W) that motion does not explain.

    E_warp of Lai et al. 2018 (arXiv:1808.00449), equation 11, as a mean over channels, too; with
    motion and occlusion of the input, from the frame to the earlier one. None across a cut, or
    without a pixel that can be relied on.
    """
    relied = motion.reliability.to(image)
    if motion.is_cut or not bool(relied.any()):
        return None
    difference = (motion.warped(before) - image).square().mean(1, keepdim=True)
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


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
