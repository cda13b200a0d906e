"""The content loss: the mean squared difference from the features of the content image."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer.features.tensors import accumulate_dtype, check_target
from styletransfer.losses.distance import PositionalDistance


def mean_square(difference: Tensor) -> Tensor:
    """Return mean(difference^2), 0-d, summed in float32 for bfloat16, else in its own dtype."""
    return difference.to(accumulate_dtype(difference.dtype)).square().mean()


class ContentDistance(PositionalDistance):
    """L = mean((F - P)^2), where the target P (1, C, H, W) are the content image's features.

    This is equation 1 of Gatys et al. 2016, as a mean instead of half a sum.
    """

    def forward(self, features: Tensor) -> Tensor:
        """Call `tap`: keep L in `loss`, and return the features unchanged (a view)."""
        tapped, self.loss = self.tap(features)
        return tapped

    def value(self, features: Tensor) -> Tensor:
        """Return L, 0-d, computed by torch's operations, which autograd differentiates."""
        return mean_square(features - self.target)

    def scaled(self, features: Tensor, weight: float) -> Tensor:
        """Return mean((F w - P w)^2) = w^2 L: the weight w stands inside the square."""
        return mean_square((features - self.target) * weight)

    def tap(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features unchanged (a view), and L; `ContentTap` computes the gradient.

        Raises ValueError if features and target differ in shape, or are not (1, C, H, W).
        """
        check_target("ContentDistance", features, self.target)
        tapped, loss = ContentTap.apply(features, self.target)
        return tapped, loss


class ContentTap(Function):
    """This Function computes L = mean((F - P)^2) and its gradient dL/dF = 2 (F - P) / (C H W)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features (a view, no copy) and the 0-d loss."""
        return features.view_as(features), mean_square(features - target)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, ...]) -> None:
        """Save F and the target P, which are in memory anyway; F - P would take more memory."""
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        """Return the gradient of the features; the target, a constant, has none."""
        grad_features, grad_loss = grads
        if grad_loss is None:
            return grad_features, None
        features, target = ctx.saved_tensors
        difference = features - target
        factor = (grad_loss * (2 / features.numel())).to(features.dtype)
        if grad_features is None:
            return difference * factor, None
        return torch.addcmul(grad_features, difference, factor), None
