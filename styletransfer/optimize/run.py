"""A run: from a job to a pastiche, as a generator of iterates over a state that can be saved."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.job.job import Job, Scale, enlarge, starting_picture
from styletransfer.job.memory import plan_memory
from styletransfer.objective.criterion import tiles_need
from styletransfer.objective.resilient import ElasticObjective, make_objective
from styletransfer.optimize.descent import ADVICE, Descent
from styletransfer.optimize.results import Callback, Iterate, Outcome
from styletransfer.pictures.color import with_chroma_of
from styletransfer.pictures.images import resize
from styletransfer.system.memory import free_bytes, is_out_of_memory
from styletransfer.system.signals import signals_held


@dataclass(frozen=True)
class Snapshot:
    """A place on a run's way from which it can go on: all there is but L-BFGS's history."""

    steps: int  # optimiser steps made by then
    side: int  # longer side in pixels of the scale to go on at
    image: Tensor  # (1, 3, h, w), the best picture by then
    momentum: dict[str, Tensor] | None  # Adam's moments, or None


@dataclass(frozen=True)
class _Level:
    """The scale at which a run is."""

    objective: ElasticObjective
    descent: Descent


class Run:
    """The optimisation of a picture, coarse to fine: iterate over it to make its steps.

    Leaving the iteration pauses it; another one goes on from there. So does another run of an equal
    job after `load_state_dict`, on the same machine and with as many threads to the very bits.
    Between two iterates, and at the end, it can be steered: another job takes over.

    A UserError tells of settings that cannot work; see `Objective`.
    """

    def __init__(self, job: Job) -> None:
        self._take(job)
        self.image, self.steps = self.start, 0
        self.planned = sum(scale.steps for scale in self.scales)  # made and to come
        self._index = 0
        self._level: _Level | None = None
        self._momentum: dict[str, Tensor] | None = None
        # The largest tile that memory has turned out to allow.
        self._limit: int | None = None
        self._losses: dict[str, float] | None = None
        self._problem: str | None = None

    def __iter__(self) -> Iterator[Iterate]:
        """Make the steps that are left; yield the picture that each began with."""
        try:
            while self._index < len(self.scales) and self._problem is None:
                yield from self._one_scale(self.scales[self._index])
        except (MemoryError, RuntimeError) as error:
            self._give_up(error)

    def complete(self, callbacks: Sequence[Callback] = ()) -> Outcome:
        """Make the steps that are left, calling every callback with each iterate.

        Ctrl-C, another signal (see `system/signals.py`) or a lack of memory end it early.
        """
        interrupted = False
        try:
            # Held: the first optimiser makes torch import libraries that abort the process if a
            # signal's exception crosses them.
            with signals_held():
                for iterate in self:
                    for callback in callbacks:
                        callback(iterate)
                    del iterate  # and its picture
        except KeyboardInterrupt:
            interrupted = True  # and all that the evaluation held is freed
        except (MemoryError, RuntimeError) as error:
            self._give_up(error)
        return replace(self.result(), interrupted=interrupted)

    def result(self) -> Outcome:
        """Return the best picture so far, at the size of the pastiche.

        Its losses are those of the picture that was optimised, before `finish`.
        """
        image, losses, problem = self.image, self._losses or {}, self._problem
        if losses and not math.isfinite(losses["total"]):
            problem = f"the loss is not finite; {ADVICE}"
        if not losses:
            scale = self.scales[-1]
            if self._level is not None:
                image = self._level.descent.best.picture()
            image = resize(image, scale.size)
            if protection := self.pictures.resized(scale.size, scale.style_sizes).protection:
                image = protection.hold(image)
        image = image.float().cpu()
        return Outcome(image, losses, self.steps, problem=problem, finish=self.finish)

    def finish(self, image: Tensor) -> Tensor:
        """Return a picture (1, 3, H, W) of this run in the colours that `config.color` asks for.

        Only content_luminance changes anything here; content_palette has recoloured the style.
        """
        config = self.job.config
        if config.color != "content_luminance":
            return image
        content = resize(self.pictures.content, (image.shape[2], image.shape[3]))
        return with_chroma_of(image, content.to(image), config.color_strength)

    def snapshot(self) -> Snapshot:
        """Return where the run is now; a scale whose steps are made is brought to its end."""
        level = self._level
        if level is not None and level.descent.is_over(self.scales[self._index].steps):
            self._end_level(level)
        side = max(self.scales[min(self._index, len(self.scales) - 1)].size)
        image, momentum = self.image, self._momentum
        if self._level is not None:
            descent = self._level.descent
            image, momentum = descent.best.picture(), descent.momentum()
            if momentum is not None:  # later steps move it
                momentum = {name: value.clone() for name, value in momentum.items()}
        return Snapshot(self.steps, side, image, momentum)

    def steer(self, job: Job) -> None:
        """Go on under another job from the best picture so far; see `go_on_from`."""
        self.go_on_from(self.snapshot(), job)

    def go_on_from(self, snapshot: Snapshot, job: Job) -> None:
        """Go back to a snapshot of this run, and on under another job of the same content.

        Its scale begins anew with all of its steps, or the next larger one that the job has.
        L-BFGS's history belongs to the objective that it was learnt from, and is dropped.
        (UserError: settings that cannot work; see `Objective`.)
        """
        self._take(job)
        sides = [max(scale.size) for scale in self.scales]
        last = len(sides) - 1
        self._index = next((n for n, side in enumerate(sides) if side >= snapshot.side), last)
        self.image, self.steps = snapshot.image, snapshot.steps
        self._momentum = snapshot.momentum if job.config.optimizer.name == "adam" else None
        self._level = self._losses = self._problem = None
        self.planned = self.steps + sum(scale.steps for scale in self.scales[self._index :])

    def state_dict(self) -> dict[str, Any]:
        """Return what `Descent.state_dict` does; take it between two iterates, or interrupted."""
        level = self._level and {
            "tile": self._level.objective.tile,
            "halved": self._level.objective.halved,
            "descent": self._level.descent.state_dict(),
        }
        return {
            "index": self._index,
            "steps": self.steps,
            "planned": self.planned,
            "image": self.image,
            "momentum": self._momentum,
            "limit": self._limit,
            "losses": self._losses,
            "level": level,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from the `state_dict` of an equal job, which is used up (UserError: it is not)."""
        device = self.start.device
        self._index, self.steps, self.planned = state["index"], state["steps"], state["planned"]
        self.image, self._momentum = state["image"].to(device), state["momentum"]
        if self._momentum is not None:
            self._momentum = {name: value.to(device) for name, value in self._momentum.items()}
        self._limit, self._losses = state["limit"], state["losses"]
        self._level, level = None, state["level"]
        if level is None:
            return
        scale, descent = self.scales[self._index], level["descent"]
        if tuple(descent["shift"].shape[2:]) != scale.size or self.image.dtype != self.start.dtype:
            raise UserError("the saved state belongs to another job; start afresh")
        self._level = self._level_at(scale, descent["start"].to(device), level["tile"])
        self._level.objective.halved = level["halved"]
        self._level.descent.load_state_dict(descent)

    def _take(self, job: Job) -> None:
        """Make a job this run's own."""
        self.job, self.scales = job, job.scales
        self.pictures = job.pictures.to(job.on_device(job.pictures.content))
        start = starting_picture(job.config, self.pictures) if job.start is None else job.start
        self.start = job.on_device(start)

    def _one_scale(self, scale: Scale) -> Iterator[Iterate]:
        if self._level is None:
            self._level = self._fresh_level(scale)
        level = self._level
        for losses, picture in level.descent.run(scale.steps):
            self.steps += 1
            counts = (self.steps, self.planned, self._index + 1, len(self.scales))
            yield Iterate(*counts, losses, picture, self.finish)
            del picture  # or it would be held through the next evaluation
            if self._level is not level:  # whoever looked at the iterate has steered
                return
        self._end_level(level)

    def _end_level(self, level: _Level) -> None:
        """Leave a scale, and with the last one the run."""
        objective, descent = level.objective, level.descent
        if descent.problem is not None:
            self._problem = descent.problem
            return
        self.image, losses = descent.finish()
        self._momentum = descent.momentum()
        if objective.halved:
            self._limit = objective.tile
        self._index += 1
        # The next scale must not find the memory of this one taken.
        self._level = None
        if self._index == len(self.scales):
            self._losses = losses.as_floats()

    def _fresh_level(self, scale: Scale) -> _Level:
        """Begin a scale with what the one before has made."""
        job = self.job
        tile = plan_memory(job, scale, free_bytes(job.device)).tile
        if self._limit is not None:
            tile = min(tile or max(scale.size), self._limit)
        start = enlarge(self.image, self.start, scale.size, job.config.init, job.criterion.seamless)
        level = self._level_at(scale, start, tile)
        level.descent.warm_start(self._momentum)
        return level

    def _level_at(self, scale: Scale, start: Tensor, tile: int | None) -> _Level:
        job, pictures = self.job, self.pictures.resized(scale.size, scale.style_sizes)
        if self._index or job.start is not None:
            pictures = replace(pictures, painted=start)
        compared = (job.extractor, job.mode, job.criterion, pictures, job.styles)
        objective = make_objective(*compared, tile)
        descent = Descent(objective, start, job.config.optimizer, pictures.protection)
        return _Level(objective, descent)

    def _give_up(self, error: Exception) -> None:
        """Say that memory ran out, or raise what is no lack of memory."""
        if not is_out_of_memory(error):
            raise error
        needed = tiles_need(self.job.mode, self.job.criterion)
        advice = "choose a smaller size" + (needed and f", or {needed} with its tiles")
        self._problem = f"memory ran out; {advice}"


def complete_run(job: Job, callbacks: Sequence[Callback] = ()) -> Outcome:
    """Make a whole run of a job; see `Run.complete`."""
    return Run(job).complete(callbacks)
