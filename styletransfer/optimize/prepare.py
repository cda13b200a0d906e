"""From a config to a job: everything that a style transfer needs, loaded and checked."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from styletransfer.config import StyleTransferConfig
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.modes import get_loss_mode
from styletransfer.objective.limits import check_size
from styletransfer.objective.terms import loss_layers
from styletransfer.optimize.job import Job
from styletransfer.optimize.layout import choose_layout
from styletransfer.optimize.schedule import STARTS, check_run, parse_tile, pyramid
from styletransfer.pictures import images
from styletransfer.system.devices import choose_device, choose_precision
from styletransfer.system.memory import free_bytes

logger = logging.getLogger(__name__)

# Enlarging a picture of fewer pixels a side gives a blur: nothing to take content or style from.
SMALLEST_SIDE = 8


def prepare(config: StyleTransferConfig, given: Mapping[str, images.Picture] | None = None) -> Job:
    """Load and check everything that `config` names; cheap checks come first.

    Args:
        config: what is asked for.
        given: pictures in memory, by the keys whose files they stand for: content, style, init.

    Raises:
        UserError: anything that would make the run fail, in one line.
    """
    check_run(config)
    layers = loss_layers(config.objective)
    mode = get_loss_mode(config.loss_mode.name)
    device = choose_device(config.device)
    dtype = choose_precision(config.precision, device)
    if config.output is not None:
        check_output(config.output, config)
    given = given or {}
    content, style = load_pictures(config, given)
    start = None
    if "init" in given:
        start = images.fill_transparent(given["init"])
    elif config.init not in STARTS:
        if not os.path.exists(config.init):
            raise UserError(
                f"unknown init {config.init!r}; choose content, style, noise or a picture file"
            )
        start = images.fill_transparent(images.read(config.init))
    extractor = build_features(config.features, config.seed)
    check_layers(extractor, config, content.rgb, style)
    extractor = optimize_for_inference(extractor.ended_at(layers), device, dtype)
    job = Job(
        config=config,
        extractor=extractor,
        mode=mode,
        content=images.fill_transparent(content),
        style=style,
        start=start,
        alpha=content.alpha,
    )
    layout = choose_layout(job, job.scales[-1], free_bytes(device))
    if layout.problem is not None and parse_tile(config.tile) == 0:
        raise UserError(layout.problem)
    if layout.problem is not None:
        logger.warning("%s; trying all the same", layout.problem)
    return job


def check_output(output: str, config: StyleTransferConfig) -> None:
    """Fail now if the pastiche could not be written later, or would replace what it is made of.

    Raises:
        UserError: in one line.
    """
    images.check_writable(output)
    for key, name in (("content", config.content), ("style", config.style), ("init", config.init)):
        if os.path.exists(output) and os.path.exists(name) and os.path.samefile(output, name):
            raise UserError(f"output={output} would overwrite the {key} picture; choose another")


def load_pictures(
    config: StyleTransferConfig, given: Mapping[str, images.Picture] | None = None
) -> tuple[images.Picture, Tensor]:
    """Return the content picture and the style image (1, 3, h, w), at the pastiche's scale.

    The style's transparent margins are cut off, and its visible colours spread into what
    transparency is left, so that no invisible colour enters a Gram matrix.

    Raises:
        UserError: a picture that cannot be read, is fully transparent, or is next to nothing.
    """
    given = given or {}
    content = given["content"] if "content" in given else images.read(config.content)
    style = given["style"] if "style" in given else images.read(config.style)
    style = images.crop_transparent(style)
    for picture in (content, style):
        height, width = picture.size
        if min(height, width) < SMALLEST_SIDE:
            raise UserError(
                f"{picture.name} shows {width} x {height} pixels; each side needs at least "
                f"{SMALLEST_SIDE}"
            )
    content = images.resize_picture(content, config.size)
    return content, images.fill_transparent(images.resize_picture(style, config.size))


def check_layers(
    extractor: FeatureExtractor, config: StyleTransferConfig, content: Tensor, style: Tensor
) -> None:
    """Check that the layers exist and that both pictures reach them at the coarsest scale.

    Raises:
        UserError: an unknown layer, or a picture that is too small; see `Objective`.
    """
    ended = extractor.ended_at(loss_layers(config.objective))
    coarsest = pyramid(config.size, config.scales, config.steps)[0]
    for image, name in ((content, config.content), (style, config.style)):
        height, width = images.scaled_size((image.shape[2], image.shape[3]), coarsest)
        check_size(ended, (height, width), Path(name).name)
