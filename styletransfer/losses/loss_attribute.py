"""The PyTorch 0.4 way: a loss module keeps its loss in an attribute.

The module has no `backward`. The calling code sums weight times loss over all modules and calls
`.backward()` on the sum once, so the network is walked once, however many losses there are. The
weight is in the calling code and acts linearly.
"""

from torch import Tensor

from styletransfer.losses import LossLayer, LossMode, differentiate_sum
from styletransfer.losses.cosine import cosine_loss
from styletransfer.losses.moments import moments
from styletransfer.losses.squares import content_loss
from styletransfer.losses.style import GRAM, StyleMeasure


class ContentLoss(LossLayer):
    """This layer returns its input F and keeps MSE(F, P) in `loss`.

    Args:
        target: P, the content image's features at this layer, (1, C, H, W).
    """

    target: Tensor

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        self.loss = content_loss(features, self.target)
        return features


class MatchLoss(LossLayer):
    """This layer returns its input F and keeps mean_p(1 - cos(F_p, T_p)) over positions p.

    Args:
        target: T, (1, C, H, W), at each position the features of the most similar style position.
    """

    target: Tensor

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        self.loss = cosine_loss(features, self.target)
        return features


class StyleLoss(LossLayer):
    """This layer returns its input and keeps a style loss; for Gram matrices G, MSE(G, A).

    Args:
        target: the statistic of the style image; for the Gram loss its Gram matrix A (C, C).
        measure: the statistic that is compared, and the distance.
        weights: (H, W), the weights of the feature map's positions; None for equal weights.
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
