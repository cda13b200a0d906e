"""Settings of the command `train`, and functions that declare and check keys for all commands.

A key is the name of a setting: KEY=VALUE on the command line. This package knows the names, types
and limits of keys; other packages know what a key does. This package imports no torch.
"""

from styletransfer.settings.keys import MISSING, NUMBERS, PATHS, choice, each, number, path
from styletransfer.settings.train import (
    ASSETS,
    MATCH_LAYERS,
    STYLE_LAYER_FACTORS,
    FeaturesConfig,
    LossModeConfig,
    ObjectiveConfig,
    OptimizerConfig,
    StyleTransferConfig,
    TrainConfig,
)

__all__ = [
    "ASSETS",
    "MATCH_LAYERS",
    "MISSING",
    "NUMBERS",
    "PATHS",
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
