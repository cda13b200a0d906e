"""From a content and a style image to a pastiche: scales, optimiser, steps."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from styletransfer.config import OptimizerConfig, StyleTransferConfig
from styletransfer.elastic import ElasticObjective, make_objective
from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.images import fit, resize
from styletransfer.layout import choose_layout, parse_tile
from styletransfer.losses import LossMode
from styletransfer.memory import free_bytes, is_shortage
from styletransfer.objective import Losses, Objective
from styletransfer.tiling import TiledObjective

logger = logging.getLogger(__name__)

# The pyramid ends where the longer side would fall below this; VGG's deep taps see little there.
SMALLEST_SCALE = 128
# A pixel outside [0, 1] is drawn back by RANGE_WEIGHT / 2 * excess^2, in the scaled loss below.
RANGE_WEIGHT = 10.0
# Mean change of a pixel in L-BFGS's first step, which follows the bare gradient: one grey level.
FIRST_STEP = 1 / 255
# Losses are looked at this often, because a look waits for the device.
STEPS_BETWEEN_CHECKS = 10
# Fresh starts from the best picture after a loss that is not finite.
RESTARTS = 3
ADVICE = "lower optimizer.learning_rate or the weights, or choose precision=float32"
# Adam's decay rates: the usual first, a faster second, for a gradient that changes with the scale.
ADAM_BETAS = (0.9, 0.99)


@dataclass(frozen=True)
class Iterate:
    """One evaluated picture, as callbacks receive it.

    Attributes:
        step: 1 to `steps`, counted over all scales.
        steps: the number planned.
        scale: 1 to `scales`.
        scales: levels of the pyramid.
        losses: at `image`; reading them waits for the device.
        image: (1, 3, H, W), sRGB in [0, 1], detached; valid during the call.
    """

    step: int
    steps: int
    scale: int
    scales: int
    losses: Losses
    image: Tensor


Callback = Callable[[Iterate], None]


@dataclass(frozen=True)
class Result:
    """What `stylize` made.

    Attributes:
        image: the pastiche (1, 3, H, W), sRGB in [0, 1], float32, on the CPU.
        losses: name -> weighted loss of that very picture, with "total"; empty if it was
            interrupted or gave up.
        steps: optimiser steps made.
        interrupted: Ctrl-C ended it early.
        problem: one line saying why it gave up, or None.
    """

    image: Tensor
    losses: dict[str, float]
    steps: int
    interrupted: bool = False
    problem: str | None = None


def stylize(
    extractor: FeatureExtractor,
    mode: LossMode,
    content: Tensor,
    style: Tensor,
    config: StyleTransferConfig,
    *,
    start: Tensor | None = None,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Optimise a picture, coarse to fine, towards the content of one and the style of another.

    Args:
        extractor: the frozen network, on the device and in the dtype of the computation.
        mode: how losses reach the image's gradient.
        content: (1, 3, H, W), sRGB in [0, 1], of any size; the pastiche has its aspect ratio.
        style: (1, 3, h, w), sRGB in [0, 1], of any size.
        config: size, steps, scales, optimiser, objective, init and seed.
        start: (1, 3, h, w), the picture to begin with, if `config.init` does not say.
        callbacks: called with every evaluated iterate.

    Raises:
        UserError: settings that cannot work; see `Objective`.
    """
    check_run(config)
    weight = next(extractor.layers.parameters())
    dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
    content, style = (image.to(weight.device, dtype) for image in (content, style))
    sides = pyramid(config.size, config.scales, config.steps)
    image = starting_picture(config, content, style) if start is None else start
    image = image.to(weight.device, dtype)
    size = fit((content.shape[2], content.shape[3]), config.size)
    momentum: dict[str, Any] | None = None
    descent: Descent | None = None
    limit: int | None = None
    shortened = False
    done = 0
    try:
        for index, side in enumerate(sides):
            height, width = fit((content.shape[2], content.shape[3]), side)
            style_size = fit((style.shape[2], style.shape[3]), side)
            free = free_bytes(weight.device)
            layout = choose_layout(
                extractor, mode, config, (height, width), style_size, free, limit
            )
            if layout.history < config.optimizer.history and not shortened:
                shortened = True
                logger.warning("memory allows an L-BFGS history of %d", layout.history)
            objective = make_objective(
                extractor,
                mode,
                config.objective,
                resize(content, (height, width)),
                resize(style, style_size),
                layout.tile,
            )
            descent = Descent(
                objective,
                resize(image, (height, width)),
                replace(config.optimizer, history=layout.history),
            )
            descent.warm_start(momentum)
            for losses_now, picture in descent.run(share(config.steps, len(sides), index)):
                done += 1
                iterate = Iterate(done, config.steps, index + 1, len(sides), losses_now, picture)
                for callback in callbacks:
                    callback(iterate)
            if descent.problem is not None:
                picture = resize(descent.best_picture(), size)
                return Result(picture.float().cpu(), {}, done, problem=descent.problem)
            image, final = descent.finish()
            momentum = descent.momentum()
            # The next scale must not find the memory of this one taken.
            limit, descent = objective.tile if objective.halved else limit, None
            del objective
        losses = final.as_floats()
        problem = None if math.isfinite(losses["total"]) else f"the loss is not finite; {ADVICE}"
        return Result(image.float().cpu(), losses, done, problem=problem)
    except KeyboardInterrupt:
        picture = image if descent is None else descent.best_picture()
        return Result(resize(picture, size).float().cpu(), {}, done, interrupted=True)
    except (MemoryError, RuntimeError) as error:
        if not is_shortage(error):
            raise
        picture = image if descent is None else descent.best_picture()
        tiles = "" if mode.name == "autograd_function" else " or loss_mode=autograd_function"
        problem = f"memory ran out; choose a smaller size{tiles}"
        return Result(resize(picture, size).float().cpu(), {}, done, problem=problem)


