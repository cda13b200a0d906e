"""The style tap: features pass through unchanged, and the style loss leaves by a second output."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer.functions.gram import gram_matrix, is_channels_last, pixel_rows
from styletransfer.functions.precision import accumulate_dtype, gradient_dtype
from styletransfer.functions.validation import check_alike, check_features, check_floating


class StyleTap(Function):
    """L = mean((G - A)^2), with dL/dF = 4 / (C^2 * C H W) * (G - A) F in one fused product.

    The difference D = G - A is a third, differentiable output. That is how a Function saves an
    intermediate for its second derivative: D's own gradient comes back here as `grad_difference`.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(features: Tensor, target_gram: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the features (a view, no copy), the 0-d loss and D (C, C)."""
        gram = gram_matrix(features)
        difference = gram - target_gram.to(gram.dtype)
        return features.view_as(features), difference.square().mean(), difference

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, ...]) -> None:
        """Save F, which the network holds anyway, and the small D."""
        features, target_gram = inputs
        ctx.save_for_backward(features, output[2])
        ctx.target_dtype = target_gram.dtype
        # An unused output then hands us None instead of a full tensor of zeros.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Return one gradient for features and one for target_gram, None where none is due."""
        grad_features, grad_loss, grad_difference = grads
        features, difference = ctx.saved_tensors
        if grad_loss is not None:
            # dL/dD = 2 D / C^2, joined with whatever reaches D directly.
            through_loss = difference * (grad_loss * (2 / difference.numel()))
            grad_difference = (
                through_loss if grad_difference is None else through_loss + grad_difference
            )
        if grad_difference is None:
            return grad_features, None
        grad_target = -grad_difference.to(ctx.target_dtype) if ctx.needs_input_grad[1] else None
        if not ctx.needs_input_grad[0]:
            return None, grad_target
        # dG = (dF F^T + F dF^T) / (C H W), so F meets the coefficients and their transpose.
        coefficients = (grad_difference + grad_difference.mT) / features.numel()
        return add_product(grad_features, coefficients, features), grad_target


def add_product(addend: Tensor | None, coefficients: Tensor, features: Tensor) -> Tensor:
    """addend + coefficients F, shape (1, C, H, W), in the memory format and dtype of F."""
    dtype = gradient_dtype(features.dtype)
    coefficients = coefficients.to(dtype)
    rows = pixel_rows(features).to(dtype)
    addend_rows = None if addend is None else pixel_rows(addend).to(dtype)
    _, channels, height, width = features.shape
    # The product is laid out as F is, so that the convolution below need not copy it.
    # The coefficients are symmetric: both orders give the same numbers.
    if is_channels_last(features):
        product = _fused(addend_rows, rows, coefficients)
        image = product.view(1, height, width, channels).permute(0, 3, 1, 2)
    else:
        product = _fused(None if addend_rows is None else addend_rows.mT, coefficients, rows.mT)
        image = product.view(1, channels, height, width)
    return image.to(features.dtype)


def _fused(addend: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
    return left @ right if addend is None else torch.addmm(addend, left, right)


def style_tap(features: Tensor, target_gram: Tensor) -> tuple[Tensor, Tensor]:
    """Pass features on and measure their style; both outputs are differentiable.

    Args:
        features: F, (1, C, H, W), floating point, any memory format.
        target_gram: A, (C, C), from `gram_matrix`; of the features' dtype or of their sums' dtype
            (float32 for bfloat16 and float16). It may require grad, though targets rarely do.

    Returns:
        The features unchanged (a view), and the 0-d loss mean((G - A)^2), at least 0, in float32
        for bfloat16 and float16 features, else in their dtype.

    Raises:
        TypeError: a tensor is not floating point, or the dtypes do not belong together.
        ValueError: wrong shapes, or two devices.

    The gradient is equation 6 of Gatys et al. 2016 for this normalisation.
    """
    check_features("style_tap", features)
    check_floating("style_tap", target_gram=target_gram)
    check_alike("style_tap", dtype=False, features=features, target_gram=target_gram)
    channels = features.shape[1]
    if tuple(target_gram.shape) != (channels, channels):
        raise ValueError(
            f"style_tap: features {tuple(features.shape)} need a target_gram of shape "
            f"({channels}, {channels}), not {tuple(target_gram.shape)}"
        )
    allowed = (features.dtype, accumulate_dtype(features.dtype))
    if target_gram.dtype not in allowed:
        raise TypeError(
            f"style_tap: features have dtype {features.dtype} but target_gram has "
            f"{target_gram.dtype}; convert it with .to({allowed[1]})"
        )
    tapped, loss, _ = StyleTap.apply(features, target_gram)
    return tapped, loss
