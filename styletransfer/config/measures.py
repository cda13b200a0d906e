"""What is measured: `judge` and `benchmark`."""

from dataclasses import dataclass, field
from typing import Any

from styletransfer.config.groups import (
    ASSETS,
    MISSING,
    PATHS,
    FeaturesConfig,
    ObjectiveConfig,
    OptimizerConfig,
    path,
)


@dataclass
class PairConfig:
    """Two pictures to combine."""

    content: str = path(MISSING)
    """Path of the content image."""
    style: str = path(MISSING)
    """Path of the style image."""


@dataclass
class JudgeConfig:
    """`scripts/judge.py`: the networks, and the job on which VGG-19 judges them."""

    pairs: list[PairConfig] = field(default_factory=list)
    """Pictures, none of which the student was trained on."""
    networks: Any = field(default=None, metadata=PATHS)
    """Style networks to judge instead, with judged=networks: files, or names of those that ship."""
    contents: Any = field(default=None, metadata=PATHS)
    """Content images for style networks: a picture, several, or a folder; best none that they were
    trained on."""
    styles: Any = field(default=None, metadata=PATHS)
    """The style images that style networks were trained on, found by their names: a picture,
    several, or a folder."""
    bundled: FeaturesConfig = field(default_factory=FeaturesConfig)
    """The network under test; bundled.weights=PATH names another student."""
    vgg19: FeaturesConfig = field(
        default_factory=lambda: FeaturesConfig(name="vgg19", padding="zeros")
    )
    """The judge."""
    size: int = 256
    """Longer side of the pastiches in pixels."""
    steps: int = 100
    """Optimiser steps in all, for every network."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = "auto"
    """Of the networks that stylise; the judge works in float32."""
    seed: int = 0
    """Of the random network."""
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)


@dataclass
class BenchmarkConfig:
    """`scripts/benchmark.py`: what is measured against the plain loop of benchmarks/plain.py."""

    content: str = path(str(ASSETS / "content" / "coffee.jpg"))
    """Path of the content image."""
    style: str = path(str(ASSETS / "style" / "oil.jpg"))
    """Path of the style image."""
    sizes: list[int] = field(default_factory=lambda: [128, 256, 512])
    """Sides of the square pictures in pixels."""
    rounds: int = 5
    """Timed evaluations of each row, after one to warm up."""
    precisions: list[str] = field(default_factory=lambda: ["float32", "bfloat16"])
    """Of the network; the plain loop always works in float32."""
    plain_up_to: int = 512
    """Largest side in pixels at which the plain loop and the slower rows are run. Above it there
    is only autograd_function in the precision that precision=auto means."""
    tile: int = 0
    """Side of a tile in pixels; 0 for half the picture's side, at most 1024."""
    regions: list[int] = field(default_factory=list)
    """Also measure autograd_function with the picture divided into so many regions, of two styles
    in turn, such as [2,4]."""
    quality: bool = False
    """Also measure how soon the default job is as good as the plain loop."""
    quality_size: int = 512
    """Longer side in pixels of the pictures for that."""
    quality_steps: int = 300
    """Evaluations of the plain loop for that. Default: the tutorials'."""
    steps: int = 100
    """Steps of the default job for that."""
    default_job: bool = False
    """Also time `styletransfer train` as it is, process start included, `rounds` times."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    seed: int = 0
    """Of random weights."""
    features: FeaturesConfig = field(
        default_factory=lambda: FeaturesConfig(name="vgg19", weights="random", padding="zeros")
    )
    """Max pooling and ImageNet's preprocessing, which is what the plain loop has."""
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
