"""The moments tap: features pass through, and their two moments leave by outputs of their own."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer.functions.moments import Moments, is_channels_last, moments, pixel_rows
from styletransfer.functions.precision import gradient_dtype
from styletransfer.functions.validation import check_features


class MomentsTap(Function):
    """Whatever a loss makes of the moments, its gradient reaches the features in closed form.

    With g = dL/dmean and H = dL/dsecond, at each of n positions: dL/df_p = (g + (H + H^T) f_p) / n.
    It is joined to the features' own gradient in one fused product.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(features: Tensor, with_mean: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Return the features (a view, no copy), their mean (C,) and second moment (C, C)."""
        return features.view_as(features), *moments(features, with_mean)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, bool], output: tuple[Tensor, ...]) -> None:
        """Save F, which the network holds anyway."""
        features, ctx.with_mean = inputs
        ctx.save_for_backward(features)
        # An unused output then hands us None instead of a full tensor of zeros.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        """Return the gradient of the features; a flag has none."""
        (features,) = ctx.saved_tensors
        above, mean, second = grads
        mean = mean if ctx.with_mean else None
        positions = features.shape[2] * features.shape[3]
        return add_moments_gradient(above, features, mean, second, positions), None


def add_moments_gradient(
    addend: Tensor | None,
    features: Tensor,
    grad_mean: Tensor | None,
    grad_second: Tensor | None,
    positions: int,
) -> Tensor | None:
    """Return addend + dL/dF, in the memory format and dtype of F.

    Args:
        addend: what has reached the features otherwise, of their shape, or None.
        features: F, (1, C, h, w): all positions over which the moments are means, or some.
        grad_mean: g, (C,), or None for zeros.
        grad_second: H, (C, C), or None for zeros.
        positions: n, over which the moments are means.
    """
    if grad_mean is None and grad_second is None:
        return addend
    dtype = gradient_dtype(features.dtype)
    shift = None if grad_mean is None else (grad_mean / positions).to(dtype)
    total = None if addend is None else pixel_rows(addend).to(dtype)
    if grad_second is not None:
        coefficients = ((grad_second + grad_second.mT) / positions).to(dtype)
        total = _add_product(total, pixel_rows(features).to(dtype), coefficients)
    if shift is not None:
        if total is None:
            total = torch.zeros_like(pixel_rows(features), dtype=dtype)
        total = total + shift
    assert total is not None
    return _as_features(total, features)


def _add_product(addend: Tensor | None, rows: Tensor, coefficients: Tensor) -> Tensor:
    """Return addend + rows coefficients, (n, C), laid out as the rows are."""
    if rows.stride(-1) == 1:
        return rows @ coefficients if addend is None else torch.addmm(addend, rows, coefficients)
    # The coefficients are symmetric: both orders give the same numbers.
    if addend is None:
        return (coefficients @ rows.mT).mT
    return torch.addmm(addend.mT, coefficients, rows.mT).mT


def _as_features(rows: Tensor, features: Tensor) -> Tensor:
    """Return (h w, C) as (1, C, h, w) in the layout and dtype of the features."""
    _, channels, height, width = features.shape
    if is_channels_last(features):
        image = rows.view(1, height, width, channels).permute(0, 3, 1, 2)
    else:
        image = rows.mT.reshape(1, channels, height, width)
    return image.to(features.dtype)


def moments_tap(features: Tensor, with_mean: bool = True) -> tuple[Tensor, Moments]:
    """Pass features on and measure their moments; all outputs are differentiable.

    Args:
        features: F, (1, C, H, W), floating point, any memory format.
        with_mean: see `moments`.

    Returns:
        The features unchanged (a view), and their moments, in float32 for bfloat16 and float16
        features, else in their dtype.

    Raises:
        TypeError: features are not floating point.
        ValueError: features are not (1, C, H, W) with C, H, W at least 1.

    For the Gram loss the gradient is equation 6 of Gatys et al. 2016.
    """
    check_features("moments_tap", features)
    tapped, mean, second = MomentsTap.apply(features, with_mean)
    return tapped, Moments(mean, second)
