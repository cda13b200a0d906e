"""The PyTorch 0.4 way: a loss module keeps its loss in an attribute.

The driver sums weight times loss over all modules and calls `.backward()` once, so the trunk is
walked once however many losses hang on it. The weight sits in the driver and acts linearly.
"""

from torch import Tensor, nn

from styletransfer.functions.moments import moments
from styletransfer.losses import GRAM, StyleMeasure, content_loss
from styletransfer.modes.mode import LossMode, differentiate_sum


class ContentLoss(nn.Module):
    """A transparent layer that computes MSE(F, P).

    Args:
        target: P, (1, C, H, W); detached and kept as a buffer.
    """

    target: Tensor

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.loss: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) as they came."""
        self.loss = content_loss(features, self.target)
        return features


class StyleLoss(nn.Module):
    """A transparent layer that computes a style loss, such as MSE(G, A).

    Args:
        target: the style's statistic, for Gram matrices A (C, C); detached and kept as a buffer.
        measure: which statistic, and how far it is from the target.
        weights: (H, W), of the positions of the region that is to have this style; None for all.
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
        """Keep the loss in `self.loss` and return the features (1, C, H, W) as they came."""
        found = moments(features, self.measure.with_mean, self.weights)
        self.loss = self.measure.loss(found, self.target)
        return features


MODE = LossMode(
    name="loss_attribute",
    content=lambda target, weight: ContentLoss(target),
    style=lambda target, weight, measure, weights: StyleLoss(target, measure, weights),
    differentiate=differentiate_sum,
)
