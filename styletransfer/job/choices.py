"""Turns settings into the choices of a job: all that can be decided before a picture is read."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from styletransfer.copying.paired import LAYERS
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor
from styletransfer.job.colors import Colors
from styletransfer.job.groups import LAYERS as GROUPED
from styletransfer.job.job import Chosen, FeatureNetwork, Job, Start
from styletransfer.job.scales import Pyramid
from styletransfer.job.sources import files_read
from styletransfer.losses import LOSS_MODES
from styletransfer.objective import Criterion
from styletransfer.objective.captured import obstacle
from styletransfer.objective.inputs import Inputs, StylePart
from styletransfer.settings import ObjectiveConfig, StyleTransferConfig, each
from styletransfer.system.devices import choose_device, choose_precision

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Blend:
    """A blend says how the styles of a job share the pastiche; no picture is needed for it."""

    weights: tuple[float, ...]  # weights of the styles; () for equal weights
    rotation: tuple[float, ...]  # `style_rotation` in degrees: one number, or one for each style
    region_styles: Mapping[Any, int]  # colour of a region -> number of its style, from 1
    by_groups: bool  # whether content_regions=auto: `grouped` finds the regions
    # Two lists: the layers at which `style` is used, and those at which `style_detail` is used.
    # None without `style_detail`.
    layers: tuple[list[str], list[str]] | None

    @classmethod
    def of(cls, config: StyleTransferConfig) -> Self:
        """Return the blend of `config`; UserError if style or style_detail has no layer."""
        return cls(
            tuple(config.style_weights),
            tuple(each(config.style_rotation)),
            config.region_styles,
            config.content_regions == "auto",
            None if config.style_detail is None else _divided_layers(config.objective),
        )

    def parts(self, names: Sequence[str]) -> tuple[StylePart, ...]:
        """Return the styles of weight above 0, then the style of `style_detail` if there is one.

        `names` are the names of all style images. Raises UserError if there is not one weight for
        each style image of `style`, or if all weights are 0.
        """
        if self.layers is None:
            return tuple(self._weighted(names, layers=None))
        own, detail = self.layers
        last = len(names) - 1
        return (*self._weighted(names[:last], own), StylePart(style=last, layers=detail))

    def _weighted(self, names: Sequence[str], layers: list[str] | None) -> list[StylePart]:
        """Return the style images of weight above 0; their normalised weights sum to 1."""
        weights = self.weights or (1.0,) * len(names)
        if len(weights) != len(names):
            raise UserError(
                f"style_weights holds {len(weights)} numbers but style names {len(names)} "
                f"({', '.join(names)}); give one for each"
            )
        if not any(weights):
            raise UserError("style_weights are all 0; give at least one style more than 0")
        largest = max(weights)  # the weights are divided by it, because their sum might overflow
        total = sum(weight / largest for weight in weights)
        shares = [weight / largest / total for weight in weights]
        return [StylePart(n, share, layers=layers) for n, share in enumerate(shares) if share > 0]


def _divided_layers(objective: ObjectiveConfig) -> tuple[list[str], list[str]]:
    """Return the layers of `style`, and those of `style_detail`; UserError if one has none."""
    detail = set(objective.detail_layers)
    matched = objective.match_layers if objective.match_weight else []
    layers = list(dict.fromkeys([*objective.style_layers, *matched]))
    if not detail & set(layers):
        raise UserError(
            "style_detail has no effect: objective.detail_layers names none of the layers at which "
            f"styles act, which are {', '.join(layers)}",
            "style_detail",
        )
    others = [layer for layer in layers if layer not in detail]
    if not others:
        raise UserError(
            "style has no effect: objective.detail_layers names all of the layers at which styles "
            f"act, which are {', '.join(layers)}; leave some to style",
            "objective.detail_layers",
        )
    return others, sorted(detail)


@dataclass(frozen=True)
class Choices(Chosen):
    """`Choices` are all parts of a job that follow from its settings, before a picture is read."""

    pyramid: Pyramid  # the sizes of the pastiche, and the steps at each size
    blend: Blend  # how the styles share the pastiche

    @classmethod
    def of(cls, config: StyleTransferConfig) -> Self:
        """Return the choices of `config`; UserError if a setting is wrong, or if two conflict."""
        tile = parse_tile(config.tile)
        criterion = Criterion.of(config.objective)
        device = choose_device(config.device)
        dtype = choose_precision(config.precision, device)
        blend, layers = Blend.of(config), tuple(criterion.layers)
        if blend.by_groups:
            layers += tuple(GROUPED)
        if config.style_source is not None:
            layers += tuple(LAYERS)
            if config.style_detail is not None:
                problem = "style_source and style_detail exclude each other; leave one of them out"
                raise UserError(problem, "style_detail")
        mode = LOSS_MODES[config.loss_mode.name]
        problem = obstacle(device, mode, criterion)
        if config.captured and problem:
            logger.warning("captured=true has no effect %s", problem)
        return cls(
            mode=mode,
            criterion=criterion,
            network=FeatureNetwork(config.features, config.seed, layers, device, dtype),
            pyramid=Pyramid.of(config),
            blend=blend,
            start=Start(config.init, config.seed),
            colors=Colors(config.color, config.color_strength, next(iter(criterion.styles), "")),
            optimizer=config.optimizer,
            tile=tile,
            captured=config.captured and not problem,
            files=files_read(config),
        )

    def job(self, extractor: FeatureExtractor, pictures: Inputs) -> Job:
        """Return the job that paints `pictures`; UserError as in `Pyramid.scales`."""
        chosen = {one.name: getattr(self, one.name) for one in fields(Chosen)}
        scales = self.pyramid.scales(pictures)
        return Job(**chosen, extractor=extractor, pictures=pictures, scales=scales)


def parse_tile(text: str) -> int | None:
    """Return a tile's side in pixels; 0 for auto, None for off; UserError for any other text."""
    text = text.strip().lower()
    if text == "auto":
        return 0
    if text in ("off", "false"):  # YAML reads off without quotes as false
        return None
    if not text.isdecimal() or int(text) == 0:
        raise UserError(f"tile={text} must be auto, off or a number of pixels above 0", "tile")
    return int(text)
