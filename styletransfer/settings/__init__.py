"""Settings: the keys of every command; those of satellites are in the rooms' own `settings.py`."""

from styletransfer.settings.keys import MISSING, NUMBERS, PATHS, choice, each, number, path
from styletransfer.settings.train import (
    ASSETS,
    CONTENT_LAYER,
    MATCH_LAYERS,
    STYLE_LAYER_FACTORS,
    STYLE_LAYERS,
    FeaturesConfig,
    LossModeConfig,
    ObjectiveConfig,
    OptimizerConfig,
    StyleTransferConfig,
    TrainConfig,
)

__all__ = [
    "ASSETS",
    "CONTENT_LAYER",
    "MATCH_LAYERS",
    "MISSING",
    "NUMBERS",
    "PATHS",
    "STYLE_LAYERS",
    "STYLE_LAYER_FACTORS",
    "FeaturesConfig",
    "LossModeConfig",
    "ObjectiveConfig",
    "OptimizerConfig",
    "StyleTransferConfig",
    "TrainConfig",
    "choice",
    "each",
    "number",
    "path",
]
