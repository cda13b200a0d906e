"""The settings of the benchmark, and the check of their values."""

from dataclasses import dataclass, field

from styletransfer.errors import UserError
from styletransfer.losses import LOSS_MODES
from styletransfer.settings import (
    ASSETS,
    FeaturesConfig,
    ObjectiveConfig,
    StyleTransferConfig,
    path,
    schemas,
)
from styletransfer.system.devices import PRECISIONS

# Upper limit of a longer side in pixels, as in the key `size`.
LONGEST_SIDE = 2**20


@dataclass
class BenchmarkConfig:
    """These are the settings of the benchmark, which compares with benchmarks/plain.py."""

    content: str = path(str(ASSETS / "content" / "coffee.jpg"))
    """Path of the content image."""
    style: str = path(str(ASSETS / "style" / "oil.jpg"))
    """Path of the style image."""
    sizes: list[int] = field(default_factory=lambda: [512])
    """Sides of the square pictures in pixels."""
    rounds: int = 3
    """Timed evaluations of each row, after one to warm up."""
    modes: list[str] = field(default_factory=lambda: ["loss_attribute", "autograd_function"])
    """Loss modes: loss_attribute, autograd_function, tensor_hook, or fake_backward, the slowest."""
    precisions: list[str] = field(default_factory=lambda: ["float32", "bfloat16"])
    """Precisions of the network; the plain loop always works in float32."""
    emulated: bool = False
    """Also measure precisions that the device has no units for, which may take very long."""
    plain_up_to: int = 512
    """Largest side in pixels at which the plain loop and the slower rows are run. Above it there
    is only autograd_function in the precision that precision=auto means."""
    tile: int = 0
    """Side of a tile in pixels; 0 for half the picture's side, at most 1024."""
    regions: list[int] = field(default_factory=list)
    """Also measure autograd_function with the picture divided into so many regions, painted in two
    styles in turn, such as [2,4]."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    seed: int = 0
    """Seed of random weights."""
    features: FeaturesConfig = field(
        default_factory=lambda: FeaturesConfig(name="vgg19", weights="random", padding="zeros")
    )
    """The network; pooling and preprocessing must be those of the plain loop."""
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)


def check(config: BenchmarkConfig) -> None:
    """Raise UserError, with the key and the allowed values, if a number or a name is wrong."""
    for key, low in (("rounds", 1), ("tile", 0), ("plain_up_to", 0)):
        if getattr(config, key) < low:
            raise UserError(f"{key}={getattr(config, key)} must be {low} or more")
    for key in ("sizes", "modes", "precisions"):
        names = getattr(config, key)
        if not names or len(set(names)) < len(names):
            raise UserError(f"{key}={names} must name one or more, each once")
    if not all(2 <= count <= 64 for count in config.regions):
        raise UserError(f"regions={config.regions} must be 2 to 64 each")
    if not all(1 <= size <= LONGEST_SIDE for size in config.sizes):
        raise UserError(f"sizes={config.sizes} must be 1 to {LONGEST_SIDE} pixels each")
    for kind, names, known in (
        ("loss mode", config.modes, LOSS_MODES),
        ("precision", config.precisions, PRECISIONS),
    ):
        for name in names:
            if name not in known:
                raise UserError(f"unknown {kind} {name!r}; choose {', '.join(known)}")
    preprocessing = config.features.preprocessing.replace("auto", "imagenet")
    for key, value, only in (
        ("features.pooling", config.features.pooling, "max"),
        ("features.preprocessing", preprocessing, "imagenet"),
        ("objective.tv_weight", config.objective.tv_weight, 0),
    ):
        if value != only:
            raise UserError(f"{key}={value} is not what the plain loop does; leave it at {only}")
    schemas.check_values(default_config(config, max(config.sizes)))


def default_config(config: BenchmarkConfig, size: int) -> StyleTransferConfig:
    """Return the settings of a run at `size` pixels, with the benchmark's pictures and network."""
    return StyleTransferConfig(
        content=config.content,
        style=config.style,
        size=size,
        device=config.device,
        seed=config.seed,
        features=config.features,
        objective=config.objective,
    )
