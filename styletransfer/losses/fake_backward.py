"""The PyTorch 0.3 way: a loss module with an ordinary method called `backward`.

Autograd does not know this method. `loss.backward()` on a network that holds such modules walks the
graph of operations and never calls it. The calling code calls it, once for each module. Each call
walks the graph from its own layer to the image again, and `retain_graph=True` keeps the saved
tensors for the calls that follow.

The weight w multiplies the features, or the Gram matrix, inside the loss:
MSE(F w, P w) = w^2 MSE(F, P). It therefore acts squared: the style weight of 1000 in the 0.3
tutorial has the same effect as the style weight of 1 000 000 in the 0.4 tutorial. A loss that is
no squared difference, such as the Wasserstein distance, is multiplied by w^2 instead.
"""

import math
from collections.abc import Sequence

from torch import Tensor

from styletransfer.losses.content import ContentDistance
from styletransfer.losses.distance import Distance
from styletransfer.losses.mode import LossLayer, LossMode, Term
from styletransfer.losses.style import GRAM, StyleDistance, StyleMeasure


class FakeBackward(LossLayer):
    """This layer returns its input F and keeps w^2 L(F) in `loss`; see `Distance.scaled`.

    Args:
        distance: L, the loss that the layer computes.
        weight: w, at least 0.
    """

    def __init__(self, distance: Distance, weight: float) -> None:
        super().__init__()
        self.distance, self.weight = distance, weight

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        self.loss = self.distance.scaled(features, self.weight)
        return features

    def backward(self, retain_graph: bool = True) -> Tensor:
        """Differentiate the loss of the last forward; autograd never calls this method."""
        self.loss.backward(retain_graph=retain_graph)
        return self.loss


class ContentLoss(FakeBackward):
    """MSE(F w, P w): w is a weight; F, P (1, C, H, W) are features of input and content image."""

    def __init__(self, target: Tensor, weight: float) -> None:
        super().__init__(ContentDistance(target), weight)


class StyleLoss(FakeBackward):
    """With GRAM, MSE(w G, w A): w is a weight; G, A are Gram matrices (C, C) of input and style."""

    def __init__(self, target: Tensor, weight: float, measure: StyleMeasure = GRAM) -> None:
        super().__init__(StyleDistance(target, measure), weight)


def call_each_backward(terms: Sequence[Term], prior: Tensor | None, output: Tensor) -> list[Tensor]:
    """Call `backward` of each loss and of `prior`; the gradients add up in the image's `.grad`."""
    losses = [term.module.backward() for term in terms]  # type: ignore[operator]
    if prior is not None:
        prior.backward()
    return losses


def with_root(distance: Distance, weight: float) -> FakeBackward:
    """Return a layer with the loss `weight` * L(F): w acts squared, so w = sqrt(weight)."""
    return FakeBackward(distance, math.sqrt(weight))


MODE = LossMode("fake_backward", layer=with_root, differentiate=call_each_backward)
