"""From a content and a style image to a pastiche: scales, optimiser, steps."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from styletransfer.config import StyleTransferConfig
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.modes import LossMode
from styletransfer.objective.resilient import make_objective
from styletransfer.objective.terms import Losses
from styletransfer.optimize.descent import ADVICE, Descent
from styletransfer.optimize.layout import choose_layout
from styletransfer.optimize.schedule import (
    check_run,
    enlarge,
    pyramid,
    starting_picture,
    steps_at_scale,
)
from styletransfer.pictures.images import resize, scaled_size
from styletransfer.system.memory import free_bytes, is_out_of_memory

logger = logging.getLogger(__name__)


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
    start = starting_picture(config, content, style) if start is None else start
    start = image = start.to(weight.device, dtype)
    size = scaled_size((content.shape[2], content.shape[3]), config.size)
    momentum: dict[str, Any] | None = None
    descent: Descent | None = None
    limit: int | None = None
    shortened = False
    done = 0
    try:
        for index, side in enumerate(sides):
            height, width = scaled_size((content.shape[2], content.shape[3]), side)
            style_size = scaled_size((style.shape[2], style.shape[3]), side)
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
                enlarge(image, start, (height, width), config.init),
                replace(config.optimizer, history=layout.history),
            )
            descent.warm_start(momentum)
            for losses_now, picture in descent.run(steps_at_scale(config.steps, len(sides), index)):
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
        if not is_out_of_memory(error):
            raise
        picture = image if descent is None else descent.best_picture()
        tiles = "" if mode.name == "autograd_function" else " or loss_mode=autograd_function"
        problem = f"memory ran out; choose a smaller size{tiles}"
        return Result(resize(picture, size).float().cpu(), {}, done, problem=problem)
