"""A real backward: each loss hangs on a `torch.autograd.Function` that passes the features on.

Here autograd does enter `backward`, because the Function is a node of its graph. What many
positions have in common is written in closed form: the content loss as a whole, and of a style
loss the way from the features to their moments, whose gradient joins the features' own in one
fused product. From the moments to the loss it is a few operations on small matrices, and those
are autograd's.
"""

from torch import Tensor

from styletransfer.functions import content_tap, moments_tap
from styletransfer.modes.mode import LossLayer, LossMode, differentiate_sum


class ContentLoss(LossLayer):
    """A transparent layer whose loss MSE(F, P) has a backward of its own."""

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and pass the features (1, C, H, W) through the tap."""
        tapped, self.loss = content_tap(features, self.target)
        return tapped


class StyleLoss(LossLayer):
    """A transparent layer whose loss, such as MSE(G, A), reaches the features by our backward."""

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
