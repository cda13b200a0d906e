"""A style transfer, ready to run: pictures, network, loss mode and settings."""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from styletransfer.config import StyleTransferConfig
from styletransfer.features import FeatureExtractor
from styletransfer.job.schedule import Scale, make_scale, make_scales
from styletransfer.modes import LossMode
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.targets import StyleTargets
from styletransfer.system.processes import Processes


@dataclass(frozen=True)
class Job:
    """A style transfer, ready to run."""

    config: StyleTransferConfig  # what was asked for
    extractor: FeatureExtractor  # the network, on its device, in its precision
    mode: LossMode  # how losses reach the image's gradient
    # content, styles and regions, of any size; the pastiche has the content's aspect ratio.
    pictures: Inputs
    # (1, 3, h, w), the picture to begin with, or None for what `config.init` names.
    start: Tensor | None = None
    alpha: Tensor | None = None  # (1, 1, H, W), the content's transparency, or None
    # Of `style_targets_of` for a job of one scale, or None to have them made.
    styles: StyleTargets | None = None
    # That share the work, each with a job like this one.
    processes: Processes = field(default_factory=Processes)

    @cached_property
    def criterion(self) -> Criterion:
        """What pictures are compared by, at every scale."""
        return Criterion.of(self.config.objective)

    @cached_property
    def scales(self) -> list[Scale]:
        """The levels of the pyramid, coarse to fine."""
        return make_scales(self.config, self.pictures)

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.extractor.parameters()).device

    @property
    def precision(self) -> str:
        """That of the network, such as "bfloat16"."""
        return str(self.extractor.dtype).removeprefix("torch.")

    def pictures_at(self, side: int) -> Inputs:
        """Return the pictures as a run has them where its longer side is `side` pixels."""
        scale = make_scale(self.config, self.pictures, side, steps=0)
        moved = self.pictures.to(self.on_device(self.pictures.content))
        return moved.resized(scale.size, scale.style_sizes)

    def on_device(self, image: Tensor) -> Tensor:
        """Return `image` as a run computes with it: on the device, at least in float32."""
        exact = self.extractor.dtype == torch.float64
        return image.to(self.device, torch.float64 if exact else torch.float32)
