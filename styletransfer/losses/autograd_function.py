"""A real backward: each loss is computed by a `torch.autograd.Function` that returns its input.

Autograd calls the `backward` of such a Function, because the Function is a node of the graph. A
layer returns the Function's output, which equals the layer's input. So the gradient from deeper
layers passes through this node, too, and leaves it with the loss's gradient added.

The content loss has a closed-form gradient. A style loss has two steps. The first, from the
features to their moments (means over positions), has a closed-form gradient, which is added to the
features' own gradient in one fused product. The second, from the moments to the loss, is a few
operations on small matrices, which autograd differentiates.
"""

from torch import Tensor

from styletransfer.losses import LossLayer, LossMode, differentiate_sum
from styletransfer.losses.cosine import cosine_tap
from styletransfer.losses.moments import moments_tap
from styletransfer.losses.squares import content_tap
from styletransfer.losses.style import GRAM, StyleMeasure


class ContentLoss(LossLayer):
    """This layer returns its input F and keeps MSE(F, P), whose backward is written by hand.

    Args:
        target: P, the content image's features at this layer, (1, C, H, W).
    """

    target: Tensor

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())

    def forward(self, features: Tensor) -> Tensor:
        """Keep `self.loss`; return the features unchanged; backward adds the loss's gradient."""
        tapped, self.loss = content_tap(features, self.target)
        return tapped


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
        """Keep `self.loss`; return the features unchanged; backward adds the loss's gradient."""
        tapped, self.loss = cosine_tap(features, self.target)
        return tapped


class StyleLoss(LossLayer):
    """This layer returns its input and keeps a style loss with a partly hand-written backward.

    Args:
        target: the statistic of the style image; for the Gram loss its Gram matrix (C, C).
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
        """Keep `self.loss`; return the features unchanged; backward adds the loss's gradient."""
        tapped, found = moments_tap(features, self.measure.with_mean, self.weights)
        self.loss = self.measure.loss(found, self.target)
        return tapped


MODE = LossMode(
    name="autograd_function",
    content=lambda target, weight: ContentLoss(target),
    match=lambda target, weight: MatchLoss(target),
    style=lambda target, weight, measure, weights: StyleLoss(target, measure, weights),
    differentiate=differentiate_sum,
    is_closed_form=True,
)
