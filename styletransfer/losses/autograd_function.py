"""A real backward: each loss is computed by a `torch.autograd.Function` that returns its input.

Autograd calls the `backward` of such a Function, because the Function is a node of the graph. A
layer returns the Function's output, which equals the layer's input. So the gradient from deeper
layers passes through this node, too, and leaves it with the loss's gradient added.

Each Function is beside its loss: `ContentTap` in `content.py`, `ProductsTap` in `match.py`, and
`MomentsTap`, for all style losses, in `moments.py`. The sum of the losses is differentiated as in
`loss_attribute.py`.
"""

from torch import Tensor

from styletransfer.losses.content import ContentDistance
from styletransfer.losses.distance import Distance
from styletransfer.losses.loss_attribute import differentiate_sum
from styletransfer.losses.mode import LossLayer, LossMode
from styletransfer.losses.style import GRAM, StyleDistance, StyleMeasure


class AutogradFunction(LossLayer):
    """This layer returns its input F and keeps L(F) in `loss`, whose backward is written by hand.

    Args:
        distance: L, the loss that the layer carries.
    """

    def __init__(self, distance: Distance) -> None:
        super().__init__()
        self.distance = distance

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss`; return the features; backward adds the loss's gradient."""
        tapped, self.loss = self.distance.tap(features)
        return tapped


class ContentLoss(AutogradFunction):
    """MSE(F, P) for the content image's features P (1, C, H, W)."""

    def __init__(self, target: Tensor) -> None:
        super().__init__(ContentDistance(target))


class StyleLoss(AutogradFunction):
    """MSE(G, A): G and A are the Gram matrices (C, C) of the features and of the style image."""

    def __init__(self, target: Tensor, measure: StyleMeasure = GRAM) -> None:
        super().__init__(StyleDistance(target, measure))


MODE = LossMode(
    "autograd_function",
    layer=lambda distance, weight: AutogradFunction(distance),
    differentiate=differentiate_sum,
    is_closed_form=True,
)
