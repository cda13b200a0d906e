"""From settings to what they mean: all choices of a job that need no picture."""

from dataclasses import dataclass
from typing import Self

from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor
from styletransfer.job.blend import Blend
from styletransfer.job.colors import Colors
from styletransfer.job.job import FeatureNetwork, Job
from styletransfer.job.scales import Pyramid
from styletransfer.job.start import Start
from styletransfer.losses import LOSS_MODES, LossMode
from styletransfer.objective import Criterion
from styletransfer.objective.inputs import Inputs
from styletransfer.settings import OptimizerConfig, StyleTransferConfig
from styletransfer.system.devices import choose_device, choose_precision


@dataclass(frozen=True)
class Choices:
    """`Choices` are what the settings of a job mean, before a picture is read."""

    mode: LossMode
    criterion: Criterion
    network: FeatureNetwork
    pyramid: Pyramid
    blend: Blend
    start: Start
    colors: Colors
    optimizer: OptimizerConfig
    tile: int | None  # side of a tile in pixels; 0 to choose it; None for no tiles

    @classmethod
    def of(cls, config: StyleTransferConfig) -> Self:
        """Return the choices of the settings (UserError: settings that cannot work together)."""
        tile = parse_tile(config.tile)
        criterion = Criterion.of(config.objective)
        mode = LOSS_MODES[config.loss_mode.name]
        device = choose_device(config.device)
        dtype = choose_precision(config.precision, device)
        layers = tuple(criterion.layers)
        return cls(
            mode,
            criterion,
            FeatureNetwork(config.features, config.seed, layers, device, dtype),
            Pyramid.of(config),
            Blend.of(config),
            Start(config.init, config.seed),
            Colors(config.color, config.color_strength, next(iter(criterion.styles), "")),
            config.optimizer,
            tile,
        )

    def job(self, extractor: FeatureExtractor, pictures: Inputs) -> Job:
        """Return the job that paints `pictures` (UserError: a seamless picture cannot be)."""
        return Job(
            extractor,
            self.network,
            self.mode,
            self.criterion,
            pictures,
            self.pyramid.scales(pictures),
            self.start,
            self.colors,
            self.optimizer,
            self.tile,
        )


def parse_tile(text: str) -> int | None:
    """Return the side of a tile in pixels; 0 for auto, None for off (UserError: other text)."""
    text = text.strip().lower()
    if text == "auto":
        return 0
    if text in ("off", "false"):  # YAML reads a bare off as false
        return None
    if not text.isdecimal() or int(text) == 0:
        raise UserError(f"tile={text} must be auto, off or a number of pixels above 0", "tile")
    return int(text)
