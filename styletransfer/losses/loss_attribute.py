"""The PyTorch 0.4 way: a loss module keeps its loss in an attribute.

The module has no `backward`. The driver sums weight times loss over all modules and calls
`.backward()` on the sum once, so the network is walked once, however many losses there are. The
weight is in the driver and acts linearly.
"""

from torch import Tensor, nn

from styletransfer.losses.cosine import cosine_loss
from styletransfer.losses.mode import LossMode, differentiate_sum
from styletransfer.losses.moments import moments
from styletransfer.losses.squares import content_loss
from styletransfer.losses.style import GRAM, StyleMeasure


class ContentLoss(nn.Module):
    """A transparent layer that computes MSE(F, P).

    Args:
        target: P, the content's features, (1, C, H, W).
    """

    target: Tensor

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.loss: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        self.loss = content_loss(features, self.target)
        return features


class MatchLoss(nn.Module):
    """A transparent layer that computes the mean of 1 - cos(F_p, T_p) over positions p.

    Args:
        target: T, features of the style, (1, C, H, W).
    """

    target: Tensor

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.loss: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        self.loss = cosine_loss(features, self.target)
        return features


class StyleLoss(nn.Module):
    """A transparent layer that computes a style loss, MSE(G, A) for Gram matrices.

    Args:
        target: the style's statistic, for Gram matrices A (C, C).
        measure: which statistic is compared, and how.
        weights: (H, W), weights of the positions; None weighs all alike.
    """

    target: Tensor
    weights: Tensor | None

    def __init__(
        self, target: Tensor, measure: StyleMeasure = GRAM, weights: Tensor | None = None
    ) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.register_buffer("weights", weights)
        self.measure = measure
        self.loss: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        found = moments(features, self.measure.with_mean, self.weights)
        self.loss = self.measure.loss(found, self.target)
        return features


MODE = LossMode(
    name="loss_attribute",
    content=lambda target, weight: ContentLoss(target),
    match=lambda target, weight: MatchLoss(target),
    style=lambda target, weight, measure, weights: StyleLoss(target, measure, weights),
    differentiate=differentiate_sum,
)
