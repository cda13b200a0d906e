"""Whether a distillation can work, before anything is loaded or trained."""

from styletransfer.config import CONTENT_LAYER, STYLE_LAYERS, DistillConfig
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor
from styletransfer.features.vgg import WIDTHS, Widths, channels_of, conv_names, conv_widths
from styletransfer.networks.training import check_training
from styletransfer.pictures.images import LONGEST_SIDE

# Of VGG-19's fifth block the losses see the first convolution only.
LEAST_CONVS = (2, 2, 4, 4, 1)
# A narrow layer and relu5_1 are left to train, so that no mean over layers is empty.
MOST_FROZEN = 11
# conv4_1's place, counted from 0: the content loss acts on the next one.
LAST_WHOLE = 8


def check(config: DistillConfig) -> None:
    """Check the numbers of a recipe.

    Raises:
        UserError: naming the key, its value and what it may be.
    """
    for key in (
        "steps", "batch", "batches", "passes", "crop", "replay_buffer", "fit_batches", "look_every",
    ):  # fmt: skip
        if getattr(config, key) < 1:
            raise UserError(f"{key}={getattr(config, key)} must be 1 or more")
    if config.crop % 16 or config.crop > LONGEST_SIDE:
        raise UserError(f"crop={config.crop} must be a multiple of 16, at most {LONGEST_SIDE}")
    check_training(config)
    for key in ("gram_weight", "inner_weight", "content_gradient_weight"):
        if not 0 <= getattr(config, key) < float("inf"):
            raise UserError(f"{key}={getattr(config, key)} must be a finite number, 0 or more")
    check_shares(config)
    check_widths(config.widths)
    teacher = config.teacher
    if teacher.name not in ("vgg19", "bundled"):
        raise UserError(f"teacher.name={teacher.name} must be vgg19, or bundled: of its layout")
    for key, value, only in (
        ("pooling", teacher.pooling, "max"),
        ("preprocessing", teacher.preprocessing, "imagenet"),
    ):
        if value != only:
            raise UserError(
                f"teacher.{key}={value} is not what the student has; leave it at {only}"
            )


def check_shares(config: DistillConfig) -> None:
    """Check what a batch is made of.

    Raises:
        UserError: a share is out of range, leaves no other picture, or exceeds the replay buffer.
    """
    for key in ("on_policy", "photo_share"):
        if not 0 <= getattr(config, key) <= 1:
            raise UserError(f"{key}={getattr(config, key)} must be between 0 and 1")
    own = round(config.batch * config.on_policy)
    if own == config.batch:
        raise UserError(
            f"on_policy={config.on_policy} leaves no other picture in a batch of {config.batch}; "
            "lower it"
        )
    if own * config.batches > config.replay_buffer:
        raise UserError(
            f"replay_buffer={config.replay_buffer} must hold the {own * config.batches} on-policy "
            "pictures of a step; raise it"
        )


def check_widths(widths: Widths) -> None:
    """Check that a student of these widths has VGG-19's layout up to relu5_1.

    Raises:
        UserError: there are too few or too many blocks, convolutions or channels.
    """
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


def check_start(config: DistillConfig, start: FeatureExtractor | None) -> None:
    """Check that the frozen convolutions can be had.

    Raises:
        UserError: there is no such file, or its network has other widths.
    """
    if not 1 <= config.frozen <= MOST_FROZEN:
        raise UserError(f"frozen={config.frozen} must be 1 to {MOST_FROZEN}")
    ours = list(conv_widths(config.widths).items())[: config.frozen]
    full = list(conv_widths(WIDTHS["vgg19"]).items())[: config.frozen]
    last = config.frozen - 1
    if config.content_gradient_weight and (last > LAST_WHOLE or ours[last] != full[last]):
        raise UserError(
            f"content_gradient_weight={config.content_gradient_weight} needs a last frozen layer "
            "before conv4_2 that is as wide as VGG-19's; change frozen or widths"
        )
    check_trained(config)
    if start is None:
        if config.frozen > 1:
            raise UserError(f"frozen={config.frozen} needs the convolutions; give start=FILE")
        return
    theirs = channels_of(start)
    for name, width in ours:
        if width != theirs.get(name, 0):
            raise UserError(
                f"widths gives {name} {width} channels; "
                f"{config.start} has {theirs.get(name, 0)} there"
            )


def check_trained(config: DistillConfig) -> None:
    """Check that the convolutions to be trained are ones that the losses can compare.

    Raises:
        UserError: a mean over their layers would be empty, or no content loss reaches them.
    """
    if config.trained is None:
        return
    names = conv_names(config.widths)[config.frozen :][: max(0, config.trained)]
    layers = [name.replace("conv", "relu") for name in names]
    if {layer in STYLE_LAYERS for layer in layers} != {True, False}:
        raise UserError(
            f"trained={config.trained} must reach, after the {config.frozen} frozen ones, the "
            "convolution of a style layer and one of another"
        )
    if config.content_gradient_weight and CONTENT_LAYER not in layers:
        raise UserError(
            f"content_gradient_weight={config.content_gradient_weight} needs conv4_2 among the "
            f"trained={config.trained} convolutions; raise trained, or set it to 0"
        )


def check_teacher(widths: Widths, teacher: FeatureExtractor) -> None:
    """Check that the teacher has every channel that the student is to take over.

    Raises:
        UserError: a convolution of the student is wider than the teacher's, or has none there.
    """
    theirs = channels_of(teacher)
    for name, width in conv_widths(widths).items():
        if width > theirs.get(name, 0):
            raise UserError(
                f"widths gives {name} {width} channels; the teacher has {theirs.get(name, 0)} there"
            )
