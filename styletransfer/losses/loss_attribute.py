"""The PyTorch 0.4 way: a loss module keeps its loss in an attribute.

The module has no `backward`. The calling code sums weight times loss over all modules and calls
`.backward()` on the sum once, so the network is walked once, however many losses there are. The
weight is in the calling code and acts linearly.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from styletransfer.losses.content import ContentDistance
from styletransfer.losses.distance import Distance
from styletransfer.losses.mode import LossLayer, LossMode, Term
from styletransfer.losses.style import GRAM, StyleDistance, StyleMeasure


class LossAttribute(LossLayer):
    """This layer returns its input F and keeps L(F) in `loss`.

    Args:
        distance: L, the loss that the layer computes.
    """

    def __init__(self, distance: Distance) -> None:
        super().__init__()
        self.distance = distance

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        self.loss = self.distance(features)
        return features


class ContentLoss(LossAttribute):
    """MSE(F, P): F and P (1, C, H, W) are the features of the input and of the content image."""

    def __init__(self, target: Tensor) -> None:
        super().__init__(ContentDistance(target))


class StyleLoss(LossAttribute):
    """With GRAM, MSE(G, A): G, A are the Gram matrices (C, C) of the input and the style image."""

    def __init__(self, target: Tensor, measure: StyleMeasure = GRAM) -> None:
        super().__init__(StyleDistance(target, measure))


def differentiate_sum(terms: Sequence[Term], prior: Tensor | None, output: Tensor) -> list[Tensor]:
    """Call `.backward()` once on the sum of all weighted losses; return weight * loss of each term.

    `prior` is a further loss in this sum, or None. It is a loss of the picture's pixels, such as
    total variation, and is already weighted. The returned list does not contain it.
    """
    losses = [term.weight * term.module.loss for term in terms]
    total = torch.stack(losses).sum()
    if prior is not None:
        total = total + prior
    total.backward()
    return losses


MODE = LossMode(
    "loss_attribute",
    layer=lambda distance, weight: LossAttribute(distance),
    differentiate=differentiate_sum,
)
