"""Tries a run's settings before it starts: estimates its time, or paints a small picture.

These functions run in the process of `reader.py`.
"""

from collections.abc import Mapping
from dataclasses import replace
from os.path import isfile
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError, about
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.settings import TrainConfig, each
from styletransfer.studio.controls import SOURCE
from styletransfer.studio.reader import QUALITY, SIDES, age_of, has_margins, photograph, sketcher

# TRIAL, TRIAL_STEPS: longer side in pixels, and number of steps, of a picture that `trial` paints.
TRIAL, TRIAL_STEPS = 112, 15
# GREY: approximate longer side in pixels of the grey pictures that `check` uses in place of real
# ones. _prepared holds the last job that `check` prepared; the next job reuses its extractor.
GREY = 256
_prepared: dict[str, Any] = {}
UNLIKE = (
    "This photograph and the style seem to show different things. A painting should follow its "
    "photograph line for line."
)


def trial(config: TrainConfig) -> bytes:
    """Paint a small picture in a few steps, to compare presets; return it as a JPEG.

    (UserError: a picture cannot be read, or a setting is wrong.)
    """
    from styletransfer.job.prepare import prepare
    from styletransfer.optimize.run import Run
    from styletransfer.pictures.convert import jpeg, to_image
    from styletransfer.pictures.images import Picture

    photo = photograph(config.content, age_of(config.content), SIDES[0])
    small = replace(config, size=TRIAL, steps=TRIAL_STEPS, init="content", output=None)
    given: dict[str, Any] = {"content": Picture(photo, name=config.content)}
    run = Run(prepare(small, given, like=_prepared.get("job")))
    return jpeg(to_image(run.complete().picture), QUALITY)


def check(config: TrainConfig, sizes: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """Check a run's settings on small grey pictures, without painting (UserError: wrong settings).

    `sizes` maps the paths in `content`, `style` and `style_source` to (width, height). Of these
    files, only photographs `style_source` and their paintings are read. The files of regions, of
    the mask and of `style_detail` are also read.

    Return "work", the pixels of all steps together, as `guide.work` counts them. With one
    photograph `style_source` return instead "warning", a line, or None if it fits its painting;
    with several, or a frame of a film, return {}.
    """
    import torch

    from styletransfer.copying.paired import fits
    from styletransfer.job.choices import Choices
    from styletransfer.job.memory import check_room
    from styletransfer.job.prepare import prepare
    from styletransfer.job.sources import files_of
    from styletransfer.pictures.images import Picture
    from styletransfer.pictures.masks import check_aspect
    from styletransfer.studio import guide

    choices = Choices.of(config)

    def grey(path: str, level: float = 0.5) -> Picture:
        return Picture(torch.full((1, 3, *_small_size(*sizes[path])), level), name=path)

    paths, sources = files_of("style", config.style), each(config.style_source)
    styles = [grey(path) for path in paths]
    given: dict[str, Any] = {"content": grey(config.content), "style": styles}
    for source, path in zip(sources, paths, strict=False):  # `prepare` refuses unequal lengths
        with about(SOURCE):
            if source == path:
                raise UserError("choose the photograph here, and not the painting itself")
            check_aspect(sizes[source][::-1], sizes[path][::-1], "the photograph")
            if has_margins(path, age_of(path)):
                raise UserError("the style has transparent margins; crop both pictures alike")
    if sources:
        given[SOURCE] = [grey(path, level=0.25) for path in paths[: len(sources)]]
    width, height = sizes[config.content]
    check_room(choices, (height, width), len(styles) + (config.style_detail is not None))
    job = prepare(replace(config, init="content"), given, enlarge=False, like=_prepared.get("job"))
    _prepared["job"] = job
    if sources:
        if len(sources) > 1 or not isfile(sources[0]):  # reading frames of a film would take long
            return {}
        seen = [photograph(one, age_of(one), GREY) for one in (sources[0], paths[0])]
        return {"warning": None if fits(job.extractor, *seen) else UNLIKE}
    return {"work": sum(scale.steps * guide.work(scale) for scale in job.scales)}


def _small_size(width: int, height: int) -> tuple[int, int]:
    """Return the (height, width) of the grey picture that stands for a picture of this size.

    The longer side has GREY pixels, or more if the shorter side would be too short. Rounding
    changes a side by half a pixel, and `check_aspect` allows one for a mask or a label picture.
    """
    from styletransfer.job.sources import SMALLEST_SIDE

    factor = min(1, max(GREY / max(width, height), SMALLEST_SIDE / min(width, height)))
    return round(height * factor), round(width * factor)


def check_film(config: ApplyConfig, size: tuple[int, int]) -> dict[str, Any]:
    """Check settings with which `apply` paints a photograph or film of (width, height) `size`.

    Return an empty dict. (UserError: weights or regions are wrong, or the size is too small or too
    large.)
    """
    from styletransfer.networks.apply.division import Division
    from styletransfer.networks.apply.painter import blend

    painter, styles = sketcher(), list(each(config.style))
    painter.config = config
    blend(config, styles, named=False)
    Division(config, len(styles))
    painter.size(size[::-1], Path(config.input))
    return {}
