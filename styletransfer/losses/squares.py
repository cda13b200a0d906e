"""Losses that are mean squares: of differences of features, pictures or neighbouring pixels."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer.system.tensors import accumulate_dtype, check_target


def mean_square(difference: Tensor) -> Tensor:
    """Return mean(difference^2), 0-d, summed in float32 or wider."""
    return difference.to(accumulate_dtype(difference.dtype)).square().mean()


def content_loss(features: Tensor, target: Tensor) -> Tensor:
    """Return mean((F - P)^2): equation 1 of Gatys et al. 2016 as a mean instead of half a sum.

    F are the features (1, C, H, W), and P the target, of the same shape.
    """
    return mean_square(features - target)


class ContentTap(Function):
    """This Function computes L = mean((F - P)^2) and its gradient dL/dF = 2 (F - P) / (C H W)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features (a view, no copy) and the 0-d loss."""
        difference = (features - target).to(accumulate_dtype(features.dtype))
        return features.view_as(features), difference.square().mean()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, ...]) -> None:
        """Save features F and target P, which stay in memory anyway; F - P would need more."""
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


def content_tap(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the features and their distance to a target; both outputs are differentiable.

    Args:
        features: F, (1, C, H, W), floating point, any memory format.
        target: P, a constant of the same shape, dtype and device.

    Returns:
        The features unchanged (a view), and the 0-d loss mean((F - P)^2), at least 0, in float32
        for bfloat16 and float16 features, else in their dtype.

    Raises:
        ValueError: the shapes differ, or are not (1, C, H, W).

    The loss is the content loss of Gatys et al. 2016 (equation 1), as a mean instead of half a sum.
    """
    check_target("content_tap", features, target)
    tapped, loss = ContentTap.apply(features, target)
    return tapped, loss


def temporal_loss(image: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """Return 1/D sum_k c_k (x_k - t_k)^2 over all D values, 0-d.

    Equation 7 of Ruder et al. 2016 (arXiv:1604.08610): x is the image (1, 3, H, W); t is the
    target, of the same shape, such as the previous frame warped by the motion; and c are the
    weights (1, 1, H, W) in [0, 1], 0 where the target is unknown.
    """
    squared = (image - target).to(accumulate_dtype(image.dtype)).square()
    return (weights * squared).mean()


def total_variation(image: Tensor) -> Tensor:
    """Return the sum of squared differences of neighbouring pixels divided by 3 H W, 0-d.

    This is the squared (H^1) form of Mahendran and Vedaldi 2015 (arXiv:1412.0035, beta = 2), as a
    mean, so that a weight acts alike at every size. A picture one pixel wide or high has no
    neighbours along that axis, and that axis then adds nothing.
    """
    down = (image[..., 1:, :] - image[..., :-1, :]).square().sum()
    right = (image[..., :, 1:] - image[..., :, :-1]).square().sum()
    return (down + right) / image.numel()
