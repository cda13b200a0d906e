"""The PyTorch 0.3 way: a loss module with a method called `backward`.

Autograd knows nothing of that method. `loss.backward()` on a network that holds such modules walks
the graph of operations and never enters it; only a driver that calls it by hand does. Each call
walks the trunk below its own layer again, and `retain_graph=True` keeps every saved tensor alive
for the calls that follow.

The weight sits inside, on the features and on the Gram matrix: MSE(F w, P w) = w^2 MSE(F, P). So
it acts squared, which is why the 0.3 tutorial's style weight of 1000 and the 0.4 tutorial's of
1 000 000 name the same objective. (A style loss that is no squared distance, such as
Wasserstein's, has no inside for it: there it stands before the loss, squared.)
"""

import math
from collections.abc import Sequence

from torch import Tensor

from styletransfer.functions.moments import moments
from styletransfer.losses import GRAM, StyleMeasure, mean_square
from styletransfer.modes.mode import LossLayer, LossMode, Term


class _FakeLoss(LossLayer):
    """A transparent layer that can be told to differentiate its loss.

    Its target is kept already weighted, where the weight goes inside: w, at least 0, acts squared.
    """

    def __init__(
        self,
        target: Tensor,
        weight: float,
        measure: StyleMeasure = GRAM,
        weights: Tensor | None = None,
    ) -> None:
        super().__init__(target * (weight if measure.is_squared else 1.0), measure, weights)
        self.weight = weight

    def backward(self, retain_graph: bool = True) -> Tensor:
        """Differentiate the loss of the last forward; called by the driver, never by autograd."""
        if self.loss is None:
            raise RuntimeError("backward() was called before forward(): there is no loss yet")
        self.loss.backward(retain_graph=retain_graph)  # type: ignore[no-untyped-call]
        return self.loss


class ContentLoss(_FakeLoss):
    """A transparent layer that computes MSE(F w, P w)."""

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) as they came."""
        self.loss = mean_square(features * self.weight - self.target)
        return features


class StyleLoss(_FakeLoss):
    """A transparent layer that computes a style loss, such as MSE(G w, A w)."""

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) as they came."""
        found = moments(features, self.measure.with_mean, self.weights)
        statistic = self.measure.statistic(found)
        if self.measure.is_squared:
            self.loss = self.measure.distance(statistic * self.weight, self.target)
        else:
            self.loss = self.weight**2 * self.measure.distance(statistic, self.target)
        return features


def _drive(terms: Sequence[Term], prior: Tensor | None) -> list[Tensor]:
    """Call every module's own `backward`; the gradients add up in the image."""
    losses = [term.module.backward() for term in terms]  # type: ignore[operator]
    if prior is not None:
        prior.backward()  # type: ignore[no-untyped-call]
    return losses


MODE = LossMode(
    name="fake_backward",
    content=lambda target, weight: ContentLoss(target, math.sqrt(weight)),
    style=lambda target, weight, measure, weights: StyleLoss(
        target, math.sqrt(weight), measure, weights
    ),
    differentiate=_drive,
)
