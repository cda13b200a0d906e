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

from torch import Tensor, nn

from styletransfer.functions.moments import moments
from styletransfer.losses import GRAM, StyleMeasure, mean_square
from styletransfer.modes.mode import LossMode, Term


class ContentLoss(nn.Module):
    """A transparent layer that computes MSE(F w, P w) and can be told to differentiate it.

    Args:
        target: P, (1, C, H, W); detached and kept as a buffer, already weighted.
        weight: w, at least 0; acts squared.
    """

    target: Tensor

    def __init__(self, target: Tensor, weight: float) -> None:
        super().__init__()
        self.register_buffer("target", target.detach() * weight)
        self.weight = weight
        self.loss: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) as they came."""
        self.loss = mean_square(features * self.weight - self.target)
        return features

    def backward(self, retain_graph: bool = True) -> Tensor:
        """Differentiate the loss of the last forward; called by the driver, never by autograd."""
        return _differentiate(self.loss, retain_graph)


class StyleLoss(nn.Module):
    """A transparent layer that computes MSE(G w, A w) and can be told to differentiate it.

    Args:
        target: A, the style's Gram matrix (C, C) or other statistic; detached and kept as a
            buffer, already weighted where the weight goes inside.
        weight: w, at least 0; acts squared.
        measure: which statistic, and how far it is from the target.
        weights: (H, W), of the positions of the region that is to have this style; None for all.
    """

    target: Tensor
    weights: Tensor | None

    def __init__(
        self,
        target: Tensor,
        weight: float,
        measure: StyleMeasure = GRAM,
        weights: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("weights", weights)
        inside = weight if measure.is_squared else 1.0
        self.register_buffer("target", target.detach() * inside)
        self.weight, self.measure = weight, measure
        self.loss: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) as they came."""
        found = moments(features, self.measure.with_mean, self.weights)
        statistic = self.measure.statistic(found)
        if self.measure.is_squared:
            self.loss = self.measure.distance(statistic * self.weight, self.target)
        else:
            self.loss = self.weight**2 * self.measure.distance(statistic, self.target)
        return features

    def backward(self, retain_graph: bool = True) -> Tensor:
        """Differentiate the loss of the last forward; called by the driver, never by autograd."""
        return _differentiate(self.loss, retain_graph)


def _differentiate(loss: Tensor | None, retain_graph: bool) -> Tensor:
    if loss is None:
        raise RuntimeError("backward() was called before forward(): there is no loss yet")
    loss.backward(retain_graph=retain_graph)  # type: ignore[no-untyped-call]
    return loss


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
