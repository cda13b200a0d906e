"""Every setting: its unit, its default, and where the default comes from.

These dataclasses are the schema of the files under `configs/`: a misspelt key or a value of the
wrong type is an error before anything runs.
"""

from styletransfer.config.films import FilmConfig
from styletransfer.config.groups import (
    CONTENT_LAYER,
    STYLE_LAYER_FACTORS,
    STYLE_LAYERS,
    FeaturesConfig,
    LossModeConfig,
    ObjectiveConfig,
    OptimizerConfig,
)
from styletransfer.config.keys import ASSETS, NUMBERS, PATHS, each, path
from styletransfer.config.networks import ApplyConfig, ExportConfig, TrainNetworkConfig
from styletransfer.config.pictures import (
    ChangeConfig,
    CompareConfig,
    GalleryConfig,
    MixConfig,
    StyleTransferConfig,
    TrainConfig,
)
from styletransfer.config.studio import StudioConfig

__all__ = [
    "ASSETS",
    "CONTENT_LAYER",
    "NUMBERS",
    "PATHS",
    "STYLE_LAYERS",
    "STYLE_LAYER_FACTORS",
    "ApplyConfig",
    "ChangeConfig",
    "CompareConfig",
    "ExportConfig",
    "FeaturesConfig",
    "FilmConfig",
    "GalleryConfig",
    "LossModeConfig",
    "MixConfig",
    "ObjectiveConfig",
    "OptimizerConfig",
    "StudioConfig",
    "StyleTransferConfig",
    "TrainConfig",
    "TrainNetworkConfig",
    "each",
    "path",
]
