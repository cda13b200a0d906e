"""Loads and checks the inputs of a style network's training, before anything is written."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.features.weights import digest
from styletransfer.job.sources import check_side, files_of
from styletransfer.losses import LOSS_MODES, LossMode
from styletransfer.networks import file
from styletransfer.networks.commands.train_network import TrainNetworkConfig
from styletransfer.networks.file import BASE, MOST_STYLES, NetworkFile, network_file
from styletransfer.networks.johnson import LAYOUTS, SMALLEST_SIDE, STRIDE
from styletransfer.networks.paintings import style_image
from styletransfer.networks.training.crops import Crops, Photos
from styletransfer.networks.training.paired import OBJECTIVE, Pairs, painted_pairs
from styletransfer.objective import Criterion, smallest_tile
from styletransfer.pictures import images
from styletransfer.pictures.transparency import fill_transparent
from styletransfer.settings.idle import warn_if_typed
from styletransfer.system.devices import choose_device, choose_precision
from styletransfer.system.files import sha256

# Largest longer side in pixels of a preview, a picture that is painted at regular intervals in the
# training to show its progress.
PREVIEW_SIZE = 512


@dataclass(frozen=True)
class NetworkTask:
    """A NetworkTask is all that the training of a style network needs, loaded and checked."""

    config: TrainNetworkConfig  # the settings
    extractor: FeatureExtractor  # network whose features the losses compare, on the device
    mode: LossMode  # how the losses are differentiated
    names: list[str]  # names of the styles: file names without folder and extension
    styles: dict[str, Tensor]  # file -> style image (1, 3, h, w), on the device
    hashes: list[str]  # SHA-256 of each style file, or of each pair of `style_source`
    # make(N, generator) returns N training pictures (N, 3, size, size), or N pairs of a picture and
    # its painted version (N, 6, size, size).
    make: Callable[[int, torch.Generator], Tensor]
    preview: Tensor  # (1, 3, h, w), the content image of the previews
    start: NetworkFile | None  # network with the initial weights; None for random weights


def prepare(config: TrainNetworkConfig) -> NetworkTask:
    """Load and check all that `config` names, cheap checks first (UserError if a check failed)."""
    if is_paired := config.style_source is not None:
        warn_if_typed("with style_source, which has losses of its own", "objective")
        config = replace(config, objective=OBJECTIVE)
        if config.preview == TrainNetworkConfig.preview:
            config = replace(config, preview=files_of("style_source", config.style_source)[0])
    if config.crop % STRIDE or config.crop < SMALLEST_SIDE:
        allowed = f"a multiple of {STRIDE} from {SMALLEST_SIDE} up"
        raise UserError(f"crop={config.crop} must be {allowed}")
    layers = Criterion.of(config.objective).layers
    mode = LOSS_MODES[config.loss_mode.name]
    device = choose_device(config.device)
    dtype = choose_precision(config.precision, device)
    exact = torch.float64 if dtype == torch.float64 else torch.float32
    files = files_of("style", config.style)
    if len(files) > MOST_STYLES:
        raise UserError(f"style names {len(files)} pictures; a network has at most {MOST_STYLES}")
    names = [Path(name).stem for name in files]
    if is_paired:
        names, files = names[:1], files[:1]  # the paintings of all photographs are one style
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"two styles are called {twice}; rename one of the files")
    preview = images.read(config.preview)
    check_side(preview)
    preview = images.resize_picture(preview, min(PREVIEW_SIZE, max(preview.size)))
    start = start_network(config)
    extractor = build_features(config.features, config.seed)
    least = check_crop(extractor, config)
    styles = {name: style_image(name, config.style_size, least) for name in files}
    make: Crops
    if is_paired:
        given, made = painted_pairs(config)
        make, hashes = Pairs(given + made, config.crop), [digest({"pair": one}) for one in given]
    else:
        make, hashes = Crops(Photos(Path(config.pictures)), config.crop), list(map(sha256, files))
    return NetworkTask(
        config=config,
        extractor=optimize_for_inference(extractor.ended_at(layers), device, dtype),
        mode=mode,
        names=names,
        styles={name: style.to(device, exact) for name, style in styles.items()},
        hashes=hashes,
        make=make,
        preview=fill_transparent(preview).to(device, exact),
        start=start,
    )


def start_network(config: TrainNetworkConfig) -> NetworkFile | None:
    """Return the network with the initial weights, or None for random weights."""
    if config.start is None:
        return None
    saved = file.read(network_file(BASE if config.start == "auto" else config.start))
    if saved.network.layout == LAYOUTS[config.network]:
        return saved
    if config.start == "auto":
        return None
    raise UserError(
        f"start={config.start} is a network of another layout than network={config.network}; "
        "name one that fits, or start=null for random weights"
    )


def check_crop(extractor: FeatureExtractor, config: TrainNetworkConfig) -> int:
    """Return the smallest side of style images and crops (UserError if `crop` is smaller)."""
    least = smallest_tile(extractor, Criterion.of(config.objective))
    if config.crop < least:
        raise UserError(
            f"crop={config.crop} must be at least {least}, the pixels that one position of the "
            "deepest layer stands for; raise it, or name shallower layers"
        )
    return least
