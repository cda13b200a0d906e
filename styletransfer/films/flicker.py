"""Painted films, measured: how much they flicker, and how well they have the style."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from styletransfer.films.warping_error import FindMotion, warping_errors
from styletransfer.job.job import Job
from styletransfer.objective.whole import Objective, style_targets_of
from styletransfer.system.table import table

# A frame (1, 3, H, W) -> its style loss.
StyleLoss = Callable[[Tensor], float]


@dataclass(frozen=True)
class Flicker:
    """What is measured of a film.

    Attributes:
        short: E_warp between neighbours; see `WarpingError`.
        long: E_warp over five frames.
        style: mean style loss of its frames, None where there is no style to compare with.
    """

    short: float
    long: float
    style: float | None = None


def measure(
    films: Mapping[str, Iterable[Tensor]], motion: FindMotion, style_loss: StyleLoss | None = None
) -> dict[str, Flicker]:
    """Measure films, frame by frame.

    Args:
        films: name -> frames (1, 3, H, W) in [0, 1]; the first is the input of the others.
        motion: finds it, in the input.
        style_loss: of a frame; that of the input is left out.

    Raises:
        UserError: films of different lengths or sizes.
    """
    losses: dict[str, list[float]] = {name: [] for name in films}

    def heard(name: str, frames: Iterable[Tensor]) -> Iterator[Tensor]:
        for frame in frames:
            if style_loss is not None and name != next(iter(films)):
                losses[name].append(style_loss(frame))
            yield frame

    errors = warping_errors([heard(*each) for each in films.items()], motion)
    return {
        name: Flicker(short, long, sum(losses[name]) / len(losses[name]) if losses[name] else None)
        for name, (short, long) in zip(films, errors, strict=True)
    }


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


def report(found: Mapping[str, Flicker], reference: str | None = None) -> str:
    """Return a table; of the painted films also the ratios to the one called `reference`."""
    rows = []
    for name, film in found.items():
        cells = [film.short, film.long, film.style]
        against: list[float | None] = [None] * 3
        if reference is not None and name != next(iter(found)):
            other = found[reference]
            against = [other.short, other.long, other.style]
        rows.append([name, *map(_cell, cells, against)])
    return table(["film", "E_warp, 1 frame", "E_warp, 5 frames", "style loss"], rows)


def _cell(value: float | None, reference: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.2e}" + (f" ({value / reference:.2f})" if reference else "")
