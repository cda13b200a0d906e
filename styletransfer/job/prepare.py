"""From a config to a job: everything that a style transfer needs, loaded and checked."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.job import DEEPEST, Job, make_scales, parse_tile, pastiche_size
from styletransfer.job.load import files_read, load
from styletransfer.job.memory import plan_memory
from styletransfer.losses import LOSS_MODES
from styletransfer.objective import Criterion, check_size
from styletransfer.objective.inputs import Inputs
from styletransfer.pictures import images
from styletransfer.settings import StyleTransferConfig
from styletransfer.system.devices import choose_device, choose_precision
from styletransfer.system.files import check_outputs


def prepare(
    config: StyleTransferConfig,
    given: Mapping[str, Any] | None = None,
    *,
    enlarge: bool = True,
    like: Job | None = None,
) -> Job:
    """Load and check everything that `config` names; a UserError says what would make it fail.

    `given` holds pictures in memory that replace files; without `enlarge`, small pictures keep
    their size. The network of the job `like` is used again if the settings name the same network.
    """
    # Cheap checks come first.
    parse_tile(config.tile)
    criterion = Criterion.of(config.objective)
    layers = criterion.layers
    mode = LOSS_MODES[config.loss_mode.name]
    device = choose_device(config.device)
    dtype = choose_precision(config.precision, device)
    if config.output is not None:
        images.check_writable(config.output)
        check_outputs([config.output], files_read(config))
    pictures = load(config, given, enlarge=enlarge)
    same = ("features", "seed", "device", "precision")
    if like is not None and (
        like.criterion.layers != layers
        or any(getattr(like.config, key) != getattr(config, key) for key in same)
    ):
        like = None
    extractor = build_features(config.features, config.seed) if like is None else like.extractor
    check_layers(extractor, layers, config, pictures)
    if like is None:
        extractor = optimize_for_inference(extractor.ended_at(layers), device, dtype)
    job = Job(config, extractor, mode, pictures)
    if any(region.weights is not None for region in pictures.regions):
        from styletransfer.job.regions import tell_vanished

        tell_vanished(job)
    plan_memory(job, job.scales[-1], math.inf)  # raises UserError if the tile is not allowed
    return job


def check_layers(
    extractor: FeatureExtractor, layers: list[str], config: StyleTransferConfig, pictures: Inputs
) -> None:
    """Raise UserError for unknown layers, or pictures too small for them at the coarsest scale."""
    ended, (coarsest, *_) = extractor.ended_at(layers), make_scales(config, pictures)
    shape = (pictures.content.shape[2], pictures.content.shape[3])
    height, width = size = images.scaled_size(shape, config.size)
    if size != pastiche_size(config, shape, config.size):
        raise UserError(
            f"a seamless picture's sides must be multiples of {DEEPEST} pixels, not {width} x "
            f"{height}; choose another size, or a content that is cut so"
        )
    for size, name in zip((coarsest.size, *coarsest.style_sizes), pictures.names, strict=True):
        check_size(ended, size, Path(name).name)
