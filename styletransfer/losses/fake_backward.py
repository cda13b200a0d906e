"""The PyTorch 0.3 way: a loss module with an ordinary method called `backward`.

Autograd does not know this method. `loss.backward()` on a network that holds such modules walks the
graph of operations and never calls it. The driver calls it by hand, once for each module. Each call
walks the network below its own layer again, and `retain_graph=True` keeps the saved tensors for the
calls that follow.

The weight w multiplies the features and the Gram matrix inside the loss:
MSE(F w, P w) = w^2 MSE(F, P). It therefore acts squared: the style weight of 1000 in the 0.3
tutorial and the style weight of 1 000 000 in the 0.4 tutorial weigh the loss alike. A style loss
that is no squared distance, such as Wasserstein's, is multiplied by w^2 instead.
"""

import math
from collections.abc import Sequence

from torch import Tensor, nn

from styletransfer.losses.cosine import cosine_loss
from styletransfer.losses.mode import LossMode, Term
from styletransfer.losses.moments import moments
from styletransfer.losses.squares import mean_square
from styletransfer.losses.style import GRAM, StyleMeasure

MISSING = "backward() was called before forward(): there is no loss yet"


class ContentLoss(nn.Module):
    """A transparent layer that computes MSE(F w, P w).

    Args:
        target: P, the content's features, (1, C, H, W).
        weight: w, at least 0. It acts squared.
    """

    target: Tensor

    def __init__(self, target: Tensor, weight: float) -> None:
        super().__init__()
        self.register_buffer("target", target.detach() * weight)
        self.weight = weight
        self.loss: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        self.loss = mean_square(features * self.weight - self.target)
        return features

    def backward(self, retain_graph: bool = True) -> Tensor:
        """Differentiate the loss of the last forward. The driver calls this, never autograd."""
        if self.loss is None:
            raise RuntimeError(MISSING)
        self.loss.backward(retain_graph=retain_graph)  # type: ignore[no-untyped-call]
        return self.loss


class MatchLoss(nn.Module):
    """A transparent layer that computes w^2 times the mean of 1 - cos(F_p, T_p) over positions p.

    A cosine does not change when both features are multiplied by w, so w^2 stands outside.

    Args:
        target: T, features of the style, (1, C, H, W).
        weight: w, at least 0.
    """

    target: Tensor

    def __init__(self, target: Tensor, weight: float) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.weight = weight
        self.loss: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        self.loss = self.weight**2 * cosine_loss(features, self.target)
        return features

    def backward(self, retain_graph: bool = True) -> Tensor:
        """Differentiate the loss of the last forward. The driver calls this, never autograd."""
        if self.loss is None:
            raise RuntimeError(MISSING)
        self.loss.backward(retain_graph=retain_graph)  # type: ignore[no-untyped-call]
        return self.loss


class StyleLoss(nn.Module):
    """A transparent layer that computes a style loss, MSE(G w, A w) for Gram matrices.

    Args:
        target: the style's statistic, for Gram matrices A (C, C).
        weight: w, at least 0. It acts squared.
        measure: which statistic is compared, and how.
        weights: (H, W), weights of the positions; None weighs all alike.
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
        self.register_buffer("target", target.detach() * (weight if measure.is_squared else 1.0))
        self.register_buffer("weights", weights)
        self.weight, self.measure = weight, measure
        self.loss: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        found = moments(features, self.measure.with_mean, self.weights)
        statistic = self.measure.statistic(found)
        if self.measure.is_squared:
            self.loss = self.measure.distance(statistic * self.weight, self.target)
        else:
            self.loss = self.weight**2 * self.measure.distance(statistic, self.target)
        return features

    def backward(self, retain_graph: bool = True) -> Tensor:
        """Differentiate the loss of the last forward. The driver calls this, never autograd."""
        if self.loss is None:
            raise RuntimeError(MISSING)
        self.loss.backward(retain_graph=retain_graph)  # type: ignore[no-untyped-call]
        return self.loss


def make_content_loss(target: Tensor, weight: float) -> ContentLoss:
    """Return the layer for a linear weight: w acts squared, so w = sqrt(weight)."""
    return ContentLoss(target, math.sqrt(weight))


def make_match_loss(target: Tensor, weight: float) -> MatchLoss:
    """Return the layer for a linear weight: w acts squared, so w = sqrt(weight)."""
    return MatchLoss(target, math.sqrt(weight))


def make_style_loss(
    target: Tensor, weight: float, measure: StyleMeasure, weights: Tensor | None
) -> StyleLoss:
    """Return the layer for a linear weight: w acts squared, so w = sqrt(weight)."""
    return StyleLoss(target, math.sqrt(weight), measure, weights)


def call_each_backward(terms: Sequence[Term], prior: Tensor | None, output: Tensor) -> list[Tensor]:
    """Call every module's own `backward`; the gradients add up in the image."""
    losses = [term.module.backward() for term in terms]  # type: ignore[operator]
    if prior is not None:
        prior.backward()  # type: ignore[no-untyped-call]
    return losses


MODE = LossMode(
    name="fake_backward",
    content=make_content_loss,
    match=make_match_loss,
    style=make_style_loss,
    differentiate=call_each_backward,
)
