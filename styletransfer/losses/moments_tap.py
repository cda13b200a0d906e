"""A Function that returns features unchanged, with their two moments as further outputs."""

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
from styletransfer.system.tensors import check_features


class MomentsTap(Function):
    """This Function computes moments; its backward is closed-form for any loss L of the moments.

    With g = dL/dmean (C,) and H = dL/dsecond (C, C), at each of n positions:
    dL/df_p = (g + (H + H^T) f_p) / n. If positions have weights, m_p / sum(m) replaces 1 / n. One
    fused product adds this to the gradient that the features receive from deeper layers.
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
        """Save the features, which the network holds in any case, and the weights if given."""
        features, ctx.with_mean, weights = inputs
        ctx.save_for_backward(features, *([] if weights is None else [weights]))
        # The gradient of an unused output is then None instead of a tensor of zeros.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None]:
        """Return the gradient of the features; `with_mean` and `weights` have no gradient."""
        features, *given = ctx.saved_tensors
        addend, mean, second = grads
        weights = given[0] if given else None
        mean = mean if ctx.with_mean else None
        total = math.prod(features.shape[2:]) if weights is None else weights.sum()
        return add_moments_gradient(addend, features, mean, second, total, weights), None, None


def add_moments_gradient(
    addend: Tensor | None,
    features: Tensor,
    grad_mean: Tensor | None,
    grad_second: Tensor | None,
    total: Tensor | float,
    weights: Tensor | None = None,
) -> Tensor | None:
    """Return addend + dL/dF for a loss L of moments, in the memory format and dtype of F.

    Args:
        addend: the gradient of F from other sources, of the shape of F; None for zeros.
        features: F, (1, C, h, w): all positions over which the moments are means, or some of them.
        grad_mean: g = dL/dmean, (C,); None for zeros.
        grad_second: H = dL/dsecond, (C, C); None for zeros.
        total: number of all positions, or the sum of their weights.
        weights: (h, w), weights of the positions of F; None for 1 each.
    """
    if grad_mean is None and grad_second is None:
        return addend
    rows, dtype = pixel_rows(features), features.dtype
    shift = None if grad_mean is None else (grad_mean / total).to(dtype)
    coefficients = None
    if grad_second is not None:
        coefficients = ((grad_second + grad_second.mT) / total).to(dtype)
    added = None if addend is None else pixel_rows(addend)
    if weights is None:
        return _as_features(_gradient_rows(added, rows, shift, coefficients), features)
    index, factors = positive_weights(weights, dtype)
    share = _gradient_rows(None, rows[index], shift, coefficients) * factors
    added = torch.zeros_like(rows) if added is None else added
    return _as_features(added.index_add(0, index, share), features)


def _gradient_rows(
    addend: Tensor | None, rows: Tensor, shift: Tensor | None, coefficients: Tensor | None
) -> Tensor:
    """Return addend + shift + rows @ coefficients, (n, C); a term that is None is left out."""
    total = addend if coefficients is None else _add_product(addend, rows, coefficients)
    if shift is not None:
        total = (torch.zeros_like(rows) if total is None else total) + shift
    assert total is not None
    return total


def _add_product(addend: Tensor | None, rows: Tensor, coefficients: Tensor) -> Tensor:
    """Return addend + rows @ coefficients, (n, C), in the memory layout of `rows`."""
    if rows.stride(-1) == 1:
        return rows @ coefficients if addend is None else torch.addmm(addend, rows, coefficients)
    # coefficients (C, C) is symmetric, so rows @ coefficients = (coefficients @ rows^T)^T.
    if addend is None:
        return (coefficients @ rows.mT).mT
    return torch.addmm(addend.mT, coefficients, rows.mT).mT


def _as_features(rows: Tensor, features: Tensor) -> Tensor:
    """Return rows (h w, C) as (1, C, h, w) in the memory layout of `features`."""
    _, channels, height, width = features.shape
    if is_channels_last(features):
        return rows.view(1, height, width, channels).permute(0, 3, 1, 2)
    return rows.mT.reshape(1, channels, height, width)


def moments_tap(
    features: Tensor, with_mean: bool = True, weights: Tensor | None = None
) -> tuple[Tensor, Moments]:
    """Return the features and their moments; all outputs are differentiable.

    The features (1, C, H, W) are returned unchanged (as a view). Arguments, moments and errors are
    those of `moments`. For the Gram loss the gradient is equation 6 of Gatys et al. 2016.
    """
    check_features("moments_tap", features)
    tapped, mean, second = MomentsTap.apply(features, with_mean, weights)
    return tapped, Moments(mean, second)
