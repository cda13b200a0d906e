"""From settings to a job: everything that a style transfer needs, loaded and checked."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from styletransfer.features import FeatureExtractor
from styletransfer.job.choices import Choices
from styletransfer.job.job import Job
from styletransfer.job.load import load
from styletransfer.job.memory import plan_memory
from styletransfer.job.regions import tell_vanished
from styletransfer.job.scales import Scale
from styletransfer.job.sources import Sources, files_read
from styletransfer.objective import check_size
from styletransfer.pictures import images
from styletransfer.settings import StyleTransferConfig
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
    choices = Choices.of(config)  # first, because its checks are cheap
    if config.output is not None:
        images.check_writable(config.output)
        check_outputs([config.output], files_read(config))
    pictures = load(choices, Sources.read(config, choices.pyramid, given), enlarge=enlarge)
    if like is not None and like.network == choices.network:
        extractor = like.extractor
    else:
        extractor = choices.network.build()
    job = choices.job(extractor, pictures)
    check_smallest(job.extractor, job.scales[0], pictures.names)
    if any(region.weights is not None for region in pictures.regions):
        tell_vanished(job)
    plan_memory(job, job.scales[-1], math.inf)  # raises UserError if the tile is not allowed
    return job


def check_smallest(extractor: FeatureExtractor, coarsest: Scale, names: Sequence[str]) -> None:
    """Raise UserError if a picture is too small for the network at the coarsest scale.

    `names` are those of the content image and of each style image.
    """
    for size, name in zip((coarsest.size, *coarsest.style_sizes), names, strict=True):
        check_size(extractor, size, Path(name).name)
