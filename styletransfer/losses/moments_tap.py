"""The moments tap: features pass through, and their two moments leave by outputs of their own."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer.losses.moments import (
    Moments,
    is_channels_last,
    moments,
    pixel_rows,
    positive_weights,
)
from styletransfer.system.precision import gradient_dtype
from styletransfer.system.validation import check_features


class MomentsTap(Function):
    """Whatever a loss makes of the moments, its gradient reaches the features in closed form.

    With g = dL/dmean and H = dL/dsecond, at each of n positions: dL/df_p = (g + (H + H^T) f_p) / n,
    and where positions have weights m_p / sum(m) in place of 1 / n. It is joined to the features'
    own gradient in one fused product.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        features: Tensor, with_mean: bool, weights: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the features (a view, no copy), their mean (C,) and second moment (C, C)."""
        return features.view_as(features), *moments(features, with_mean, weights)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, bool, Tensor | None], output: tuple[Tensor, ...]
    ) -> None:
        """Save F, which the network holds anyway, and the weights if there are any."""
        features, ctx.with_mean, weights = inputs
        ctx.save_for_backward(features, *([] if weights is None else [weights]))
        # An unused output then hands us None instead of a full tensor of zeros.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None]:
        """Return the gradient of the features; a flag has none, and weights are constants."""
        features, *given = ctx.saved_tensors
        above, mean, second = grads
        weights = given[0] if given else None
        mean = mean if ctx.with_mean else None
        total = math.prod(features.shape[2:]) if weights is None else weights.sum()
        slopes = (mean, second, total, weights)
        return add_moments_gradient(above, features, *slopes), None, None


def add_moments_gradient(
    addend: Tensor | None,
    features: Tensor,
    grad_mean: Tensor | None,
    grad_second: Tensor | None,
    total: Tensor | float,
    weights: Tensor | None = None,
) -> Tensor | None:
    """Return addend + dL/dF, in the memory format and dtype of F (1, C, h, w).

    F are all positions over which the moments are means, or some, with weights m (h, w), None for 1
    each; the total n counts all of them, or sums their weights. The addend, of the shape of F, is
    what has reached them otherwise; it, g (C,) and H (C, C) may be None for zeros.
    """
    if grad_mean is None and grad_second is None:
        return addend
    dtype = gradient_dtype(features.dtype)
    shift = None if grad_mean is None else (grad_mean / total).to(dtype)
    coefficients = None
    if grad_second is not None:
        coefficients = ((grad_second + grad_second.mT) / total).to(dtype)
    rows = pixel_rows(features).to(dtype)
    above = None if addend is None else pixel_rows(addend).to(dtype)
    if weights is None:
        return _as_features(_slope(above, rows, shift, coefficients), features)
    index, factors = positive_weights(weights, dtype)
    share = _slope(None, rows[index], shift, coefficients) * factors
    above = torch.zeros_like(rows) if above is None else above
    return _as_features(above.index_add(0, index, share), features)


def _slope(
    addend: Tensor | None, rows: Tensor, shift: Tensor | None, coefficients: Tensor | None
) -> Tensor:
    """Return addend + shift + rows coefficients, (n, C); each but the rows may be missing."""
    total = addend if coefficients is None else _add_product(addend, rows, coefficients)
    if shift is not None:
        total = (torch.zeros_like(rows) if total is None else total) + shift
    assert total is not None
    return total


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


def moments_tap(
    features: Tensor, with_mean: bool = True, weights: Tensor | None = None
) -> tuple[Tensor, Moments]:
    """Pass features on and measure their moments; all outputs are differentiable.

    Return the features (1, C, H, W) unchanged (a view), and what `moments` returns; arguments and
    errors are those of `moments`. Of the Gram loss the gradient is equation 6 of Gatys et al. 2016.
    """
    check_features("moments_tap", features)
    tapped, mean, second = MomentsTap.apply(features, with_mean, weights)
    return tapped, Moments(mean, second)
