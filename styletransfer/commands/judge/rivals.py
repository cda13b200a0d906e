"""Who paints the pictures that are judged: the optimiser under a feature network, or one pass."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from styletransfer.commands.judge.pairs import Pair
from styletransfer.commands.judge.style_networks import Trained
from styletransfer.config import FeaturesConfig, JudgeConfig
from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.job.job import Job
from styletransfer.modes import get_loss_mode
from styletransfer.objective.criterion import Criterion
from styletransfer.optimize.run import complete_run
from styletransfer.system.measure import median_seconds, now

# Timed passes of a network, after one to warm up.
PASSES = 3


@dataclass(frozen=True)
class Pastiche:
    """A picture that was made of a pair.

    Attributes:
        image: (1, 3, H, W), float32, on the CPU.
        seconds: that it took, networks and pictures being loaded.
    """

    image: Tensor
    seconds: float


Rival = Callable[[Pair], Pastiche]


def rivals(
    config: JudgeConfig, trained: dict[str, Trained], device: torch.device, dtype: torch.dtype
) -> dict[str, Rival]:
    """Return name -> who paints; the one under test, and VGG-19, are among them.

    Without style networks it is the optimiser under a random VGG-19, under the bundled network,
    which is under test, and under VGG-19. With them it is these, and then the optimiser under the
    bundled network and under VGG-19.

    Raises:
        UserError: see `build_features`, and an unknown layer.
    """
    features = {
        "bundled": config.bundled,
        "vgg19": replace(config.vgg19, padding=config.bundled.padding),
    }
    if not trained:
        features = {"random": replace(config.vgg19, weights="random"), **features}
    by_optimizer = {
        name: optimizer_under(extractor(config, each, device, dtype), name)
        for name, each in features.items()
    }
    return {"network": one_pass(trained, device), **by_optimizer} if trained else by_optimizer


def extractor(
    config: JudgeConfig, features: FeaturesConfig, device: torch.device, dtype: torch.dtype
) -> FeatureExtractor:
    """Return a feature network, ready for the objective's layers."""
    built = build_features(features, config.seed).ended_at(Criterion.of(config.objective).layers)
    return optimize_for_inference(built, device, dtype)


def optimizer_under(features: FeatureExtractor, name: str) -> Rival:
    """Return the optimiser under a feature network of this name.

    What is returned raises a UserError where a run gives up, and KeyboardInterrupt at Ctrl-C: an
    unfinished picture is not judged.
    """
    device = next(features.parameters()).device

    def paint(pair: Pair) -> Pastiche:
        mode = get_loss_mode(pair.config.loss_mode.name)
        began = now(device)
        result = complete_run(Job(pair.config, features, mode, pair.loaded.pictures))
        seconds = now(device) - began
        return Pastiche(result.finished(f"{pair.name} under {name}").image, seconds)

    return paint


def one_pass(trained: dict[str, Trained], device: torch.device) -> Rival:
    """Return the style networks, of which the one that knows a pair's style paints it."""

    @torch.no_grad()
    def paint(pair: Pair) -> Pastiche:
        style = trained[pair.style_name]
        content = pair.content.to(device).contiguous(memory_format=torch.channels_last)

        def work() -> Tensor:
            pastiche: Tensor = style.network(content, style.blend)
            return pastiche

        seconds = median_seconds({"pass": work}, PASSES, device)["pass"]
        return Pastiche(work().cpu(), seconds)

    return paint
