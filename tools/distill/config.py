"""The recipe of a distillation, and whether it can work: checked before anything is trained."""

from dataclasses import dataclass, field

from torch import nn

from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor
from styletransfer.features.vgg import WIDTHS, Widths
from styletransfer.networks.training import check_training
from styletransfer.pictures.images import LONGEST_SIDE
from styletransfer.settings import STYLE_LAYERS, FeaturesConfig, path

# Of VGG-19's fifth block the losses see the first convolution only.
LEAST_CONVS = (2, 2, 4, 4, 1)
# A narrow layer and relu5_1 are left to train, so that no mean over layers is empty.
MOST_FROZEN = 11
COUNTS = ("steps", "batch", "crop", "replay_buffer", "fit_batches", "look_every")


@dataclass
class DistillConfig:
    """All that a distillation's result depends on, beside its pictures."""

    teacher: FeaturesConfig = field(
        default_factory=lambda: FeaturesConfig(name="vgg19", padding="zeros")
    )
    """The network to imitate."""
    pictures: str | None = path(None)
    """A folder of real pictures to crop from, beside the procedural ones."""
    widths: list[list[int]] = field(
        default_factory=lambda: [
            [64, 32],
            [128, 64],
            [256, 128, 128, 128],
            [512, 192, 192, 192],
            [512],
        ]
    )
    """Channels of the student's convolutions, by block. Default: as wide as VGG-19 at each layer of
    a style loss, so that its Gram matrices are approximated entry by entry, and narrow between."""
    start: str | None = path(None)
    """A student's file, whose convolutions are taken over where they fit: as wide as planned, and
    so is what they see. Null to fit them all."""
    frozen: int = 1
    """How many convolutions, from the first, are taken from `start` and not trained; 1 to 11."""
    trained: int | None = None
    """How many convolutions after these are trained; null for all. The rest are what `start` or the
    layer-by-layer fit makes them."""
    steps: int = 800
    """Training steps in all; the learning rate falls to zero over them."""
    batch: int = 16
    """Pictures of each step."""
    crop: int = 128
    """Side of a training picture in pixels; a multiple of 16."""
    on_policy: float = 0.4
    """Share of a batch that optimisation under the student itself has produced; below 1."""
    replay_buffer: int = 48
    """Pictures under such optimisation."""
    photo_share: float = 0.4
    """Share of the other pictures that is cropped from real ones, where there are any."""
    learning_rate: float = 1.2e-4
    """Adam's, at its peak; at most 1. 4e-4 undid in 100 steps what the layer-by-layer fit had
    reached."""
    gram_weight: float = 0.5
    """Weight of the relative error of Gram matrices beside that of activations."""
    inner_weight: float = 0.2
    """Weight of the activations between the layers of style transfer."""
    fit_batches: int = 24
    """Batches for the layer-by-layer fit that training starts from."""
    seed: int = 0
    """Of everything random."""
    device: str = "auto"
    """auto, cpu, or an accelerator as torch calls it: cuda, cuda:1, mps, xpu."""
    look_every: int = 100
    """Steps between two looks at the held-out pictures."""
    checkpoint_every: float = 60.0
    """Save a checkpoint at most every so many seconds; 0 saves none but the last."""


def check(config: DistillConfig) -> None:
    """Check the numbers of a recipe (UserError: naming the key, its value and what it may be)."""
    for key in COUNTS:
        if getattr(config, key) < 1:
            raise UserError(f"{key}={getattr(config, key)} must be 1 or more")
    if config.crop % 16 or config.crop > LONGEST_SIDE:
        raise UserError(f"crop={config.crop} must be a multiple of 16, at most {LONGEST_SIDE}")
    check_training(
        learning_rate=config.learning_rate,
        seed=config.seed,
        checkpoint_every=config.checkpoint_every,
    )
    for key in ("gram_weight", "inner_weight"):
        if not 0 <= getattr(config, key) < float("inf"):
            raise UserError(f"{key}={getattr(config, key)} must be a finite number, 0 or more")
    _check_shares(config)
    _check_widths(config.widths)
    teacher = config.teacher
    if teacher.name not in ("vgg19", "bundled"):
        raise UserError(f"teacher.name={teacher.name} must be vgg19, or bundled: of its layout")
    for key, only in (("pooling", "max"), ("preprocessing", "imagenet")):
        if (value := getattr(teacher, key)) != only:
            raise UserError(f"teacher.{key}={value} is not what the student has; use {only}")


