"""Pictures that optimisation under the student itself produces, for the student to learn from.

An optimiser finds exactly what a student gets wrong: noise it cannot see, strokes it sees twice.
A buffer of small style transfers goes on beside the training, and the teacher judges its pictures
(the student's own experience, replayed: Lin 1992).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.settings import CONTENT_LAYER, STYLE_LAYERS
from tools.distill.errors import LOSS_LAYERS, gram, relative_by_picture

# Each visit makes this many Adam steps; a picture lives 1 / RENEWAL visits on average.
STEPS_PER_VISIT = 2
RENEWAL = 1 / 40
# Step sizes drawn per picture, in sRGB units: from careful to violent optimisers.
LEARNING_RATES = (0.01, 0.05)
# Content weight drawn per picture, against a style weight of 1 (log-uniform).
CONTENT_WEIGHTS = (0.003, 0.3)

MakePictures = Callable[[int, torch.Generator], Tensor]


@dataclass
class ReplayBuffer:
    """Style transfers in progress: pictures are (P, 3, S, S), in [0, 1]."""

    image: Tensor  # current pictures
    content: Tensor
    style: Tensor
    momentum: Tensor  # Adam's first moment
    square: Tensor  # Adam's second moment
    age: Tensor  # (P,) Adam steps made
    rate: Tensor  # (P,) learning rates
    weight: Tensor  # (P,) content weights

    @classmethod
    def start(
        cls, count: int, make: MakePictures, generator: torch.Generator, device: torch.device
    ) -> "ReplayBuffer":
        """Return a buffer of `count` fresh transfers between pictures from `make`."""
        content, style = make(count, generator), make(count, generator)
        pictures = [torch.zeros_like(content, device=device) for _ in range(5)]
        numbers = [torch.zeros(count, device=device) for _ in range(3)]
        buffer = cls(*pictures, *numbers)
        for row in range(count):
            buffer._renew(row, content[row], style[row], generator)
        return buffer

    def advance(
        self,
        student: FeatureExtractor,
        rows: Sequence[int],
        make: MakePictures,
        generator: torch.Generator,
    ) -> Tensor:
        """Renew a few of `rows`, optimise all under `student`, and return them (n, 3, S, S)."""
        index = torch.tensor(rows, device=self.image.device)
        old = (torch.rand(len(rows), generator=generator) < RENEWAL).nonzero().flatten().tolist()
        if old:
            fresh = make(2 * len(old), generator)
            for number, position in enumerate(old):
                self._renew(rows[position], fresh[2 * number], fresh[2 * number + 1], generator)
        with torch.no_grad():
            style = student(self.style[index], STYLE_LAYERS)
            grams = {layer: gram(feature) for layer, feature in style.items()}
            content = student(self.content[index], [CONTENT_LAYER])[CONTENT_LAYER].float()
        image = self.image[index]
        for _ in range(STEPS_PER_VISIT):
            image = image.detach().requires_grad_()
            features = student(image, LOSS_LAYERS)
            error = relative_by_picture(features[CONTENT_LAYER].float(), content)
            loss = self.weight[index] * error
            for layer, target in grams.items():
                loss = loss + relative_by_picture(gram(features[layer]), target) / len(grams)
            (gradient,) = torch.autograd.grad(loss.sum(), image)
            image = self._adam(index, image.detach(), gradient)
        self.image[index] = image
        return image

    def _renew(self, row: int, content: Tensor, style: Tensor, generator: torch.Generator) -> None:
        """Begin a transfer anew, with a learning rate and a weight of its own."""

        def uniform(low: float, high: float) -> Tensor:
            return low + (high - low) * torch.rand((), generator=generator)

        noise = torch.rand(content.shape, generator=generator)
        share = uniform(0, 1) ** 3  # mostly content, now and then nearly pure noise
        self.content[row], self.style[row] = content, style
        self.image[row] = torch.lerp(content, noise, share)
        self.momentum[row] = self.square[row] = self.age[row] = 0
        self.rate[row] = uniform(*LEARNING_RATES)
        low, high = CONTENT_WEIGHTS
        self.weight[row] = low * (high / low) ** uniform(0, 1)

    def _adam(self, index: Tensor, image: Tensor, gradient: Tensor) -> Tensor:
        """One Adam step per picture (arXiv:1412.6980, betas 0.9 and 0.99), clamped to [0, 1]."""
        self.age[index] += 1
        age = self.age[index].view(-1, 1, 1, 1)
        first = self.momentum[index].lerp(gradient, 0.1)
        second = self.square[index].lerp(gradient.square(), 0.01)
        self.momentum[index], self.square[index] = first, second
        direction = (first / (1 - 0.9**age)) / ((second / (1 - 0.99**age)).sqrt() + 1e-12)
        return (image - self.rate[index].view(-1, 1, 1, 1) * direction).clamp(0, 1)
