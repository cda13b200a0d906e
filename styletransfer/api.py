"""The Python API: a picture in one line, or step by step.

    from styletransfer import stylize
    stylize("photo.jpg", "painting.jpg", size=768).save("pastiche.png")

Keyword arguments are the keys of `styletransfer train`, which its `--help` explains, except those
for output and run folder. Nothing is printed without `progress=True`, and no file is written
without `Result.save`, except when torchvision's weights (features=vgg19 or vgg16) are downloaded:
this shows a bar and fills torch's cache. Notices go to the log. A notebook shows a `Result` and an
`Iterate` as pictures. torch's settings (threads, float32 precision, default dtype and device,
autocast) stay as the caller has set them.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.job.prepare import prepare
from styletransfer.job.sources import PICTURE_KEYS
from styletransfer.optimize import Iterate
from styletransfer.optimize.run import Run
from styletransfer.pictures import images
from styletransfer.pictures.convert import Source, as_picture, png, to_array, to_image
from styletransfer.runs.recipe import metadata, recipe
from styletransfer.settings import StyleTransferConfig, TrainConfig, each
from styletransfer.settings.changes import OF_A_RUN, changed, with_values
from styletransfer.settings.compose import compose, settings_of
from styletransfer.settings.registry import CONFIGS
from styletransfer.settings.schemas import GROUPS, check_choice, expanded
from styletransfer.settings.values import override
from styletransfer.system.progress import progress_bar
from styletransfer.train import train

__all__ = ["Iterate", "Result", "Stylization", "iterate", "stylize"]

P = ParamSpec("P")
T = TypeVar("T")
# The recipe has this value for a setting whose picture was given in memory, not as a file.
IN_MEMORY = "in memory"


def _in_own_state(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that calls `function` uncompiled and in torch's usual state."""

    @wraps(function)
    def work(*given: P.args, **named: P.kwargs) -> T:
        with _own_state():
            return function(*given, **named)

    @wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> T:
        # torch._dynamo takes a second to import. It is needed only if it is imported already.
        dynamo: Any = sys.modules.get("torch._dynamo")
        return (work if dynamo is None else dynamo.disable(work))(*given, **named)

    return called


