"""The run of a job: an iterator over its steps, with a state that can be saved."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.job import Job, Scale
from styletransfer.job.memory import plan_memory
from styletransfer.objective import Evaluates, smallest_tile, tiles_need
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.whole import Objective
from styletransfer.optimize import Callback, Iterate, Outcome
from styletransfer.optimize.descent import Descent
from styletransfer.pictures.images import resize
from styletransfer.system import signals_held
from styletransfer.system.devices import free_bytes, is_out_of_memory

logger = logging.getLogger(__name__)


@dataclass
class _Level:
    """A level is the state of the current scale (one size of the coarse-to-fine run)."""

    tile: int | None  # side in pixels, or None for the whole picture at once
    start: Tensor  # (1, 3, h, w), the picture that the scale began with
    descent: Descent | None = None  # made at the first step
    objective: Evaluates | None = None  # made at the first step, and again for a smaller tile


class Run:
    """A run optimises a picture, coarse to fine; iterating over it makes its steps.

    Leaving the loop pauses the run; another loop continues it. After `load_state_dict`, a run of an
    equal job continues too, with the same bits on the same machine and number of threads. Between
    two iterates and at the end, another job may replace the job, see `steer`.

    If memory runs out, the step is made again in tiles of half the side.

    Raises:
        UserError: settings that cannot work; see `Objective`.
    """

    def __init__(self, job: Job) -> None:
        self._take(job)
        self.image, self.steps = self.start, 0
        self.planned = sum(scale.steps for scale in self.scales)  # steps made and to come
        self._index = 0  # index of the current scale
        self._level: _Level | None = None
        self._momentum: dict[str, Tensor] | None = None  # Adam's moments of the scale before
        self._largest_tile: int | None = None  # in pixels; set after memory ran out
        self._side_left: int | None = None  # longer side of the scale that `steer` has left
        self._losses: dict[str, float] | None = None  # of the picture that the last scale made
        self._problem: str | None = None

    def __iter__(self) -> Iterator[Iterate]:
        """Make the remaining steps; yield the picture that each step began with."""
        while self._index < len(self.scales) and self._problem is None:
            try:
                yield from self._one_scale(self.scales[self._index])
                continue
            except (MemoryError, RuntimeError) as error:
                self._shrink_tile(error)
            # The error's traceback, which kept the evaluation's tensors, is freed here.
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    def complete(self, callbacks: Sequence[Callback] = ()) -> Outcome:
        """Make the remaining steps, calling every callback with each iterate.

        Ctrl-C, another signal (see `styletransfer/system`), a loss that is not finite or a lack of
        memory end the run early.
        """
        interrupted = False
        try:
            # Signals are held: the first optimiser makes torch import libraries that abort the
            # process if a signal raises an exception in them.
            with signals_held():
                for iterate in self:
                    for callback in callbacks:
                        callback(iterate)
                    del iterate  # frees its picture
        except KeyboardInterrupt:
            interrupted = True  # the evaluation's tensors are freed too
        return replace(self.result(), interrupted=interrupted)

    def result(self) -> Outcome:
        """Return the best picture so far, at the size of the pastiche.

        The losses are those of the optimised picture, before `finish` changes its colours.
        """
        image, losses = self.image, self._losses or {}
        if not losses:
            scale = self.scales[-1]
            if self._level is not None and self._level.descent is not None:
                image = self._level.descent.best.picture()
            image = resize(image, scale.size)
            if protection := self.pictures.resized(scale.size, scale.style_sizes).protection:
                image = protection.hold(image)
        image = image.float().cpu()
        return Outcome(image, self.finish(image), losses, self.steps, problem=self._problem)

    def finish(self, image: Tensor) -> Tensor:
        """Return a picture (1, 3, H, W) of this run in the colours that the job asks for."""
        return self._finish(image)

    def steer(self, job: Job) -> None:
        """Continue with another job of the same content image, from the best picture so far.

        The current scale, or the next larger scale of the new job, begins again with all of its
        steps. L-BFGS's history belongs to the old objective and is dropped; Adam's moments stay.
        (UserError: settings that cannot work, see `Objective`; or a content of another shape.)
        """
        (height, width), own = job.pictures.content.shape[2:], self.pictures.content.shape[2:]
        if abs(height * own[1] - width * own[0]) > max(height, width, *own):  # more than rounding
            raise UserError("the content image has another shape now; start another run")
        if (level := self._level) is not None and (descent := level.descent) is not None:
            if descent.is_over(self.scales[self._index].steps):
                self._end_level(descent)
            else:
                self.image, self._momentum = descent.best.picture(), descent.momentum()
        if self._side_left is None:  # of several calls between two steps, the first one sets it
            self._side_left = max(self.scales[min(self._index, len(self.scales) - 1)].size)
        side = self._side_left
        self._take(job)
        sides = [max(scale.size) for scale in self.scales]
        self._index = next((n for n, own in enumerate(sides) if own >= side), len(sides) - 1)
        if job.optimizer.name != "adam":
            self._momentum = None
        self._level = self._losses = self._problem = None
        self.planned = self.steps + sum(scale.steps for scale in self.scales[self._index :])

    def state_dict(self) -> dict[str, Any]:
        """Return the run's state; call it between two iterates, or after an interruption.

        The state holds plain values, and tensors, not copied, that later steps change.
        """
        level = None
        if self._level is not None and self._level.descent is not None:
            descent = self._level.descent.state_dict()
            level = {"tile": self._level.tile, "start": self._level.start, "descent": descent}
        return {
            "index": self._index,
            "steps": self.steps,
            "planned": self.planned,
            "image": self.image,
            "momentum": self._momentum,
            "largest_tile": self._largest_tile,
            "losses": self._losses,
            "level": level,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state` of an equal job; its tensors, on the job's device, are reused."""
        numbers = (int(state[key]) for key in ("index", "steps", "planned"))
        self._index, self.steps, self.planned = numbers
        self.image, self._momentum = state["image"], state["momentum"]
        self._largest_tile, self._losses = state["largest_tile"], state["losses"]
        self._level, level = None, state["level"]
        if level is None:
            return
        self._level = _Level(level["tile"], level["start"])
        self._build(self.scales[self._index], self._level).load_state_dict(level["descent"])

    def _take(self, job: Job) -> None:
        """Set the job, its scales, pictures, colours and start."""
        self.job, self.scales = job, job.scales
        self.pictures = job.pictures.to(job.on_device(job.pictures.content))
        self._recolored = job.colors.before(self.pictures)
        self._finish = job.colors.after(self.pictures)
        self.start = job.on_device(job.start.picture(self._recolored))

    def _one_scale(self, scale: Scale) -> Iterator[Iterate]:
        if self._level is None:
            self._level = self._begin(scale)
        level = self._level
        descent = self._build(scale, level)
        for losses, picture in descent.run(scale.steps):
            self.steps += 1
            counts = (self.steps, self.planned, self._index + 1, len(self.scales))
            yield Iterate(*counts, losses, picture, self.finish)
            del picture  # frees its memory before the next evaluation
            if self._level is not level:  # the caller has called `steer`
                return
        self._end_level(descent)

    def _begin(self, scale: Scale) -> _Level:
        """Return a scale's state, which starts from the picture of the scale before."""
        job, self._side_left = self.job, None
        tile = plan_memory(job, scale, free_bytes(job.device)).tile
        if self._largest_tile is not None:
            tile = min(tile or max(scale.size), self._largest_tile)
        wraps = job.criterion.seamless
        start = job.start.enlarged(self.image, self.start, scale.size, wraps=wraps)
        return _Level(tile, start)

    def _build(self, scale: Scale, level: _Level) -> Descent:
        """Return the descent of a scale; make it and its objective if missing."""
        job = self.job
        if level.objective is None:
            pictures = self._recolored.resized(scale.size, scale.style_sizes)
            if self._index or pictures.start is not None:
                pictures = replace(pictures, start=level.start)
            level.objective = make_objective(job, pictures, level.tile)
            if level.descent is None:
                original = resize(self.pictures.content, scale.size)
                protection = replace(pictures, content=original).protection
                level.descent = Descent(level.objective, level.start, job.optimizer, protection)
                level.descent.warm_start(self._momentum)
            level.descent.objective = level.objective
        assert level.descent is not None
        return level.descent

    def _end_level(self, descent: Descent) -> None:
        """Keep the result of a scale, and go to the next scale."""
        if descent.problem is not None:
            self._problem = descent.problem
            return
        self.image, losses = descent.finish()
        self._momentum = descent.momentum()
        self._index += 1
        # The next scale needs the memory of this scale.
        self._level = None
        if self._index == len(self.scales):
            self._losses = losses.as_floats()

    def _shrink_tile(self, error: Exception) -> None:
        """Halve the tile after memory ran out, or give up; raise any other error."""
        if not is_out_of_memory(error):
            raise error
        job, level = self.job, self._level
        tile = None if level is None else level.tile
        smaller = (tile or max(self.scales[self._index].size)) // 2
        least = smallest_tile(job.extractor, job.criterion)
        if (needed := tiles_need(job.mode, job.criterion)) or smaller < least:
            advice = f", or {needed} with its tiles" if needed else ""
            self._problem = f"memory ran out; choose a smaller size{advice}"
            return
        if self._largest_tile is None:
            logger.warning(
                "memory ran out; going on in tiles of %d pixels, or less if need be", smaller
            )
        self._largest_tile = smaller
        if level is not None:
            level.tile, level.objective = smaller, None
            if level.descent is not None:
                # Free the old objective; it is missing if memory ran out before a new one was made.
                vars(level.descent).pop("objective", None)


def make_objective(job: Job, pictures: Inputs, tile: int | None) -> Evaluates:
    """Return the objective of a job for pictures at one scale, in tiles unless `tile` is None."""
    compared = (job.extractor, job.mode, job.criterion, pictures)
    if tile is None:
        return Objective(*compared, job.styles)
    from styletransfer.objective.tiled import TiledObjective  # tiles are rare

    return TiledObjective(*compared, tile, job.styles)
