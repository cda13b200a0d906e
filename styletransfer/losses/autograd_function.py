"""A real backward: each kind of loss has a `torch.autograd.Function` with its own `backward`.

Autograd calls this `backward`, because the Function is a node of the graph. The Function returns
two things: the features, unchanged, and the loss or values from which the loss follows. The loss
layer passes these features on to the next layer. So the gradient from deeper layers passes through
this node, too, and the node adds the gradient of the loss to it.

The Functions are `ContentTap` in `content.py`, `ProductsTap` in `match.py`, and `MomentsTap`, for
all style losses, in `moments.py`. `.backward()` is called once, on the weighted sum of the losses:
by `differentiate_sum`, in `loss_attribute.py`.
"""

from torch import Tensor

from styletransfer.losses.content import ContentDistance
from styletransfer.losses.distance import Distance
from styletransfer.losses.loss_attribute import differentiate_sum
from styletransfer.losses.mode import LossLayer, LossMode
from styletransfer.losses.style import GRAM, StyleDistance, StyleMeasure


class AutogradFunction(LossLayer):
    """This layer returns its input F and keeps L(F) in `loss`; the gradient is written by hand.

    Args:
        distance: L, the loss that the layer computes.
    """

    def __init__(self, distance: Distance) -> None:
        super().__init__()
        self.distance = distance

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss`; return the features; backward adds the loss's gradient."""
        tapped, self.loss = self.distance.tap(features)
        return tapped


class ContentLoss(AutogradFunction):
    """MSE(F, P): F and P (1, C, H, W) are the features of the input and of the content image."""

    def __init__(self, target: Tensor) -> None:
        super().__init__(ContentDistance(target))


class StyleLoss(AutogradFunction):
    """With GRAM, MSE(G, A): G, A are the Gram matrices (C, C) of the input and the style image."""

    def __init__(self, target: Tensor, measure: StyleMeasure = GRAM) -> None:
        super().__init__(StyleDistance(target, measure))


MODE = LossMode(
    "autograd_function",
    layer=lambda distance, weight: AutogradFunction(distance),
    differentiate=differentiate_sum,
    is_closed_form=True,
)
