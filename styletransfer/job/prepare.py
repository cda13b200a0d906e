"""From a config to a job: everything that a style transfer needs, loaded and checked."""

import logging
from pathlib import Path

from styletransfer.config import StyleTransferConfig
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.job.job import Job, check_run, make_scales, parse_tile
from styletransfer.job.layout import choose_layout
from styletransfer.job.load import Given, Loaded, files_read, load
from styletransfer.modes import LossMode, get_loss_mode
from styletransfer.objective.criterion import Criterion, check_size
from styletransfer.objective.inputs import vanished
from styletransfer.pictures import images
from styletransfer.system.devices import choose_device, choose_precision
from styletransfer.system.files import check_outputs
from styletransfer.system.memory import free_bytes
from styletransfer.system.processes import Processes

logger = logging.getLogger(__name__)


def prepare(
    config: StyleTransferConfig,
    given: Given | None = None,
    *,
    enlarge: bool = True,
    processes: Processes | None = None,
    like: Job | None = None,
) -> Job:
    """Load and check everything that `config` names; a UserError says what would make it fail.

    Args:
        given: pictures in memory, by the keys whose files they stand for.
        enlarge: False for a plan, which needs sizes, not pixels.
        processes: that share the work, each of which prepares the same.
        like: another job, whose network is taken if it is the same.
    """
    # Cheap checks come first.
    check_run(config)
    layers = Criterion.of(config.objective).layers
    mode = get_loss_mode(config.loss_mode.name)
    processes = processes or Processes()
    _check_shareable(config, mode, processes)
    device = choose_device(config.device)
    dtype = choose_precision(config.precision, device)
    if config.output is not None:
        images.check_writable(config.output)
        check_outputs([config.output], files_read(config))
    loaded = load(config, given, enlarge=enlarge)
    same = ("features", "seed", "device", "precision")
    if (
        like is not None
        and all(getattr(like.config, key) == getattr(config, key) for key in same)
        and like.criterion.layers == layers
    ):
        extractor = like.extractor
        check_layers(extractor, layers, config, loaded)
    else:
        extractor = build_features(config.features, config.seed)
        check_layers(extractor, layers, config, loaded)
        extractor = optimize_for_inference(extractor.ended_at(layers), device, dtype)
    job = Job(
        config=config,
        extractor=extractor,
        mode=mode,
        pictures=loaded.pictures,
        start=loaded.start,
        alpha=loaded.alpha,
        processes=processes,
    )
    _tell_vanished(job)
    problem = choose_layout(job, job.scales[-1], free_bytes(device)).problem
    if problem is not None and parse_tile(config.tile) == 0:
        raise UserError(problem)
    if problem is not None:
        logger.warning("%s; trying all the same", problem)
    return job


def check_layers(
    extractor: FeatureExtractor, layers: list[str], config: StyleTransferConfig, loaded: Loaded
) -> None:
    """Refuse unknown layers, and pictures that do not reach them at the coarsest scale."""
    ended, coarsest = extractor.ended_at(layers), make_scales(config, loaded.pictures)[0]
    for size, name in zip((coarsest.size, *coarsest.style_sizes), loaded.names, strict=True):
        check_size(ended, size, Path(name).name)


def _check_shareable(config: StyleTransferConfig, mode: LossMode, processes: Processes) -> None:
    """Refuse several processes that have nothing to share."""
    if processes.count == 1:
        return
    if not mode.is_closed_form:
        raise UserError(
            f"processes share the tiles of a picture, and {mode.name} has none; choose "
            "loss_mode=autograd_function, or start it without torchrun"
        )
    if parse_tile(config.tile) is None:
        raise UserError("tile=off leaves nothing to share; leave it out, or start without torchrun")


def _tell_vanished(job: Job) -> None:
    """Say which regions are too small for which layers, at the coarsest scale.

    Refused is a job all of whose regions are, for all layers, without a content loss either.
    """
    layers, propagation = list(job.criterion.styles), job.criterion.propagation
    if not layers:
        return
    is_any_seen = False
    for region in job.pictures_at(max(job.scales[0].size)).regions:
        gone: set[str] = set()
        for weights in (region.weights, *(part.weights for part in region.sources)):
            if weights is not None:
                gone.update(vanished(job.extractor, weights, layers, propagation))
        if gone:
            logger.warning(
                "the region %s is too small for %s at the coarsest scale, and is %s there",
                region.name or "that is not protected",
                ", ".join(layer for layer in layers if layer in gone),
                "averaged" if propagation == "inside" else "left out",
            )
        is_any_seen = (
            is_any_seen
            or region.weights is None
            or len(vanished(job.extractor, region.weights, layers, "average")) < len(layers)
        )
    if not job.criterion.contents and not is_any_seen:
        raise UserError(
            "what is left to paint is too small for every style layer at the coarsest scale; "
            "raise size, lower scales, or protect less"
        )
