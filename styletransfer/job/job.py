"""A job: a style transfer that is ready to run."""

from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.job.colors import Colors
from styletransfer.job.scales import Scale
from styletransfer.job.start import Start
from styletransfer.losses import LossMode
from styletransfer.objective import Criterion, Evaluates
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.targets import Targets
from styletransfer.objective.tiled import TiledObjective
from styletransfer.objective.whole import Objective
from styletransfer.settings import FeaturesConfig, OptimizerConfig


@dataclass(frozen=True)
class FeatureNetwork:
    """A feature network says how to build a job's extractor; equal ones give equal extractors."""

    features: FeaturesConfig
    seed: int  # of random weights
    layers: tuple[str, ...]  # layers whose features the losses compare
    device: torch.device
    dtype: torch.dtype

    def build(self) -> FeatureExtractor:
        """Return the network up to its deepest layer, on its device, in its dtype.

        UserError: weights cannot be read or do not fit, or a layer is unknown.
        """
        network = build_features(self.features, self.seed).ended_at(self.layers)
        return optimize_for_inference(network, self.device, self.dtype)


@dataclass(frozen=True)
class Job:
    """A job is a style transfer that is ready to run."""

    extractor: FeatureExtractor  # the network, on its device, in its precision
    network: FeatureNetwork  # how `extractor` was built
    mode: LossMode  # how losses are computed and differentiated
    criterion: Criterion  # the losses and their weights, at every scale
    # content, styles and regions, of any size; the pastiche has the content's aspect ratio.
    pictures: Inputs
    scales: tuple[Scale, ...]  # the levels of the pyramid, coarse to fine
    start: Start  # the picture from which the run starts
    colors: Colors  # the colours before and after the run
    optimizer: OptimizerConfig  # how the pixels are changed
    tile: int | None  # side of a tile in pixels; 0 to choose it; None for no tiles
    # Result of `style_targets_of` for a job of one scale, or None to compute it.
    styles: Targets | None = None

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return next(self.extractor.parameters()).device

    @property
    def precision(self) -> str:
        """The network's dtype, such as "bfloat16"."""
        return self.extractor.precision

    def full_size(self) -> Inputs:
        """Return the pictures on the device, at the finest scale, before the run's first step."""
        scale = self.scales[-1]
        moved = self.pictures.to(self.on_device(self.pictures.content))
        return self.colors.before(moved.resized(scale.size, scale.style_sizes))

    def on_device(self, image: Tensor) -> Tensor:
        """Return `image` on the device, in float64 if the network is, else in float32."""
        exact = self.extractor.dtype == torch.float64
        return image.to(self.device, torch.float64 if exact else torch.float32)

    def objective(self, pictures: Inputs, tile: int | None) -> Evaluates:
        """Return the objective for pictures at one scale, in tiles unless `tile` is None."""
        compared = (self.extractor, self.mode, self.criterion, pictures)
        if tile is None:
            return Objective(*compared, self.styles)
        return TiledObjective(*compared, tile, self.styles)