class Descent:
    """The optimisation of one picture at one scale.

    The optimiser moves a point without bounds; the picture is that point clamped to [0, 1]. What
    is minimised is objective(clamp(point)) plus a small pull back to the range, a plain function
    of the point, so that nothing ever moves behind the optimiser's back.

    Args:
        objective: what to minimise.
        start: (1, 3, H, W), where to begin.
        config: the optimiser and its settings.
    """

    def __init__(
        self,
        objective: Objective | TiledObjective | ElasticObjective,
        start: Tensor,
        config: OptimizerConfig,
    ) -> None:
        self.objective, self.config = objective, config
        # Contiguous: torch's L-BFGS flattens gradients with view(-1).
        self.point = start.detach().clone(memory_format=torch.contiguous_format)
        self.point.requires_grad_()
        self.optimizer = make_optimizer(self.point, config)
        self.best = self.point.detach().clamp(0, 1)
        self.best_losses: Losses | None = None
        self.mean: Tensor | None = None
        self.restarts = 0
        self.problem: str | None = None
        self._seen: tuple[Losses, Tensor] | None = None

    def run(self, steps: int) -> Iterator[tuple[Losses, Tensor]]:
        """Make `steps` steps; yield the losses and the picture (1, 3, H, W) each one began with."""
        for step in range(steps):
            if not self._step():
                continue
            self.optimizer.param_groups[0]["lr"] = self.config.learning_rate
            losses, picture = self._remember(step)
            yield losses, picture
            last = step == steps - 1
            if (last or step % STEPS_BETWEEN_CHECKS == 0) and not self._is_finite(losses):
                self._restart()
            if self.problem is not None:
                return

    def finish(self) -> tuple[Tensor, Losses]:
        """Evaluate where the last step led; return the resulting picture and its losses."""
        if self.mean is not None:
            return self.mean, self.objective.evaluate(self.mean.clone().requires_grad_())
        self._closure()
        self._remember(step=0)
        assert self.best_losses is not None
        return self.best, self.best_losses

    def best_picture(self) -> Tensor:
        """Return the best picture so far (1, 3, H, W), in [0, 1]."""
        # An iterate that is not finite spoils the mean until the next check finds out.
        if self.mean is None or not self.mean.isfinite().all():
            return self.best
        return self.mean

    def momentum(self) -> dict[str, Any] | None:
        """Return Adam's moments, to be carried to the next scale; L-BFGS starts afresh there."""
        if self.config.name != "adam":
            return None
        return dict(self.optimizer.state[self.point]) or None  # none right after a restart

    def warm_start(self, momentum: dict[str, Any] | None) -> None:
        """Resize the moments of the scale before and go on with them."""
        if momentum is None:
            return
        size = (self.point.shape[2], self.point.shape[3])
        state = {"step": momentum["step"]}
        for key in ("exp_avg", "exp_avg_sq"):
            state[key] = torch.nn.functional.interpolate(momentum[key], size, mode="bilinear")
        self.optimizer.state[self.point] = state

    def _closure(self) -> Tensor:
        point = self.point.detach()
        image = point.clamp(0, 1).requires_grad_()
        losses = self.objective.evaluate(image)
        assert image.grad is not None
        excess = point - image.detach()
        # Times the number of pixels: torch's L-BFGS drops curvatures below an absolute 1e-10, and
        # Adam adds an absolute 1e-8 to its denominator.
        count = image.numel()
        gradient = image.grad.mul_(count).masked_fill_(excess != 0, 0)
        self.point.grad = gradient.add_(excess, alpha=RANGE_WEIGHT)
        self._seen = losses, image.detach()
        return losses.total * count + RANGE_WEIGHT / 2 * excess.square().sum()

    def _remember(self, step: int) -> tuple[Losses, Tensor]:
        """Keep the best picture and the running mean without waiting for the device."""
        assert self._seen is not None
        losses, picture = self._seen
        if self.best_losses is None:
            self.best_losses = losses
        better = losses.total < self.best_losses.total
        # After a start that was not finite, anything finite is better.
        better |= losses.total.isfinite() & ~self.best_losses.total.isfinite()
        self.best = torch.where(better, picture, self.best)
        self.best_losses = Losses(
            {k: torch.where(better, v, self.best_losses.terms[k]) for k, v in losses.terms.items()}
        )
        if self.config.averaging > 0:
            # The first steps weigh as in a plain mean, so that the start fades soon.
            decay = min(self.config.averaging, step / (step + 1))
            self.mean = picture if self.mean is None else torch.lerp(picture, self.mean, decay)
        return losses, picture

    def _step(self) -> bool:
        """Make one step; where memory runs out, begin again with half the history: return False.

        The objective has tried to do with less by then.
        """
        try:
            self.optimizer.step(self._closure)  # type: ignore[arg-type]
            return True
        except (MemoryError, RuntimeError) as error:
            kept = len(self.optimizer.state[self.point].get("old_dirs", []))
            if not is_shortage(error) or kept < 2:
                raise
        logger.warning("memory ran out; going on with an L-BFGS history of %d", kept // 2)
        self.config = replace(self.config, history=kept // 2)
        self._begin_again()
        return False

    def _is_finite(self, losses: Losses) -> bool:
        return bool(torch.isfinite(losses.total) & torch.isfinite(self.point).all())

    def _restart(self) -> None:
        if self.restarts == 0:
            logger.warning("the loss is no longer finite; going on from the best picture so far")
        if self.restarts == RESTARTS:
            self.problem = f"the loss was not finite {RESTARTS + 1} times; {ADVICE}"
        self.restarts += 1
        self._begin_again()

    def _begin_again(self) -> None:
        """Forget all but the best picture."""
        with torch.no_grad():
            self.point.copy_(self.best)
        self.mean = None
        self.optimizer = make_optimizer(self.point, self.config)


def make_optimizer(point: Tensor, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Return torch's optimiser for one picture; each of its steps makes one evaluation.

    Raises:
        UserError: an unknown optimiser, or settings out of range.
    """
    if config.name == "adam":
        return torch.optim.Adam([point], lr=config.learning_rate, betas=ADAM_BETAS)
    if config.name == "lbfgs":
        # Tolerances of 0: torch's are absolute, and gradients of small weights would meet them.
        # The rate is that of the first step alone, whose L1 length torch makes lr: its own choice,
        # 1 for the whole picture, is so short that rounding fills the first curvature pair.
        return torch.optim.LBFGS(
            [point],
            lr=FIRST_STEP * point.numel(),
            max_iter=1,
            history_size=config.history,
            tolerance_grad=0.0,
            tolerance_change=0.0,
        )
    raise UserError(f"unknown optimizer {config.name!r}; choose lbfgs or adam")


def check_run(config: StyleTransferConfig) -> None:
    """Check the numbers of a run.

    Raises:
        UserError: naming the key, its value and what it may be.
    """
    parse_tile(config.tile)
    optimizer = config.optimizer
    if optimizer.name not in ("lbfgs", "adam"):
        raise UserError(f"unknown optimizer {optimizer.name!r}; choose lbfgs or adam")
    for key, value, low in (
        ("size", config.size, 1),
        ("steps", config.steps, 1),
        ("scales", config.scales, 0),
        ("seed", config.seed, 0),
        ("optimizer.history", optimizer.history, 1),
    ):
        if value < low:
            raise UserError(f"{key}={value} must be {low} or more")
    if config.seed >= 2**63:
        raise UserError(f"seed={config.seed} must be below 2^63")
    if not 0 < optimizer.learning_rate < float("inf"):
        raise UserError(f"optimizer.learning_rate={optimizer.learning_rate} must be above 0")
    if not 0 <= optimizer.averaging < 1:
        raise UserError(f"optimizer.averaging={optimizer.averaging} must be 0 or more, below 1")


def pyramid(size: int, scales: int, steps: int) -> list[int]:
    """Return the longer sides in pixels from coarse to fine, sqrt(2) apart, ending with `size`.

    Args:
        size: longer side of the pastiche.
        scales: number of levels, or 0 for as many as stay at or above SMALLEST_SCALE.
        steps: at least one per level, so there are never more levels than steps.
    """
    sides = [size]
    while len(sides) < min(scales or steps, steps):
        side = round(size / 2 ** (len(sides) / 2))
        if side < (1 if scales else SMALLEST_SCALE):
            break
        sides.append(side)
    return sides[::-1]


def share(steps: int, scales: int, index: int) -> int:
    """Return the steps of scale `index`: an even share, the remainder going to the finest."""
    return steps // scales + (1 if scales - index <= steps % scales else 0)


def starting_picture(config: StyleTransferConfig, content: Tensor, style: Tensor) -> Tensor:
    """Return the picture (1, 3, h, w) that `init` content, style or noise names, before resizing.

    Raises:
        UserError: `init` is none of these three.
    """
    if config.init == "content":
        return content
    if config.init == "style":
        return style
    if config.init == "noise":
        generator = torch.Generator().manual_seed(config.seed)
        return torch.rand(content.shape, generator=generator, dtype=content.dtype)
    raise UserError(f"unknown init {config.init!r}; choose content, style, noise or a picture file")
