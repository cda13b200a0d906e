"""Every setting: its unit, its default, and where the default comes from.

These dataclasses are the schema of the files under `configs/`: a misspelt key or a value of the
wrong type is an error before anything runs.
"""

from styletransfer.config.films import FlickerConfig
from styletransfer.config.groups import (
    ASSETS,
    CONTENT_LAYER,
    MISSING,
    NUMBERS,
    PATHS,
    STYLE_LAYER_FACTORS,
    STYLE_LAYERS,
    FeaturesConfig,
    LossModeConfig,
    ObjectiveConfig,
    OptimizerConfig,
    each,
    path,
)
from styletransfer.config.measures import BenchmarkConfig, JudgeConfig, PairConfig
from styletransfer.config.networks import (
    ApplyConfig,
    DistillConfig,
    ExportConfig,
    TrainNetworkConfig,
)
from styletransfer.config.pictures import (
    ChangeConfig,
    CompareConfig,
    FilmConfig,
    GalleryConfig,
    MixConfig,
    StudioConfig,
    StyleTransferConfig,
    TrainConfig,
)

__all__ = [
    "ASSETS",
    "CONTENT_LAYER",
    "MISSING",
    "NUMBERS",
    "PATHS",
    "STYLE_LAYERS",
    "STYLE_LAYER_FACTORS",
    "ApplyConfig",
    "BenchmarkConfig",
    "ChangeConfig",
    "CompareConfig",
    "DistillConfig",
    "ExportConfig",
    "FeaturesConfig",
    "FilmConfig",
    "FlickerConfig",
    "GalleryConfig",
    "JudgeConfig",
    "LossModeConfig",
    "MixConfig",
    "ObjectiveConfig",
    "OptimizerConfig",
    "PairConfig",
    "StudioConfig",
    "StyleTransferConfig",
    "TrainConfig",
    "TrainNetworkConfig",
    "each",
    "path",
]