@contextmanager
def _own_state() -> Iterator[None]:
    """Set torch's usual state in this context, and restore the caller's state afterwards.

    The usual state has gradients, no inference mode and no autocast; its default device is the CPU,
    and its default dtype is float32.
    """
    dtype = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(mode=False))
        stack.enter_context(torch.enable_grad())
        # Set only if needed: with a default device, every call of torch goes through Python first.
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        for kind in {"cpu", getattr(torch.accelerator.current_accelerator(), "type", "cpu")}:
            if torch.amp.is_autocast_available(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


@dataclass(frozen=True, eq=False)
class Result:
    """A result is a pastiche, its losses, and the number of steps."""

    image: Tensor  #: (1, 3, H, W), sRGB in [0, 1], float32, on the CPU
    #: Name -> weighted loss of the picture (before the setting `color` changes its colours), with
    #: "total"; empty if the run has not ended.
    losses: dict[str, float]
    steps: int  #: number of optimiser steps made
    alpha: Tensor | None = None  #: (1, 1, H, W), the content's alpha (1 is opaque), or None
    xmp: bytes = field(default=b"", repr=False)  #: metadata: how the picture was made

    def save(self, path: str | os.PathLike[str], *, recipe: bool = True) -> None:
        """Write a PNG, JPEG, WebP or TIFF file, by its extension; raise UserError if that fails.

        With `recipe`, metadata in the file say how the picture was made, as in the pictures of
        `styletransfer train`; an input that was no file is called "in memory" there.
        """
        xmp = self.xmp if recipe else b""
        images.write(expanded(path, written=True), self.image, self.alpha, xmp=xmp)

    def to_pil(self) -> Image.Image:
        """Return a Pillow image: RGBA if `alpha` is given, else RGB."""
        return to_image(self.image, self.alpha)

    def _repr_png_(self) -> bytes:
        return png(self.to_pil())

    def numpy(self) -> NDArray[np.float32]:
        """Return an array (H, W, 3), or (H, W, 4) with alpha, in [0, 1]."""
        return to_array(self.image, self.alpha)


@_in_own_state
def _next(steps: Iterator[Iterate]) -> Iterate | None:
    return next(steps, None)


class Stylization:
    """A stylization is an iterable of steps; after a loop ends early, another loop continues it."""

    def __init__(self, config: StyleTransferConfig, given: Mapping[str, Any]) -> None:
        self._config, self._given = config, given
        self._job = prepare(config, given)
        self._run = Run(self._job)
        # {"steered": True} after `steer`. `result` adds it to the recipe, which then says that no
        # command makes the same picture.
        self._steered: dict[str, bool] = {}

    def __iter__(self) -> Iterator[Iterate]:
        """Make the remaining steps; yield the evaluated picture of each step."""
        steps = iter(self._run)
        while True:
            iterate = _next(steps)
            if iterate is None:
                return
            yield iterate

    @_in_own_state
    def steer(self, **settings: Any) -> None:
        """Continue from the best picture so far with other settings; call it in a loop or after it.

            for step in run:
                if step.step == 40:
                    run.steer(objective={"content_weight": 0.5}, style="another.jpg")

        The run makes as many steps in all as before, or the new number `steps`. The current scale
        (picture size) makes at least 8 more steps, or all its steps if it has fewer, even if the
        total is then larger. L-BFGS's history belongs to the old objective and is dropped; Adam's
        moments are kept.

        Settings are as for `stylize`; `style` may be a picture or several. All picture files are
        read again, even if their paths stay the same.

        Raises UserError if the settings cannot work, or if a file is gone. The run is then
        unchanged.
        """
        values, pictures = _split(settings)
        given = {key: there for key, there in self._given.items() if key not in settings} | pictures
        config = changed(self._config, values)
        job = prepare(config, given, like=self._job)
        self._run.steer(job)
        self._config, self._given, self._job = config, given, job
        self._steered = {"steered": True}

    @_in_own_state
    def result(self) -> Result:
        """Return the best picture so far; UserError if memory ran out or the loss is not finite."""
        made = self._run.result()
        if made.problem is not None:
            raise UserError(made.problem)
        stopped = [] if made.losses else [override("stop_after", made.steps)]
        config, job = replace(self._config, captured=made.captured), self._job
        told = recipe(config, read=job.files, device=job.device) | self._steered
        xmp = metadata("train", told, *stopped)
        return Result(made.picture, made.losses, made.steps, self._job.pictures.alpha, xmp)


def stylize(
    content: Source,
    style: Source | Sequence[Source],
    *,
    callback: Callable[[Iterate], object] | None = None,
    progress: bool = False,
    **settings: Any,
) -> Result:
    """Paint the content of one picture in the style of another.

    Args:
        content: a path, a Pillow image, a NumPy array (H, W), (H, W, 3) or (H, W, 4), uint8 or
            floating in [0, 1], or a floating tensor (3, H, W) or (1, 3, H, W) in [0, 1]; sRGB.
            A shape such as "4:3" (width:height) is a grey picture, for `experiment="texture"`.
        style: such a picture, a list of pictures, or the path of a folder of pictures. With
            `style_source=PHOTO`, `style` is a painting of PHOTO, and the content is painted as
            PHOTO was.
        callback: called with an `Iterate` after each step.
        progress: show a bar; in a notebook also the picture, while it is painted.
        settings: any key of a style transfer, as on the command line: `size=768`,
            `optimizer="adam"`, `experiment="gatys_2016"`, `objective={"content_weight": 0.5}`, or
            `**{"objective.content_weight": 0.5}`. `init`, `style_detail` and
            `style_source` may also be pictures like `content`, and `protect` a mask: a grey
            picture, or an array (H, W) of bool or of floats in [0, 1]. `content_regions` and
            `style_regions` may be paths, images or arrays of label pictures, `content_regions` also
            "auto"; `region_styles` is a dict.

    Raises:
        UserError: the input is bad, or the run gave up; the message is one line.
    """
    if callback is not None and not callable(callback):
        raise UserError(f"callback={callback!r} is no function; give one that takes an Iterate")
    run = iterate(content, style, **settings)
    show = _preview() if progress else None
    with progress_bar(unit="step", disable=not progress) as bar:
        for step in run:
            bar.total = step.steps
            bar.update()
            if show is not None:
                show(step)
            if callback is not None:
                callback(step)
    return run.result()


def _preview() -> Callable[[Iterate], None] | None:
    """Return a function that shows the iterates of a run in a notebook's cell; None elsewhere.

    At most 20 pictures of a run are shown; each replaces the one before it. The last step removes
    the picture, because the cell then shows the result.
    """
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if "IPKernelApp" not in getattr(shell, "config", ()):  # IPython is absent, or in a terminal
        return None
    display: Any = importlib.import_module("IPython.display")
    handle = display.DisplayHandle()
    handle.display({"text/plain": ""}, raw=True)

    def show(step: Iterate) -> None:
        if step.step == step.steps:
            handle.update({"text/plain": ""}, raw=True)
        elif step.step * 20 // step.steps > (step.step - 1) * 20 // step.steps:
            handle.update(step)

    return show


@_in_own_state
def iterate(content: Source, style: Source | Sequence[Source], **settings: Any) -> Stylization:
    """Return a prepared style transfer; a loop over it makes its steps.

        run = iterate("photo.jpg", "painting.jpg")
        for step in run:
            print(step.step, step.steps, step.losses.total.item())
        run.result().save("pastiche.png")

    Args and raises: see `stylize`.
    """
    values, given = _split(settings | {"content": content, "style": style})
    return Stylization(_settings(values), given)


def _split(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return settings with IN_MEMORY instead of pictures in memory, and these pictures by key."""
    values, given = dict(settings), dict[str, Any]()
    for key in (key for key in PICTURE_KEYS if key in settings):
        value = settings[key]
        for image in each(value):
            if isinstance(image, Image.Image) and _is_closed(image):
                raise UserError(f"{key} is a Pillow image whose file is closed; open it again", key)
        names = [one if isinstance(one, str | os.PathLike) else IN_MEMORY for one in each(value)]
        if IN_MEMORY not in names:
            continue
        values[key] = names if isinstance(value, list | tuple) else IN_MEMORY
        if key in ("style", "style_source"):
            called = [f"{key} {n + 1}" for n in range(len(names))] if names[1:] else [key]
            given[key] = list(map(as_picture, each(value), called))
        elif key in ("content_regions", "style_regions", "protect"):
            given[key] = value
        else:
            given[key] = as_picture(value, key)
    return values, given


def _is_closed(image: Image.Image) -> bool:
    """Tell whether a Pillow image has lost its pixels, because it or its file was closed."""
    if getattr(image, "tile", None):  # the pixels are not read yet
        file = getattr(image, "fp", None)
        return file is None or bool(file.closed)
    try:
        return image.im is None
    except ValueError:
        return True


def _settings(asked: Mapping[str, Any]) -> StyleTransferConfig:
    """Return a config with the settings `asked`; others have the values of presets and defaults."""
    values = {key: value for key, value in asked.items() if (key, value) != ("experiment", None)}
    for key in values.keys() & {"output", *OF_A_RUN}:
        raise UserError(f"{key} is a key of the command line; see Result.save, callback")
    named = [key for key in GROUPS if not isinstance(values.get(key, {}), Mapping)]
    presets = {group: values.pop(group) for group in named}
    for group, name in presets.items():
        check_choice(group, name)
    words = [f"{group}={name}" for group, name in presets.items()]
    words += ["style_source=any"] * (values.get("style_source") is not None)  # selects a preset
    written = [file.stat().st_mtime_ns for file in sorted(CONFIGS.rglob("*.yaml"))]
    return with_values(_composed(tuple(words), tuple(written)), values)


@lru_cache(maxsize=16)
def _composed(words: tuple[str, ...], written: tuple[int, ...]) -> TrainConfig:
    """Return the settings that `words` compose; callers must not change them, as they are cached.

    `written` are the times of the preset files, so that a changed file is read again. Without the
    cache, Hydra and OmegaConf take most of the time of a small picture.
    """
    settings: TrainConfig = settings_of(compose(train, words))
    return settings
