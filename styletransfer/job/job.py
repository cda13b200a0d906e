"""A job: a style transfer that is ready to run."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from styletransfer.copying.copied import copied
from styletransfer.copying.paired import PARTS, correspondence
from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.job.colors import Colors
from styletransfer.job.scales import Scale
from styletransfer.losses import LossMode
from styletransfer.objective import Criterion
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.repetition import LARGE, repetition
from styletransfer.objective.targets import Targets
from styletransfer.pictures.images import resize, size_of
from styletransfer.settings import FeaturesConfig, OptimizerConfig
from styletransfer.system.progress import progress_bar
from styletransfer.system.signals import interruptible

# (setting, path) of every file that the settings name; a folder is replaced by its pictures.
InputFiles = list[tuple[str, str]]
# Values of `init` that are not the path of a picture.
STARTS = ("content", "style", "noise")
# Fraction of the starting picture's fine detail that each finer scale adds; see `enlarged`. With 0
# the final losses of three pictures were 3 to 14 % higher; with 1 no strokes covered the edges of
# the photograph.
DETAIL = 0.5


@dataclass(frozen=True)
class Start:
    """A start says from which picture a run starts, as the setting `init` asks."""

    name: str  # content, style or noise; for any other value, `Inputs.start` is the picture
    seed: int  # seed of the noise

    def picture(self, pictures: Inputs) -> Tensor:
        """Return the picture (1, 3, h, w) from which a run starts; it may have any size.

        In paired painting (there is a correspondence), init=content means the picture that is
        copied from the matched pixels of the style images.
        """
        content = pictures.content
        if pictures.start is not None:
            return pictures.start
        if self.name == "content" and (found := pictures.correspondence) is not None:
            return copied(found, pictures.styles)
        if self.name == "content":
            return content
        if self.name == "style":  # the first style of the first region
            return pictures.styles[pictures.regions[0].sources[0].style]
        generator = torch.Generator().manual_seed(self.seed)
        return torch.rand(content.shape, generator=generator, dtype=content.dtype)

    def enlarged(
        self, image: Tensor, start: Tensor, size: tuple[int, int], *, wraps: bool = False
    ) -> Tensor:
        """Return `image` at a finer scale, plus DETAIL times the finest detail of `start`.

        An enlarged picture is blurred, and the first ten steps would only make detail again. For
        init=noise nothing is added, because the detail of noise is useless. If the previous scale
        changed nothing, as with one picture for content and style, the result is `start` at the
        finer scale.

        `image` (1, 3, h, w) is the result of the previous scale, or `start` (1, 3, H, W) itself.
        `size` is the (height, width) of the finer scale. If `wraps`, each edge continues at the
        opposite edge.
        """
        larger = resize(image, size, wraps=wraps)
        if self.name == "noise":
            return larger
        coarse = resize(start, size_of(image), wraps=wraps)
        fine = resize(start, size, wraps=wraps)
        if torch.equal(image, coarse):
            return fine
        detail = fine - resize(coarse, size, wraps=wraps)
        return detail.mul_(DETAIL).add_(larger).clamp_(0, 1)


@dataclass(frozen=True)
class FeatureNetwork:
    """A feature network describes a job's extractor; equal descriptions build equal extractors."""

    features: FeaturesConfig
    seed: int  # seed of random weights
    layers: tuple[str, ...]  # layers whose features the losses compare
    device: torch.device
    dtype: torch.dtype

    def build(self) -> FeatureExtractor:
        """Return the network up to its deepest layer, on its device, in its dtype.

        Raises UserError if weights cannot be read or do not fit, or if a layer is unknown.
        """
        network = build_features(self.features, self.seed).ended_at(self.layers)
        return optimize_for_inference(network, self.device, self.dtype)


@dataclass(frozen=True)
class Chosen:
    """`Chosen` is the part of a job that depends on the settings but not on the pictures."""

    mode: LossMode  # how losses are computed and differentiated
    criterion: Criterion  # the losses and their weights, at every scale
    network: FeatureNetwork  # the network, its device and its precision
    start: Start  # says from which picture the run starts
    colors: Colors  # changes the colours of pictures before the run, and of the pastiche after it
    optimizer: OptimizerConfig  # the settings of the optimiser
    tile: int | None  # side of a tile in pixels; 0: chosen by the free memory; None: no tiles
    captured: bool  # whether evaluations of whole pictures are recorded and replayed
    files: InputFiles


@dataclass(frozen=True)
class Job(Chosen):
    """A job is a style transfer that is ready to run."""

    extractor: FeatureExtractor  # the result of `network.build`
    # Content, styles and regions, of any size; the pastiche has the content's aspect ratio.
    pictures: Inputs
    scales: tuple[Scale, ...]  # the levels of the pyramid, coarse to fine
    # Result of `style_targets_of` for a job of one scale; None to compute it at each scale.
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
        """Return the pictures on the device at the finest scale, recoloured by `Colors.before`."""
        scale = self.scales[-1]
        moved = self.pictures.to(self.on_device(self.pictures.content))
        return self.colors.before(moved.resized(scale.size, scale.style_sizes))

    def on_device(self, image: Tensor) -> Tensor:
        """Return `image` on the device, in float64 if the network is, else in float32."""
        exact = self.extractor.dtype == torch.float64
        return image.to(self.device, torch.float64 if exact else torch.float32)

    def corresponding(self, *, progress: bool = False) -> Self:
        """Return the job with the `correspondence` of its photographs, if it has any.

        A signal stops the search. With `progress`, a bar shows how far it is.
        """
        if not self.pictures.sources:
            return self
        there = self.pictures.to(self.on_device(self.pictures.content))
        look = {"desc": "matching", "unit": "step", "total": PARTS, "leave": False}
        with interruptible(), progress_bar(disable=not progress, **look) as bar:
            found = correspondence(self.extractor, there, bar.update)
        return replace(self, pictures=replace(self.pictures, correspondence=found))

    def repeating(self) -> Self:
        """Return the job with the `repetitions` of its styles, if its losses use them."""
        if not self.criterion.matches or LARGE not in self.criterion.styles:
            return self
        found = tuple(
            repetition(self.extractor, self.on_device(style)) for style in self.pictures.styles
        )
        return replace(self, pictures=replace(self.pictures, repetitions=found))
