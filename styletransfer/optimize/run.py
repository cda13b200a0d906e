"""The run of a job: an iterator over its steps, with a state that can be saved."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from styletransfer.copying.copied import held
from styletransfer.errors import UserError
from styletransfer.job import Job, Scale
from styletransfer.job.memory import halved_tile, plan_memory
from styletransfer.objective import Losses
from styletransfer.objective.captured import CapturedObjective, captured_on_cuda
from styletransfer.objective.evaluation import Evaluates
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.whole import Objective
from styletransfer.optimize.descent import Descent
from styletransfer.optimize.iterate import Iterate, Outcome
from styletransfer.optimize.progress import Progress
from styletransfer.pictures.images import resize
from styletransfer.system.checkpoint import check_like
from styletransfer.system.devices import free_bytes, is_out_of_memory
from styletransfer.system.signals import interruptible, signals_held
from styletransfer.tiling.tiled import TiledObjective


class Run:
    """A run optimises a picture, coarse to fine; iterating over it makes its steps.

    Leaving the loop pauses the run; another loop continues it. A new run of an equal job continues
    it after `load_state_dict`, with identical bits on the same machine with the same number of
    threads. Between two iterates and at the end, `steer` may replace the job. A signal that
    `stop_on_signals` watches interrupts an evaluation or the caller's code, never the rest of a
    step.

    If memory runs out, the step is made again in tiles whose sides are half as long.

    Args:
        job: what the run does.
        graph: the `graph` of the run before, whose job differed in its pictures only, or None.

    Raises:
        UserError: the settings cannot work; see `Objective`.
    """

    captured: bool  # whether CUDA graphs made evaluations of this job, at one scale or more
    _is_evaluated: bool  # whether this job has been evaluated

    def __init__(self, job: Job, graph: CapturedObjective | None = None) -> None:
        self._take(job)
        # Before the first step, the captured evaluation of the run before; after the last one, that
        # of the finest scale; otherwise None.
        self.graph = graph
        self.at = Progress(self.start, sum(scale.steps for scale in self.scales))
        self.problem: str | None = None  # why the run gave up, in one line; None if it did not
        # The descent and the objective of the current scale. They are None before its first step.
        # `_halve_tile` sets the objective to None, and the next step makes another one.
        self._descent: Descent | None = None
        self._objective: Evaluates | None = None
        # Longer side in pixels of the scale that `steer` interrupted, for a second call of `steer`
        # before the next step; None after that step.
        self._side_left: int | None = None

    def __iter__(self) -> Iterator[Iterate]:
        """Make the remaining steps; yield the evaluated picture of each step."""
        while self.at.index < len(self.scales) and self.problem is None:
            iterate = None
            try:
                with signals_held():
                    iterate = self._next()
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                if self.graph is None:
                    self._halve_tile()
                self.graph = None  # its memory may be what the step needs
            # Here, after `except`, Python has freed the error's traceback, which held the tensors.
            if iterate is not None:
                yield iterate
            elif torch.cuda.is_available():
                torch.cuda.empty_cache()

    def complete(self) -> Outcome:
        """Make the remaining steps; return `result()`."""
        for _ in self:
            pass
        return self.result()

    def _next(self) -> Iterate | None:
        """Make the next step; after the last one of a scale, go to the next scale instead."""
        scale = self.scales[self.at.index]
        if self._descent is None:
            self._side_left, self.at.tile = None, self._chosen_tile(scale)
            self._descent = self._begin(scale, self._next_start(scale))
        if self._objective is None:
            self._objective = self._make_objective(scale, self._descent.canvas.start)
        if self._descent.is_over:
            self._end(self._descent, self._objective)
            return None
        image = self._descent.picture()
        losses = self._evaluate(self._objective, image)  # sets image.grad
        self._descent.step(image, losses)
        self.at.steps += 1
        counts = (self.at.steps, self.at.planned, self.at.index + 1, len(self.scales))
        return Iterate(*counts, losses, image.detach(), self.colored)

    def _evaluate(self, objective: Evaluates, image: Tensor) -> Losses:
        """Return the losses at `image`, and add their gradient to `image.grad`."""
        # An evaluation may take minutes, so a signal may interrupt it. The run's state then stays
        # as it was before the evaluation.
        with interruptible():
            losses = objective.evaluate(image)
        is_replayed = isinstance(objective, CapturedObjective) and objective.is_captured
        self.captured = is_replayed or (self._is_evaluated and self.captured)
        self._is_evaluated = True
        return losses

    def _chosen_tile(self, scale: Scale) -> int | None:
        """Return the side of a scale's tiles in pixels, or None for the whole picture at once."""
        if self.graph is not None:  # the graph holds the memory that a whole picture takes
            return None
        tile = plan_memory(self.job, scale, free_bytes(self.job.device)).tile
        if self.at.largest_tile is None:
            return tile
        return min(tile or max(scale.size), self.at.largest_tile)

    def _next_start(self, scale: Scale) -> Tensor:
        """Return the picture (1, 3, h, w) from which a scale starts."""
        wraps = self.job.criterion.seamless
        return self.job.start.enlarged(self.at.image, self.start, scale.size, wraps=wraps)

    def _begin(self, scale: Scale, start: Tensor) -> Descent:
        """Return a new descent for the steps of a scale, which starts from the picture `start`."""
        protection = self.pictures.protection
        if protection is not None:
            protection = protection.resized(scale.size)
        descent = Descent(start, self.job.optimizer, self.at.steps_left(scale), protection)
        descent.warm_start(self.at.momentum)
        return descent

    def _make_objective(self, scale: Scale, start: Tensor) -> Evaluates:
        """Return the objective of a scale that starts from `start`."""
        pictures = self._recolored.resized(scale.size, scale.style_sizes)
        if self.at.index or pictures.start is not None:
            pictures = replace(pictures, start=start)
        if pictures.sources and pictures.anchor is None and self.job.start.name == "content":
            pictures = replace(pictures, anchor=held(resize(self.start, scale.size)))
        objective = objective_of(self.job, pictures, self.at.tile, self.graph)
        self.graph = None
        return objective

    def _end(self, descent: Descent, objective: Evaluates) -> None:
        """Keep a scale's result and go to the next scale; if `descent` gave up, set `problem`."""
        if descent.ending.problem is not None:
            self.problem = descent.ending.problem
            return
        image = descent.final()
        self.at.image, losses = descent.result(image, self._evaluate(objective, image))
        self.at.momentum = descent.momentum()
        self.at.index, self.at.spent = self.at.index + 1, 0
        self._descent = self._objective = None  # the next scale needs their memory
        if self.at.index == len(self.scales):
            self.at.losses = losses.as_floats()
            self.graph = objective if isinstance(objective, CapturedObjective) else None

    def _halve_tile(self) -> None:
        """Halve the side of tiles for the next steps, or set `problem` if that is impossible."""
        side = self.at.tile or max(self.scales[self.at.index].size)
        try:
            self.at.tile = halved_tile(self.job, side, is_first=self.at.largest_tile is None)
        except UserError as error:
            self.problem = str(error)
            return
        self.at.largest_tile = self.at.tile
        self._objective = None  # the next step makes one

    def result(self) -> Outcome:
        """Return the best picture so far, at the size of the pastiche.

        The losses belong to the optimised picture, before `colored` changes its colours. Before the
        run's end, the result has no losses.
        """
        image, losses = self.at.image, self.at.losses or {}
        if not losses:
            scale = self.scales[-1]
            if self._descent is not None:
                image = self._descent.best.picture()
            image = resize(image, scale.size)
            if (protection := self.pictures.protection) is not None:
                image = protection.resized(scale.size).hold(image)
        image = image.float().cpu()
        made = (losses, self.at.steps, self.captured, self.problem)
        return Outcome(image, self.colored(image), *made)

    def steer(self, job: Job) -> None:
        """Continue with another job of the same content image, from the best picture so far.

        The run goes on at the beginning of the new job's smallest scale that is at least as large
        as the current scale, or else of its largest scale. The steps made so far count as steps of
        the new job: first as those of its smaller scales, which are skipped, then as those of the
        scale at which it goes on. This scale makes the rest of its steps, but at least
        `progress.FEW`, or all if it has fewer.
        L-BFGS's history belongs to the old objective and is dropped; Adam's moments are kept.

        Raises UserError if the content has another aspect ratio. Settings that cannot work raise
        UserError at the next step (see `Objective`).
        """
        (height, width), own = job.pictures.content.shape[2:], self.pictures.content.shape[2:]
        if abs(height * own[1] - width * own[0]) > max(height, width, *own):  # not only rounding
            raise UserError("the content image has another shape now; start another run")
        if (descent := self._descent) is not None:
            if descent.is_over and self._objective is not None:
                self._end(descent, self._objective)
            else:
                self.at.image, self.at.momentum = descent.best.picture(), descent.momentum()
        if self._side_left is None:  # not None if no step was made since the last `steer`
            self._side_left = max(self.scales[min(self.at.index, len(self.scales) - 1)].size)
        self._take(job)
        if job.optimizer.name != "adam":
            self.at.momentum = None
        self._descent = self._objective = self.problem = self.graph = None
        self.at.go_to(self.scales, self._side_left)

    def _take(self, job: Job) -> None:
        """Set the job, its scales, pictures, colours and start."""
        self.job, self.scales = job, job.scales
        self.captured, self._is_evaluated = job.captured, False
        self.pictures = job.pictures.to(job.on_device(job.pictures.content))
        self._recolored = job.colors.before(self.pictures)
        self.colored = job.colors.after(self.pictures)  # picture -> picture in the job's colours
        self.start = job.on_device(job.start.picture(self._recolored))

    def state_dict(self) -> dict[str, Any]:
        """Return the run's state. Call this between two iterates, or after an interruption.

        The state holds plain values and tensors. Tensors are not copied: later steps change them.
        """
        descent = self._descent
        return {
            **self.at.state_dict(),
            "start": None if descent is None else descent.canvas.start,
            "descent": None if descent is None else descent.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from the `state` of a run of the same job, with its tensors on the device.

        Raises LookupError, TypeError, AttributeError or ValueError if `state` has another form.
        """
        self.at.load_state_dict(state, len(self.scales))
        self._descent = self._objective = None
        if state["descent"] is not None:
            scale = self.scales[self.at.index]
            check_like(state["start"], self.start.new_empty(1, 3, *scale.size))
            self._descent = self._begin(scale, state["start"])
            self._descent.load_state_dict(state["descent"])


def objective_of(
    job: Job, pictures: Inputs, tile: int | None, graph: CapturedObjective | None = None
) -> Evaluates:
    """Return the objective of `job` for pictures of one scale, in tiles unless `tile` is None.

    It is `graph`, with new targets, if that is possible; see `CapturedObjective.follow`.
    """
    compared = (job.extractor, job.mode, job.criterion, pictures)
    if tile is not None:
        return TiledObjective(*compared, tile, job.styles)
    whole = Objective(*compared, job.styles)
    if not job.captured:
        return whole
    whole.weights_as_tensors()
    if graph is not None and graph.follow(whole):
        return graph
    return CapturedObjective(whole, partial(captured_on_cuda, job.device))
