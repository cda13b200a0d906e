"""The rivals whose pastiches are judged: optimisation with a feature network, or style networks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from benchmarks.judge.config import JudgeConfig, PairConfig
from benchmarks.judge.pairs import Pair
from styletransfer.errors import UserError
from styletransfer.features import build_features, optimize_for_inference
from styletransfer.job.sources import files_of
from styletransfer.lessons.measure import median_seconds, now
from styletransfer.networks.deploy import deployed
from styletransfer.networks.encoder import (
    SMALLEST_PAINTING,
    color_moments,
    finished,
    moments,
    set_rows,
    style_features,
)
from styletransfer.networks.file import network_file, read
from styletransfer.networks.johnson import StyleNetwork
from styletransfer.networks.paintings import style_image
from styletransfer.objective import Criterion
from styletransfer.optimize.run import Run
from styletransfer.settings import FeaturesConfig, each

# Timed passes of a style network, after one to warm up.
PASSES = 3


@dataclass(frozen=True)
class Pastiche:
    """A Pastiche is a painted image, and the time that it took."""

    image: Tensor  # (1, 3, H, W), on the CPU
    seconds: float  # time of painting, without loading


@dataclass(frozen=True)
class KnownStyle:
    """A KnownStyle is one of the S styles that a style network can paint in."""

    network: StyleNetwork  # on the device
    blend: Tensor  # one-hot (1, S): the network's input for this style
    # `color_moments` of the style image, if the network takes any style; otherwise None.
    palette: Tensor | None = None


Rival = Callable[[Pair], Pastiche]


def read_networks(
    config: JudgeConfig, device: torch.device, dtype: torch.dtype
) -> dict[str, KnownStyle]:
    """Return name of a style -> network that paints in it; empty if no network is to be judged.

    The networks paint as in `apply`, with convolutions in `dtype`. (UserError: a network cannot be
    read, two networks know one style, or there are pairs as well.)
    """
    files = each(config.networks)
    if not any((files, each(config.contents), each(config.styles))):
        return {}
    if not files:
        raise UserError("networks names no file; name one that train_network has written")
    if config.pairs:
        raise UserError("networks are judged on contents and styles, not on pairs; judged=networks")
    known: dict[str, KnownStyle] = {}
    for file in files:
        saved = read(network_file(file))
        palettes = {} if saved.styles else _add_styles(saved.network, config)
        styles = saved.styles or list(palettes)
        network = deployed(saved.network, dtype).to(device)
        for number, name in enumerate(styles):
            if name in known:
                raise UserError(f"networks: {file} is the second that knows the style {name}")
            blend = one_hot(torch.tensor([number], device=device), len(styles))
            known[name] = KnownStyle(network, blend.float(), palettes.get(name))
    return known


def _add_styles(network: StyleNetwork, config: JudgeConfig) -> dict[str, Tensor]:
    """Add all style images to a network for any style; return style name -> palette."""
    encoder = style_features(torch.device("cpu"), torch.float32)
    files = files_of("styles", config.styles)
    shown = [style_image(file, config.size, SMALLEST_PAINTING) for file in files]
    assert network.encoder is not None
    set_rows(network, network.encoder(torch.cat([moments(encoder, image) for image in shown])))
    stems = (Path(file).stem for file in files)
    return {stem: color_moments(image) for stem, image in zip(stems, shown, strict=True)}


def pairs_of(config: JudgeConfig, known: dict[str, KnownStyle]) -> list[PairConfig]:
    """Return each content image paired with each style image that a network knows.

    (UserError: there is no content image, or a style that a network knows has no style image.)
    """
    contents = files_of("contents", config.contents)
    styles = [file for file in files_of("styles", config.styles) if Path(file).stem in known]
    for name in known.keys() - {Path(file).stem for file in styles}:
        raise UserError(
            f"styles holds no picture called {name}, which a network was trained on; add it"
        )
    return [PairConfig(content, style) for content in contents for style in styles]


def rivals(
    config: JudgeConfig, known: dict[str, KnownStyle], device: torch.device, dtype: torch.dtype
) -> dict[str, Rival]:
    """Return name -> rival, a function that paints a pair.

    Without style networks, the rivals optimise with a random VGG-19 ("random"), with the bundled
    network under test ("bundled"), and with VGG-19 ("vgg19"). With style networks, the rivals are
    the style networks together ("network"), "bundled" and "vgg19". (UserError: see
    `build_features`; an unknown layer.)
    """
    vgg19 = replace(config.vgg19, padding=config.bundled.padding)
    features = {"bundled": config.bundled, "vgg19": vgg19}
    if not known:
        features = {"random": replace(config.vgg19, weights="random"), **features}
    by_optimizer = {
        name: _optimizer_under(name, network, config, device, dtype)
        for name, network in features.items()
    }
    return {"network": _one_pass(known, device), **by_optimizer} if known else by_optimizer


def _optimizer_under(
    name: str,
    features: FeaturesConfig,
    config: JudgeConfig,
    device: torch.device,
    dtype: torch.dtype,
) -> Rival:
    """Return a rival that optimises with the feature network called `name`.

    The rival raises UserError if a run gives up and KeyboardInterrupt at Ctrl-C, because an
    unfinished pastiche is not judged.
    """
    network = build_features(features, config.seed).ended_at(Criterion.of(config.objective).layers)
    network = optimize_for_inference(network, device, dtype)

    def paint(pair: Pair) -> Pastiche:
        began = now(device)
        outcome = Run(pair.choices.job(network, pair.loaded).repeating()).complete()
        seconds = now(device) - began
        return Pastiche(outcome.finished(f"{pair.name} under {name}").image, seconds)

    return paint


def _one_pass(known: dict[str, KnownStyle], device: torch.device) -> Rival:
    """Return a rival that paints a pair in one pass, with the network that knows its style."""

    @torch.no_grad()
    def paint(pair: Pair) -> Pastiche:
        style = known[Path(pair.config.style).stem]
        content = pair.content.to(device).contiguous(memory_format=torch.channels_last)

        def work() -> Tensor:
            pastiche: Tensor = style.network(content, style.blend)
            return pastiche if style.palette is None else finished(pastiche.cpu(), style.palette)

        seconds = median_seconds({"pass": work}, PASSES, device)["pass"]
        return Pastiche(work().cpu(), seconds)

    return paint
