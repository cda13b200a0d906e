"""The PyTorch 0.3 way: a loss module with an ordinary method called `backward`.

Autograd does not know this method. `loss.backward()` on a network that holds such modules walks the
graph of operations and never calls it. The calling code calls it, once for each module. Each call
walks the graph from its own layer to the image again, and `retain_graph=True` keeps the saved
tensors for the calls that follow.

The weight w multiplies the features and the Gram matrix inside the loss:
MSE(F w, P w) = w^2 MSE(F, P). It therefore acts squared: the style weight of 1000 in the 0.3
tutorial and the style weight of 1 000 000 in the 0.4 tutorial weigh the loss alike. A style loss
that is no squared distance, such as Wasserstein's, is multiplied by w^2 instead.
"""

import math
from collections.abc import Sequence

from torch import Tensor

from styletransfer.losses import LossLayer, LossMode, Term
from styletransfer.losses.cosine import cosine_loss
from styletransfer.losses.moments import moments
from styletransfer.losses.squares import mean_square
from styletransfer.losses.style import GRAM, StyleMeasure


class ContentLoss(LossLayer):
    """This layer returns its input F and keeps MSE(F w, P w) in `loss`.

    Args:
        target: P, the content image's features at this layer, (1, C, H, W).
        weight: w, at least 0; the loss is proportional to w^2.
    """

    target: Tensor

    def __init__(self, target: Tensor, weight: float) -> None:
        super().__init__()
        self.register_buffer("target", target.detach() * weight)
        self.weight = weight

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        self.loss = mean_square(features * self.weight - self.target)
        return features

    def backward(self, retain_graph: bool = True) -> Tensor:
        """Differentiate the last forward's loss; the objective calls this, autograd never does."""
        self.loss.backward(retain_graph=retain_graph)  # type: ignore[no-untyped-call]
        return self.loss


class MatchLoss(LossLayer):
    """This layer returns its input F and keeps w^2 mean_p(1 - cos(F_p, T_p)) over positions p.

    A cosine does not change when both vectors are multiplied by w, so w^2 multiplies the loss.

    Args:
        target: T, (1, C, H, W), at each position the features of the most similar style position.
        weight: w, at least 0.
    """

    target: Tensor

    def __init__(self, target: Tensor, weight: float) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.weight = weight

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        self.loss = self.weight**2 * cosine_loss(features, self.target)
        return features

    def backward(self, retain_graph: bool = True) -> Tensor:
        """Differentiate the last forward's loss; the objective calls this, autograd never does."""
        self.loss.backward(retain_graph=retain_graph)  # type: ignore[no-untyped-call]
        return self.loss


class StyleLoss(LossLayer):
    """This layer returns its input and keeps a style loss; for Gram matrices G, MSE(G w, A w).

    Args:
        target: the statistic of the style image; for the Gram loss its Gram matrix A (C, C).
        weight: w, at least 0; the loss is proportional to w^2.
        measure: the statistic that is compared, and the distance.
        weights: (H, W), the weights of the feature map's positions; None for equal weights.
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
        """Differentiate the last forward's loss; the objective calls this, autograd never does."""
        self.loss.backward(retain_graph=retain_graph)  # type: ignore[no-untyped-call]
        return self.loss


def make_content_loss(target: Tensor, weight: float) -> ContentLoss:
    """Return the layer whose loss has the factor `weight`: w acts squared, so w = sqrt(weight)."""
    return ContentLoss(target, math.sqrt(weight))


def make_match_loss(target: Tensor, weight: float) -> MatchLoss:
    """Return the layer whose loss has the factor `weight`: w acts squared, so w = sqrt(weight)."""
    return MatchLoss(target, math.sqrt(weight))


def make_style_loss(
    target: Tensor, weight: float, measure: StyleMeasure, weights: Tensor | None
) -> StyleLoss:
    """Return the layer whose loss has the factor `weight`: w acts squared, so w = sqrt(weight)."""
    return StyleLoss(target, math.sqrt(weight), measure, weights)


def call_each_backward(terms: Sequence[Term], prior: Tensor | None, output: Tensor) -> list[Tensor]:
    """Call every loss module's own `backward`; the gradients add up in the image's `.grad`."""
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
