"""Measures how much films flicker and how large their style loss is, as docs/film.md reports."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from statistics import fmean

from torch import Tensor

from benchmarks.measured import table
from styletransfer.films.motion import Motion, motion_between, warp
from styletransfer.job import Job
from styletransfer.objective.all_targets import style_targets_of
from styletransfer.objective.whole import Objective

# Distance in frames between the two frames that are compared: 1 (short term), 5 (long term).
GAPS = (1, 5)
# A function that maps a frame (1, 3, H, W) to its style loss.
StyleLoss = Callable[[Tensor], float]


@dataclass(frozen=True)
class Flicker:
    """A Flicker holds the measurements of one film; a value is None if it cannot be measured."""

    short: float | None  # mean `warping_error` between neighbouring frames
    long: float | None  # mean `warping_error` between frames five apart
    style: float | None  # mean style loss of the film's frames


def measure(
    films: Mapping[str, Iterable[Tensor]], style_loss: StyleLoss | None = None
) -> dict[str, Flicker]:
    """Return name -> Flicker of films that have the same length and size.

    A film is an iterable of frames (1, 3, H, W) in [0, 1]. The first film is the input film of
    the others: its motion is used for all, and its style loss is not measured. At most six frames
    of each film are in memory.
    """
    names = list(films)
    # One list of values for each field of Flicker, in their order.
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
    """Return the mean squared difference of a frame and an earlier frame, warped to this frame.

    This is E_warp of Lai et al. 2018 (arXiv:1808.00449), equation 11, but averaged over channels.
    `motion` is that of the input film, from the frame `image` to the earlier frame `before`. Return
    None across a cut, or where no pixel's motion is reliable.
    """
    relied = motion.reliability.to(image)
    if motion.is_cut or not bool(relied.any()):
        return None
    difference = (warp(before, motion.flow.to(before)) - image).square().mean(1, keepdim=True)
    return float((relied * difference).sum() / relied.sum())


def style_loss_of(job: Job) -> StyleLoss | None:
    """Return the function from a frame to its style loss in `job`; None if the job has none."""
    if not job.criterion.styles:
        return None
    criterion = replace(job.criterion, contents={}, matches={}, tv_weight=0.0)
    pictures = job.full_size()
    targets = style_targets_of(job.extractor, criterion, pictures)

    def style_loss(frame: Tensor) -> float:
        image = job.on_device(frame).clone().requires_grad_()
        shown = replace(pictures, content=image.detach())
        objective = Objective(job.extractor, job.mode, criterion, shown, targets)
        return float(objective.evaluate(image).total)

    return style_loss


def report(films: Mapping[str, Flicker]) -> str:
    """Return a Markdown table with one row per film."""
    headings = ["film", *(f"E_warp, {gap} frame{'s' * (gap > 1)}" for gap in GAPS), "style loss"]
    rows = [
        [name, *("-" if value is None else f"{value:.2e}" for value in astuple(film))]
        for name, film in films.items()
    ]
    return table(headings, rows)
