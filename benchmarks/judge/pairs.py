"""Loads and checks the pairs of content and style image on which networks are judged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.judge.config import JudgeConfig, PairConfig
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor
from styletransfer.job.choices import Choices
from styletransfer.job.prepare import check_smallest, load
from styletransfer.job.sources import Sources
from styletransfer.objective import Criterion, check_size
from styletransfer.objective.inputs import Inputs
from styletransfer.pictures.images import size_of
from styletransfer.settings import StyleTransferConfig
from styletransfer.settings.schemas import check


@dataclass(frozen=True)
class Pair:
    """A Pair is a content image and a style image to combine."""

    name: str  # unique, such as "coffee x oil"; file names made of it are unique, too
    config: StyleTransferConfig  # settings of the run that combines them
    choices: Choices  # what these settings mean
    loaded: Inputs  # the pictures

    @property
    def content(self) -> Tensor:
        """The content image (1, 3, H, W), sRGB in [0, 1]."""
        return self.loaded.content

    @property
    def style(self) -> Tensor:
        """The style image (1, 3, h, w), sRGB in [0, 1]."""
        return self.loaded.styles[0]

    def file(self, rival: str) -> str:
        """Return the file name of a rival's pastiche, such as "coffee_x_oil_vgg19.png"."""
        return _file_stem(self.name) + f"_{rival}.png"


def load_pairs(config: JudgeConfig, asked: Sequence[PairConfig]) -> list[Pair]:
    """Load every pair in `asked`, which lists their paths.

    (UserError: no pair, settings out of range, no style loss, a picture that cannot be read, or a
    content picture that is the style picture.)
    """
    if not asked:
        raise UserError("pairs is empty; name at least one content and style picture")
    criterion = Criterion.of(config.objective)
    if not criterion.styles:
        raise UserError(
            "there is no style loss, so no gap to close; name objective.style_layers and give "
            "objective.style_weight more than 0"
        )
    pairs: list[Pair] = []
    for name, pair in zip(pair_names(asked), asked, strict=True):
        run = StyleTransferConfig(
            content=pair.content,
            style=pair.style,
            size=config.size,
            steps=config.steps,
            device=config.device,
            precision=config.precision,
            seed=config.seed,
            objective=config.objective,
            optimizer=config.optimizer,
        )
        check(run)
        choices = Choices.of(run)
        loaded = load(choices, Sources.read(run, choices.pyramid))
        content, style = loaded.tensors
        if content.shape == style.shape and torch.equal(content, style):
            raise UserError(f"{name}: content and style are one picture; name two")
        pairs.append(Pair(name, run, choices, loaded))
    return pairs


def check_pairs(pairs: Iterable[Pair], vgg19: FeatureExtractor, judged: Sequence[str]) -> None:
    """Check that the pictures are large enough for the losses and for the `judged` layers.

    (UserError: a picture is too small, or the objective names an unknown layer.)
    """
    ended = vgg19.ended_at(judged)
    for pair in pairs:
        painted = vgg19.ended_at(pair.choices.criterion.layers)
        check_smallest(painted, pair.choices.pyramid.scales(pair.loaded)[0], pair.loaded.names)
        for image, path in zip(pair.loaded.tensors, pair.loaded.names, strict=True):
            check_size(ended, size_of(image), Path(path).name)


def pair_names(pairs: Iterable[PairConfig]) -> list[str]:
    """Return one name per pair, such as "coffee x oil"; equal names get a number."""
    names: list[str] = []
    taken: set[str] = set()
    for pair in pairs:
        name = plain = f"{Path(pair.content).stem} x {Path(pair.style).stem}"
        number = 1
        while _file_stem(name).casefold() in taken:  # some file systems ignore case
            number += 1
            name = f"{plain} {number}"
        taken.add(_file_stem(name).casefold())
        names.append(name)
    return names


def _file_stem(name: str) -> str:
    return name.replace(" ", "_")
