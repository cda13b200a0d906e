"""The PyTorch 0.4 way: a loss module keeps its loss in an attribute.

The driver sums weight times loss over all modules and calls `.backward()` once, so the trunk is
walked once however many losses hang on it. The weight sits in the driver and acts linearly.
"""

from torch import Tensor, nn

from styletransfer.losses.functional import content_loss, style_loss
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
    """A transparent layer that computes MSE(G, A).

    Args:
        target: A, the style's Gram matrix (C, C); detached and kept as a buffer.
    """

    target: Tensor

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.loss: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) as they came."""
        self.loss = style_loss(features, self.target)
        return features


MODE = LossMode(
    name="loss_attribute",
    content=lambda target, weight: ContentLoss(target),
    style=lambda target, weight: StyleLoss(target),
    differentiate=differentiate_sum,
)
