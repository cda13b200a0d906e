"""The first two moments of one feature map over its positions, by ordinary torch operations.

Positions may have weights; for a region of the picture, they are zero outside of the region.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from styletransfer.system.tensors import (
    LOW_PRECISION,
    accumulate_dtype,
    check_features,
)

# A sum over positions of bfloat16 or float16 features is computed in CHUNKS parts: a matrix product
# sums each part and rounds once to low precision, and the parts are added in float32.
CHUNKS = 8


class Moments(NamedTuple):
    """`Moments` are the first and second moment of features f_p (C,) over all positions p.

    Every style loss of this package is a function of these moments. Moments of several pictures may
    be averaged with weights.
    """

    #: (C,), the mean of f_p over p, weighted by m_p / sum(m) if positions have weights m_p.
    mean: Tensor
    second: Tensor  #: (C, C), the mean of f_p f_p^T over p, weighted in the same way; symmetric


def pixel_rows(features: Tensor) -> Tensor:
    """Return (1, C, H, W) as (HW, C): a view, never a copy, both for NCHW and channels_last."""
    return features[0].permute(1, 2, 0).flatten(0, 1)


def is_channels_last(features: Tensor) -> bool:
    """Tell whether the C values of one pixel lie next to each other in memory.

    It reads strides, because `is_contiguous(memory_format=...)` does not work under vmap.
    """
    return features.dim() == 4 and features.stride(1) == 1


def moments(features: Tensor, with_mean: bool = True, weights: Tensor | None = None) -> Moments:
    """Return the mean and the second moment of one feature map.

    The result is differentiable by autograd, any number of times.

    Args:
        features: (1, C, H, W), floating point, any memory format.
        with_mean: if False, the mean is empty, (0,), and low-precision features are multiplied in
            their dtype, which is faster; the error is about 5e-4. If True, they are multiplied in
            float32, because a covariance is a small difference of second moments.
        weights: m, (H, W), at least 0, and above 0 somewhere; None weighs all positions alike.
            Weights get no gradient. Positions of weight 0 are left out, so that many small regions
            cost as much as one large region.

    Returns:
        The moments, in float32 for bfloat16 and float16 features, else in their dtype.

    Raises:
        ValueError: features are not (1, C, H, W) with C, H, W at least 1.
    """
    check_features("moments", features)
    rows, factors = pixel_rows(features), None
    total: Tensor | int = rows.shape[0]
    if weights is not None:
        index, factors = positive_weights(weights, accumulate_dtype(rows.dtype))
        rows, total = rows[index], factors.sum()
    mean = _sum(rows, factors) / total if with_mean else rows.new_empty(0)
    if rows.dtype not in LOW_PRECISION:
        products = _times(rows, factors).mT @ rows
    elif with_mean:
        products = _sum_of_wide_products(rows, factors)
    else:
        products = _sum_of_products(rows, factors)
    return Moments(mean, products / total)


def positive_weights(weights: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the flat indices (n,) of the positions with positive weight, and their weights (n, 1).

    The indices select rows of `pixel_rows`. The weights are constants, without gradient.
    """
    flat = weights.detach().flatten()
    (index,) = flat.nonzero(as_tuple=True)
    return index, flat[index, None].to(dtype)


def gram_matrix(features: Tensor) -> Tensor:
    """Compute G = F F^T / (C H W) with F as (C, HW), the Gram matrix of Gatys et al. 2016.

    The paper leaves the normalisation to the loss; the PyTorch tutorials divide by C H W.
    G is (C, C), symmetric; features, dtypes, derivatives and errors are those of `moments`.
    """
    return moments(features, with_mean=False).second / features.shape[1]


def _times(rows: Tensor, factors: Tensor | None) -> Tensor:
    """Return each row (n, C) times its factor (n, 1), None for 1, in the dtype of the rows."""
    return rows if factors is None else rows * factors.to(rows.dtype)


def _sum(rows: Tensor, factors: Tensor | None) -> Tensor:
    """Return the sum (C,) of rows (n, C) times their factors (n, 1), in float32 or wider."""
    if factors is None:
        return rows.sum(0, dtype=accumulate_dtype(rows.dtype))
    total = rows.new_zeros(rows.shape[1], dtype=factors.dtype)  # float32 or wider
    for chunk, factor in zip(rows.chunk(CHUNKS), factors.chunk(CHUNKS), strict=True):
        total = total + (chunk * factor).sum(0)
    return total


def _chunks(rows: Tensor, factors: Tensor | None) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Yield at most CHUNKS pairs: a part of the rows (n, C), and its factors (n, 1) or None."""
    chunks = rows.chunk(CHUNKS)
    given = [None] * len(chunks) if factors is None else factors.chunk(CHUNKS)
    yield from zip(chunks, given, strict=True)


def _sum_of_products(rows: Tensor, factors: Tensor | None) -> Tensor:
    """Return rows^T (factors * rows), (C, C), in float32; products of chunks are low-precision."""
    total = rows.new_zeros(rows.shape[1], rows.shape[1], dtype=torch.float32)
    unused = rows.new_zeros(1, 1)
    for chunk, factor in _chunks(rows, factors):
        pixels = chunk.shape[0]
        # The product is divided by the number of pixels, because float16 overflows above 65504.
        mean = torch.addmm(unused, _times(chunk, factor).mT, chunk, beta=0, alpha=1 / pixels)
        total = total + mean.float() * pixels
    return total


def _sum_of_wide_products(rows: Tensor, factors: Tensor | None) -> Tensor:
    """Return rows^T (factors * rows), (C, C), in float32, one chunk of rows at a time.

    A float32 copy of all rows at once would need twice the memory of the rows.
    """
    total = rows.new_zeros(rows.shape[1], rows.shape[1], dtype=torch.float32)
    for chunk, factor in _chunks(rows, factors):
        wide = chunk.float()
        total = total + _times(wide, factor).mT @ wide
    return total
