"""Settings of the command `train`, and how keys are declared and checked in all commands.

This package knows the names, types and limits of keys; other packages know what a key does. It
imports no torch.
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
