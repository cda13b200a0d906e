"""The settings of the tool `judge`: networks, pictures and the job."""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from styletransfer.settings import PATHS, FeaturesConfig, ObjectiveConfig, OptimizerConfig, path


@dataclass
class PairConfig:
    """These are the settings of one pair of pictures to combine."""

    content: str = path(MISSING)
    """Path of the content image."""
    style: str = path(MISSING)
    """Path of the style image."""


@dataclass
class JudgeConfig:
    """These are the settings of the tool `judge`, which judges networks by VGG-19."""

    pairs: list[PairConfig] = field(default_factory=list)
    """Pairs of pictures, preferably none that the network under test was trained on."""
    networks: Any = field(default=None, metadata=PATHS)
    """Style networks to judge instead, with judged=networks: files, or shipped networks' names."""
    contents: Any = field(default=None, metadata=PATHS)
    """Content images for style networks: a picture, several, or a folder; preferably none that
    they were trained on."""
    styles: Any = field(default=None, metadata=PATHS)
    """The style images that style networks were trained on, found by their names: a picture,
    several, or a folder."""
    bundled: FeaturesConfig = field(default_factory=FeaturesConfig)
    """The feature network under test; bundled.weights=PATH names another."""
    vgg19: FeaturesConfig = field(
        default_factory=lambda: FeaturesConfig(name="vgg19", padding="zeros")
    )
    """The network that judges."""
    size: int = 256
    """Longer side of the pastiches in pixels."""
    steps: int = 100
    """Optimiser steps in all, for every network."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = "auto"
    """Precision of the networks that paint; the network that judges works in float32."""
    seed: int = 0
    """Seed of the random network."""
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
