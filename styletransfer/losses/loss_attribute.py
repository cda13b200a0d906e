"""The PyTorch 0.4 way: a loss module keeps its loss in an attribute.

In plain PyTorch, from the complete program docs/examples/loss_attribute.py:

    class ContentLoss(nn.Module):
        def __init__(self, target):
            super().__init__()
            self.register_buffer("target", target.detach())

        def forward(self, features):
            self.loss = mse_loss(features, self.target)
            return features

The module has no `backward`. The calling code sums weight times loss over all modules and calls
`.backward()` on the sum once, so the network is walked once, however many losses there are. The
weight is in the calling code: twice the weight is twice the gradient.
"""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from styletransfer.losses.distance import LossLayer
from styletransfer.losses.mode import Distance, Term


class LossAttribute(LossLayer):
    """This layer returns its input F and keeps L(F) in `loss`.

    Args:
        distance: L, the loss that the layer computes.
    """

    name = "loss_attribute"
    is_closed_form = False

    def __init__(self, distance: Distance) -> None:
        super().__init__()
        self.distance = distance

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        self.loss = self.distance.value(features)
        return features

    @classmethod
    def layer(cls, distance: Distance, weight: float) -> Self:
        """Return a layer with the loss L(F), which `differentiate` multiplies by `weight`."""
        return cls(distance)

    @staticmethod
    def differentiate(terms: Sequence[Term], prior: Tensor | None, output: Tensor) -> list[Tensor]:
        """Call `.backward()` once, on the sum of `prior` and of weight * loss of each term."""
        losses = [term.weight * term.module.loss for term in terms]
        torch.stack(losses if prior is None else [*losses, prior]).sum().backward()
        return losses