def _check_shares(config: DistillConfig) -> None:
    """Check what a batch is made of."""
    for key in ("on_policy", "photo_share"):
        if not 0 <= getattr(config, key) <= 1:
            raise UserError(f"{key}={getattr(config, key)} must be between 0 and 1")
    own = round(config.batch * config.on_policy)
    if own == config.batch:
        raise UserError(
            f"on_policy={config.on_policy} leaves no other picture in a batch of {config.batch}; "
            "lower it"
        )
    if own > config.replay_buffer:
        raise UserError(
            f"replay_buffer={config.replay_buffer} must hold the {own} on-policy pictures of a "
            "step; raise it"
        )


def _check_widths(widths: Widths) -> None:
    """Check that a student of these widths has VGG-19's layout up to relu5_1."""
    full = WIDTHS["vgg19"]
    if len(widths) != len(full) or not all(
        least <= len(block) <= len(most)
        for least, block, most in zip(LEAST_CONVS, widths, full, strict=True)
    ):
        raise UserError(
            f"widths={widths} must list VGG-19's convolutions by block: 2, 2, 4, 4 and 1 to 4"
        )
    if min(min(block) for block in widths) < 1:
        raise UserError(f"widths={widths} must be 1 channel or more each")


def check_networks(
    config: DistillConfig, teacher: FeatureExtractor, start: FeatureExtractor | None
) -> None:
    """Check that the teacher has every channel, and the start those that are frozen.

    (UserError: a convolution is wider than the teacher's, or other than the start's; or no loss
    reaches those that are to be trained.)
    """
    widths = conv_widths(config.widths)
    has = channels_of(teacher)
    for name, width in widths.items():
        if width > has.get(name, 0):
            raise UserError(
                f"widths gives {name} {width} channels; the teacher has {has.get(name, 0)} there"
            )
    if not 1 <= config.frozen <= MOST_FROZEN:
        raise UserError(f"frozen={config.frozen} must be 1 to {MOST_FROZEN}")
    _check_trained(config)
    if start is None:
        if config.frozen > 1:
            raise UserError(f"frozen={config.frozen} needs the convolutions; give start=FILE")
        return
    has = channels_of(start)
    for name, width in list(widths.items())[: config.frozen]:
        if width != has.get(name, 0):
            raise UserError(
                f"widths gives {name} {width} channels; {config.start} has {has.get(name, 0)} there"
            )


def _check_trained(config: DistillConfig) -> None:
    """Check that among the convolutions to be trained is a style layer's and another's."""
    if config.trained is None:
        return
    names = list(conv_widths(config.widths))[config.frozen :][: max(0, config.trained)]
    if {name.replace("conv", "relu") in STYLE_LAYERS for name in names} != {True, False}:
        raise UserError(
            f"trained={config.trained} must reach, after the {config.frozen} frozen ones, the "
            "convolution of a style layer and one of another"
        )


def conv_widths(widths: Widths) -> dict[str, int]:
    """Return convolution -> its output channels, in the order of evaluation."""
    return {
        f"conv{block}_{index}": width
        for block, channels in enumerate(widths, start=1)
        for index, width in enumerate(channels, start=1)
    }


def channels_of(network: FeatureExtractor) -> dict[str, int]:
    """Return convolution -> its output channels, `conv_widths` of a network that is there."""
    layers = network.layers.items()
    return {name: layer.out_channels for name, layer in layers if isinstance(layer, nn.Conv2d)}
