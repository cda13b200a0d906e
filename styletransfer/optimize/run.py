"""A run: from a job to a pastiche, as a generator of iterates over a state that can be saved."""

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.objective.pictures import Pictures
from styletransfer.objective.resilient import ElasticObjective, make_objective
from styletransfer.optimize.descent import ADVICE, Descent, Held
from styletransfer.optimize.job import Job
from styletransfer.optimize.layout import choose_layout
from styletransfer.optimize.results import Callback, Iterate, Result
from styletransfer.optimize.schedule import Scale, check_run, enlarge, starting_picture
from styletransfer.pictures.color import with_chroma_of
from styletransfer.pictures.images import resize
from styletransfer.system.memory import free_bytes, is_out_of_memory
from styletransfer.system.signals import held

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Level:
    """The scale at which a run is."""

    objective: ElasticObjective
    descent: Descent


class Run:
    """The optimisation of a picture, coarse to fine: iterate over it to make its steps.

    Leaving the iteration pauses it; another one goes on from there. So does another run of an equal
    job after `load_state_dict`, on the same machine and with as many threads to the very bits.

    Args:
        job: what to do.

    Attributes:
        job: the same.
        scales: the levels of the pyramid, coarse to fine.
        steps: optimiser steps made.

    Raises:
        UserError: settings that cannot work; see `Objective`.
    """

    def __init__(self, job: Job) -> None:
        check_run(job.config)
        self.job, self.scales, self.steps = job, job.scales, 0
        self.pictures = job.pictures.to(job.on_device(job.pictures.content))
        start = job.start
        if start is None:
            start = starting_picture(job.config, self.pictures)
        self.start = self.image = job.on_device(start)
        self._index = 0
        self._level: _Level | None = None
        self._momentum: dict[str, Any] | None = None
        # The largest tile that memory has turned out to allow.
        self._limit: int | None = None
        self._said_short = False
        self._losses: dict[str, float] | None = None
        self._problem: str | None = None

    def __iter__(self) -> Iterator[Iterate]:
        """Make the steps that are left; yield the picture that each began with."""
        try:
            while self._index < len(self.scales) and self._problem is None:
                yield from self._one_scale(self.scales[self._index])
        except (MemoryError, RuntimeError) as error:
            self._give_up(error)

    def complete(self, callbacks: Sequence[Callback] = ()) -> Result:
        """Make the steps that are left, calling every callback with each iterate.

        Ctrl-C, another signal (see `system/signals.py`) or a lack of memory end it early.
        """
        try:
            # Held: the first optimiser makes torch import libraries that abort the process if a
            # signal's exception crosses them.
            with held():
                for iterate in self:
                    for callback in callbacks:
                        callback(iterate)
        except KeyboardInterrupt:
            return replace(self.result(), interrupted=True)
        except (MemoryError, RuntimeError) as error:
            self._give_up(error)
        return self.result()

    def result(self) -> Result:
        """Return the best picture so far, at the size of the pastiche.

        Its losses are those of the picture that was optimised, before `finish`.
        """
        if self._losses is not None:
            finite = math.isfinite(self._losses["total"])
            problem = None if finite else f"the loss is not finite; {ADVICE}"
            image = self.image.float().cpu()
            return Result(image, self._losses, self.steps, problem=problem, finish=self.finish)
        picture = self.image if self._level is None else self._level.descent.best.picture()
        scale = self.scales[-1]
        picture = resize(picture, scale.size)
        if held := held_in(self.pictures.resized(scale.size, scale.style_sizes)):
            picture = held.hold(picture)
        image = picture.float().cpu()
        return Result(image, {}, self.steps, problem=self._problem, finish=self.finish)

    def finish(self, image: Tensor) -> Tensor:
        """Return a picture (1, 3, H, W) of this run in the colours that `config.color` asks for.

        Only content_luminance changes anything here; content_palette has recoloured the style.
        """
        config = self.job.config
        if config.color != "content_luminance":
            return image
        content = resize(self.pictures.content, (image.shape[2], image.shape[3]))
        return with_chroma_of(image, content.to(image), config.color_strength)

    def state_dict(self) -> dict[str, Any]:
        """Return all that goes on from here: plain values and live tensors, which later steps move.

        Take it between two iterates, or after an interruption; and a `copy.deepcopy` of it to keep
        it in memory.
        """
        level = None
        if self._level is not None:
            level = {
                "tile": self._level.objective.tile,
                "halved": self._level.objective.halved,
                "descent": self._level.descent.state_dict(),
            }
        return {
            "index": self._index,
            "steps": self.steps,
            "image": self.image,
            "momentum": self._momentum,
            "limit": self._limit,
            "said_short": self._said_short,
            "losses": self._losses,
            "level": level,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from the `state_dict` of a run of an equal job; it is used up.

        Raises:
            UserError: the state belongs to another job.
        """
        self._index, self.steps = state["index"], state["steps"]
        self.image = state["image"].to(self.start.device)
        self._limit, self._momentum = state["limit"], state["momentum"]
        if self._momentum is not None:
            moved = {name: each.to(self.start.device) for name, each in self._momentum.items()}
            self._momentum = moved
        self._said_short, self._losses = state["said_short"], state["losses"]
        self._level = None
        if state["level"] is None:
            return
        scale, saved = self.scales[self._index], state["level"]["descent"]
        if tuple(saved["shift"].shape[2:]) != scale.size or self.image.dtype != self.start.dtype:
            raise UserError("the saved state belongs to another job; start afresh")
        start = saved["start"].to(self.start.device)
        self._level = self._level_at(scale, start, state["level"]["tile"], saved["history"])
        self._level.objective.halved = state["level"]["halved"]
        self._level.descent.load_state_dict(saved)

    def _one_scale(self, scale: Scale) -> Iterator[Iterate]:
        if self._level is None:
            self._level = self._fresh_level(scale)
        objective, descent = self._level.objective, self._level.descent
        for losses, picture in descent.run(scale.steps):
            self.steps += 1
            planned, scales = self.job.config.steps, len(self.scales)
            counts = (self.steps, planned, self._index + 1, scales)
            yield Iterate(*counts, losses, picture, self.finish)
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
        config = self.job.config
        layout = choose_layout(self.job, scale, free_bytes(self.job.device), self._limit)
        if layout.history < config.optimizer.history and not self._said_short:
            self._said_short = True
            logger.warning("memory allows an L-BFGS history of %d", layout.history)
        start = enlarge(self.image, self.start, scale.size, config.init)
        level = self._level_at(scale, start, layout.tile, layout.history)
        level.descent.warm_start(self._momentum)
        return level

    def _level_at(self, scale: Scale, start: Tensor, tile: int | None, history: int) -> _Level:
        pictures = self.pictures.resized(scale.size, scale.style_sizes)
        config = self.job.config
        objective = make_objective(
            self.job.extractor, self.job.mode, config.objective, pictures, self.job.styles, tile
        )
        optimizer = replace(config.optimizer, history=history)
        return _Level(objective, Descent(objective, start, optimizer, held_in(pictures)))

    def _give_up(self, error: Exception) -> None:
        """Say that memory ran out, or raise what is no lack of memory."""
        if not is_out_of_memory(error):
            raise error
        tiles = " or loss_mode=autograd_function, which can work in tiles"
        closed = self.job.mode.is_closed_form
        self._problem = "memory ran out; choose a smaller size" + ("" if closed else tiles)


def held_in(pictures: Pictures) -> Held | None:
    """Return what holds the protected pixels of pictures at their scale."""
    if pictures.protected is None:
        return None
    return Held(pictures.content, pictures.protected)


def stylize(job: Job, callbacks: Sequence[Callback] = ()) -> Result:
    """Make a whole run and return its pastiche.

    Args:
        job: what to do.
        callbacks: called with every evaluated iterate.

    Raises:
        UserError: settings that cannot work; see `Objective`.
    """
    return Run(job).complete(callbacks)
