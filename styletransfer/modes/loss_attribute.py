"""The PyTorch 0.4 way: a loss module keeps its loss in an attribute.

The driver sums weight times loss over all modules and calls `.backward()` once, so the trunk is
walked once however many losses hang on it. The weight sits in the driver and acts linearly.
"""

from torch import Tensor

from styletransfer.functions.moments import moments
from styletransfer.losses import content_loss
from styletransfer.modes.mode import LossLayer, LossMode, differentiate_sum


class ContentLoss(LossLayer):
    """A transparent layer that computes MSE(F, P)."""

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) as they came."""
        self.loss = content_loss(features, self.target)
        return features


class StyleLoss(LossLayer):
    """A transparent layer that computes a style loss, such as MSE(G, A)."""

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
