"""A real backward: the layer is a `torch.autograd.Function` with two outputs, features and loss.

Here autograd does enter `backward`, because the Function is a node of its graph. The gradient of
the loss is written in closed form and joined to the features' own gradient in one fused product;
there is no subgraph of Gram matrix, difference and mean to build, keep and walk.
"""

from torch import Tensor, nn

from styletransfer.functions import content_tap, style_tap
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
        """Keep the loss in `self.loss` and pass the features (1, C, H, W) through the layer."""
        tapped, self.loss = content_tap(features, self.target)
        return tapped


class StyleLoss(nn.Module):
    """A transparent layer whose loss MSE(G, A) has a backward of its own.

    Args:
        target: A, the style's Gram matrix (C, C); detached and kept as a buffer.
    """

    target: Tensor

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.loss: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and pass the features (1, C, H, W) through the layer."""
        tapped, self.loss = style_tap(features, self.target)
        return tapped


MODE = LossMode(
    name="autograd_function",
    content=lambda target, weight: ContentLoss(target),
    style=lambda target, weight: StyleLoss(target),
    differentiate=differentiate_sum,
)
