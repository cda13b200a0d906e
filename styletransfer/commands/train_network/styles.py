"""The styles of a training: a few fixed styles, or random crops of a folder's paintings."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from styletransfer.commands.train_network.prepare import NetworkTask
from styletransfer.losses.moments import Moments
from styletransfer.losses.moments import moments as feature_moments
from styletransfer.networks.crops import Photos
from styletransfer.networks.encoder import SEEN, build_eye, moments, moments_of
from styletransfer.networks.training import generator_at
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import pair
from styletransfer.objective.targets import Place, StyleTargets, style_targets
from styletransfer.objective.whole import style_targets_of
from styletransfer.pictures import images
from styletransfer.settings import FeaturesConfig

# Share of the training pictures that are their own style image, so that the network learns to leave
# a picture unchanged, and styles in between.
OWN = 0.04
# A painting's longer side exceeds style_size, the side of a crop, by this share at most.
CLOSEST = 0.35
# Number of paintings whose moments normalise the encoder's input, and of preview styles.
USUAL, SHOWN = 100, 4


class Style(NamedTuple):
    """One style of a training picture."""

    image: Tensor  # (1, 3, h, w), sRGB in [0, 1], on the device
    targets: StyleTargets  # targets of the pastiche's style loss
    code: Tensor  # the network's input: one-hot (1, S), or the painting's moments (1, M)


class KnownStyles:
    """Fixed styles, each with its own scales and shifts, and with targets made once."""

    def __init__(self, task: NetworkTask, criterion: Criterion) -> None:
        blank = task.preview.new_zeros(1, 3, task.config.crop, task.config.crop)
        self.shown = [code[None] for code in torch.eye(len(task.styles)).to(task.preview)]
        self.all = [
            Style(style, style_targets_of(task.extractor, criterion, pair(blank, style)), code)
            for style, code in zip(task.styles.values(), self.shown, strict=True)
        ]

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return a random style number for each picture, (count,)."""
        return torch.randint(len(self.all), (count,), generator=generator)

    def of(self, drawn: Tensor, content: Tensor) -> Style:
        """Return style number `drawn`; the content image is not used."""
        return self.all[int(drawn)]


class AnyStyles:
    """Random crops of a folder's paintings; some pictures are their own style image."""

    def __init__(self, task: NetworkTask, paintings: Photos, criterion: Criterion) -> None:
        self.task, self.paintings, self.criterion = task, paintings, criterion
        self.eye = build_eye(task.preview.device, task.extractor.dtype)
        self.size = max(task.config.style_size, task.least)

    @property
    def shown(self) -> list[Tensor]:
        """The codes of the first paintings, for the preview."""
        shown = range(min(SHOWN, len(self.paintings)))
        return [moments(self.eye, self._painting(number, self.size)) for number in shown]

    def usual(self) -> Tensor:
        """Return the moments (USUAL, M) of random paintings, which depend only on the seed."""
        drawn = self.draw(USUAL, generator_at(self.task.config.seed, -1))
        return torch.cat([moments(self.eye, self._crop(one)) for one in drawn])

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return random numbers in [0, 1), (count, 6), that determine each picture's style."""
        return torch.rand((count, 6), generator=generator)

    @torch.no_grad()
    def of(self, drawn: Tensor, content: Tensor) -> Style:
        """Return a crop of a painting, or rarely the content image (1, 3, H, W) itself."""
        style = content if float(drawn[5]) < OWN else self._crop(drawn)
        extractor, inputs = self.task.extractor, pair(content, style)
        if self.task.config.features != FeaturesConfig() or SEEN.keys() - extractor.layers.keys():
            targets = style_targets_of(extractor, self.criterion, inputs)
            return Style(style, targets, moments(self.eye, style))
        # The losses and the encoder share one extractor and one pass.
        seen = extractor(style, self.criterion.styles.keys() | SEEN)
        with_mean = self.criterion.measure.with_mean

        def measured(_: Tensor, places: Sequence[Place]) -> list[Moments]:
            return [feature_moments(seen[layer], with_mean, at) for layer, at in places]

        targets = style_targets(self.criterion, extractor, inputs, measured)
        return Style(style, targets, moments_of(seen))

    def _crop(self, drawn: Tensor) -> Tensor:
        which, close, mirrored, down, right, _ = drawn.tolist()
        number = int(which * len(self.paintings))
        painting = self._painting(number, round(self.size * (1 + CLOSEST * close)))
        height, width = (min(side, self.size) for side in painting.shape[2:])
        top = int(down * (painting.shape[2] - height + 1))
        left = int(right * (painting.shape[3] - width + 1))
        crop = painting[:, :, top : top + height, left : left + width]
        return crop.flip(3) if mirrored < 0.5 else crop

    def _painting(self, number: int, size: int) -> Tensor:
        """Return painting `number`; its longer side is `size`, or more for the deepest layer."""
        painting = self.paintings[number][None]
        height, width = painting.shape[2:]
        longer = max(size, math.ceil(self.task.least * max(height, width) / min(height, width)))
        resized = images.resize(painting, images.scaled_size((height, width), longer))
        return resized.to(self.task.preview)
