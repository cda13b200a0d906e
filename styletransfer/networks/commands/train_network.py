"""The command `train_network`: trains a network that paints in one pass."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from styletransfer.settings import (
    ASSETS,
    PATHS,
    FeaturesConfig,
    LossModeConfig,
    ObjectiveConfig,
    choice,
    number,
    path,
)
from styletransfer.settings.registry import command
from styletransfer.system.rank import process_rank


@dataclass
class TrainNetworkConfig:
    """These are the settings of `scripts/train_network.py`, which trains a style network."""

    style: Any = field(default=str(ASSETS / "style" / "oil.jpg"), metadata=PATHS)
    """Path of the style image; or several paths, [a.jpg,b.jpg], or a folder of style images, for
    one network that knows all these styles and can blend them."""
    style_source: Any = field(default=None, metadata=PATHS)
    """Photograph of which the style image is a painting: the network learns to paint like it.
    Frames of the film `pictures` are painted by copied pixels first, as by film, and are then
    learned. With several style images, one photograph for each; all are one style."""
    network: str = choice("small", "tiny", "full")
    """Width and depth of the network: tiny, small, or full as in Johnson et al. 2016."""
    start: str | None = path("auto", words=("auto",))
    """Initial weights: the path of a network of the same layout; null for random weights; auto for
    the shipped network painters, or for random weights if the layout of painters differs."""
    pictures: str = path(str(ASSETS / "content"))
    """Folder of photographs; the training pictures are crops of them. With style_source, a film or
    a folder of frames; default: none, only the painted photographs are learned."""
    steps: int = number(1200, "[1, inf)")
    """Training steps in all; the learning rate falls to zero over them. A network with random
    weights needs several times as many steps."""
    batch: int = number(1, "[1, 1024]")
    """Pictures per step, of all processes together. Default: in equal time, one large picture
    gives a better network than several small ones (docs/networks.md)."""
    crop: int = 384
    """Side of a training picture in pixels; a multiple of 4."""
    style_size: int = number(512, "[1, inf)")
    """Longer side of the style image in pixels; its strokes keep their size in the pastiches. With
    style_source, also the largest longer side of the film's frames."""
    learning_rate: float = number(2e-3, "(0, 1]")
    """Largest learning rate of AdamW: about the change of each weight in a step; at most 1."""
    averaging: float = number(0.99, "[0, 1)")
    """Decay per step of the running mean of weights that becomes the result; 0 turns it off."""
    preview: str = path(str(ASSETS / "content" / "coffee.jpg"))
    """Path of a picture that is painted every preview_every steps, to show the progress."""
    preview_every: int = number(100, "[1, inf)")
    """Steps between two previews."""
    seed: int = number(0, "[0, inf)")
    """Seed of all random numbers."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    precision: str = choice("auto", "bfloat16", "float32", "float64")
    """Dtype of the features: auto, bfloat16, float32 or float64. The network uses float64
    with float64, else float32."""
    checkpoint_every: float = number(60.0, "[0, inf)")
    """Shortest time in seconds between two checkpoints; 0 saves only the last checkpoint."""
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    loss_mode: LossModeConfig = field(default_factory=LossModeConfig)
    objective: ObjectiveConfig = field(default_factory=lambda: ObjectiveConfig(content_weight=0.8))
    """The losses, as for train. Default: a larger content weight, as content is learned last."""


@command(shared=True)
def train_network(config: TrainNetworkConfig, folder: Path) -> None:
    """Train a network that paints in one pass."""
    from styletransfer.networks.training.train import train

    made = train(config, folder)
    if process_rank().rank == 0:
        print(made)
