"""A real backward: each loss hangs on a `torch.autograd.Function` that passes the features on.

Here autograd does enter `backward`, because the Function is a node of its graph. What many
positions have in common is written in closed form: the content loss as a whole, and of a style
loss the way from the features to their moments, whose gradient joins the features' own in one
fused product. From the moments to the loss it is a few operations on small matrices, and those
are autograd's.
"""

from torch import Tensor, nn

from styletransfer.functions import content_tap, moments_tap
from styletransfer.losses import GRAM, StyleMeasure
from styletransfer.modes.mode import LossMode, differentiate_sum


class ContentLoss(nn.Module):
    """A transparent layer whose loss MSE(F, P) has a backward of its own.

    Args:
        target: P, (1, C, H, W); detached and kept as a buffer.
    """

    target: Tensor

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.loss: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and pass the features (1, C, H, W) through the tap."""
        tapped, self.loss = content_tap(features, self.target)
        return tapped


class StyleLoss(nn.Module):
    """A transparent layer whose loss, such as MSE(G, A), reaches the features by our backward.

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
        """Keep the loss in `self.loss` and pass the features (1, C, H, W) through the tap."""
        tapped, moments = moments_tap(features, self.measure.with_mean, self.weights)
        self.loss = self.measure.loss(moments, self.target)
        return tapped


MODE = LossMode(
    name="autograd_function",
    content=lambda target, weight: ContentLoss(target),
    style=lambda target, weight, measure, weights: StyleLoss(target, measure, weights),
    differentiate=differentiate_sum,
    is_closed_form=True,
)
