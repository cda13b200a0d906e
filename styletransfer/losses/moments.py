"""The mean and the second moment of a feature map, and the gradient of a loss of these moments.

Positions may have weights. Those of a region of the picture are zero outside of the region.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from styletransfer.features.tensors import accumulate_dtype, check_features
from styletransfer.system.devices import at_a_time

# Two sums over positions are computed in CHUNKS parts: the sum of weighted bfloat16 features, and
# the sum of products of bfloat16 features. A part is computed in float32, or rounded once to
# bfloat16; the parts are added in float32. Parts in float32 serve only to limit memory, so on a GPU
# they are as large as memory allows.
CHUNKS = 8
# Positions of weight 0 are not read if at most the fraction SPARSE of all positions has a positive
# weight. Otherwise, gathering the rows of positive weight, and scattering their gradients, costs
# more time than it saves (measured on x86). SPARSE applies to the CPU. On a GPU all positions are
# read, because the CPU would have to wait for the number of positive weights.
SPARSE = 0.5


class Moments(NamedTuple):
    """`Moments` are the first and second moment of features f_p (C,) over all positions p.

    Every style loss of this package is a function of these moments. Moments of several pictures may
    be averaged with weights.
    """

    #: (C,), the mean of f_p over p, weighted by m_p / sum(m) if positions have weights m_p; empty,
    #: (0,), if the caller does not need it.
    mean: Tensor
    second: Tensor  #: (C, C), the mean of f_p f_p^T over p, weighted in the same way; symmetric


def pixel_rows(features: Tensor) -> Tensor:
    """Return (1, C, H, W) as (HW, C): a view of a contiguous or channels_last map, else a copy."""
    return features[0].permute(1, 2, 0).flatten(0, 1)


def is_channels_last(features: Tensor) -> bool:
    """Tell whether the C values of one pixel lie next to each other in memory.

    The function reads strides, because `is_contiguous(memory_format=...)` does not work under vmap.
    """
    return features.dim() == 4 and features.stride(1) == 1


def moments(features: Tensor, with_mean: bool = True, weights: Tensor | None = None) -> Moments:
    """Return the mean and the second moment of one feature map.

    The result is differentiable by autograd, any number of times.

    Args:
        features: (1, C, H, W), floating point, any memory format.
        with_mean: if False, the mean is empty, (0,), and bfloat16 features are multiplied in
            bfloat16, which is faster; the error is about 5e-4. If True, they are multiplied in
            float32, because a covariance is a small difference of second moments.
        weights: m, (H, W), at least 0, and above 0 somewhere; None weighs all positions alike.
            Weights get no gradient. Many small regions cost about as much as one large region,
            see `positive_weights`.

    Returns:
        The moments, in float32 for bfloat16 features, else in the features' dtype.

    Raises:
        ValueError: features are not (1, C, H, W) with C, H, W at least 1.
    """
    check_features("moments", features)
    rows, factors = pixel_rows(features), None
    total: Tensor | int = rows.shape[0]
    if weights is not None:
        index, factors = positive_weights(weights, accumulate_dtype(rows.dtype))
        rows, total = rows if index is None else rows[index], factors.sum()
    mean = _sum(rows, factors) / total if with_mean else rows.new_empty(0)
    if rows.dtype == torch.bfloat16:
        products = _sum_of_products(rows, factors, wide=with_mean)
    else:
        products = _times(rows, factors).mT @ rows
    return Moments(mean, products / total)


def positive_weights(weights: Tensor, dtype: torch.dtype) -> tuple[Tensor | None, Tensor]:
    """Return the flat indices (n,) of the positions with positive weight, and their weights (n, 1).

    The indices select rows of `pixel_rows`. If more than the fraction SPARSE of all positions have
    a positive weight, or if the weights are not on the CPU, the first result is None, and the
    second has the weights (HW, 1) of all positions. Weights have no gradient.
    """
    flat = weights.detach().flatten()
    if flat.device.type == "cpu":
        (index,) = flat.nonzero(as_tuple=True)
        if len(index) <= SPARSE * len(flat):
            return index, flat[index, None].to(dtype)
    return None, flat[:, None].to(dtype)


def gram_matrix(features: Tensor) -> Tensor:
    """Compute G = F F^T / (C H W) with F as (C, HW), the Gram matrix of Gatys et al. 2016.

    The paper leaves the normalisation to the loss; the PyTorch tutorials divide by C H W.
    G is (C, C), symmetric. The argument, dtypes, derivatives and errors are as for `moments`.
    """
    return moments(features, with_mean=False).second / features.shape[1]


def _times(rows: Tensor, factors: Tensor | None) -> Tensor:
    """Return rows (n, C) times factors (n, 1), in the rows' dtype; None means factors of 1."""
    return rows if factors is None else rows * factors.to(rows.dtype)


def _sum(rows: Tensor, factors: Tensor | None) -> Tensor:
    """Return the sum (C,) of all rows (n, C) times factors (n, 1); None means factors of 1.

    The sum is computed in float32 for bfloat16, else in the rows' dtype.
    """
    if factors is None:
        return rows.sum(0, dtype=accumulate_dtype(rows.dtype))
    total = rows.new_zeros(rows.shape[1], dtype=factors.dtype)  # float32 if the rows are bfloat16
    for chunk, factor in zip(_parts(rows), _parts(factors, rows.shape[1]), strict=True):
        total = total + (chunk * factor).sum(0)
    return total


def _parts(rows: Tensor, channels: int = 0) -> tuple[Tensor, ...]:
    """Split `rows` (n, C) into the parts that are computed one after the other.

    On the CPU there are at most CHUNKS parts. `channels` is the number of channels of the features,
    if `rows` are their factors (n, 1), so that both are split alike.
    """
    size = at_a_time(-(-len(rows) // CHUNKS), rows.device, channels or rows.shape[1])
    return torch.split(rows, size)


def _sum_of_products(rows: Tensor, factors: Tensor | None, *, wide: bool) -> Tensor:
    """Return rows^T (factors * rows), (C, C), in float32, for bfloat16 rows (n, C).

    If `wide`, the products are computed in float32, one chunk of rows at a time: a float32 copy of
    all rows at once would need twice the memory of the rows. If not, one batched product computes
    all chunks, in half the time that they would take one after the other.
    """
    if wide:
        chunks = _parts(rows)
        given = [None] * len(chunks) if factors is None else _parts(factors, rows.shape[1])
        pairs = ((chunk.float(), own) for chunk, own in zip(chunks, given, strict=True))
        return torch.stack([_times(part, own).mT @ part for part, own in pairs]).sum(0)
    weighted, size, channels = _times(rows, factors), len(rows) // CHUNKS, rows.shape[1]
    end = CHUNKS * size  # the last rows, fewer than CHUNKS, are multiplied separately
    left, right = (x[:end].reshape(CHUNKS, size, channels) for x in (weighted, rows))
    total = (left.mT @ right).sum(0, dtype=torch.float32)
    return total + (weighted[end:].mT @ rows[end:]).float()


def add_moments_gradient(
    addend: Tensor | None,
    features: Tensor,
    grad_mean: Tensor | None,
    grad_second: Tensor | None,
    total: Tensor | float,
    weights: Tensor | None = None,
) -> Tensor | None:
    """Return addend + dL/dF for a loss L of moments, in the memory format and dtype of F.

    The formula is that of `MomentsTap`. The product with H and its addition are one fused
    operation, unless only few weights are positive (see SPARSE).

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
    shift = None if shift is None else factors * shift
    if index is None:
        return _as_features(_gradient_rows(added, rows * factors, shift, coefficients), features)
    share = _gradient_rows(None, rows[index] * factors, shift, coefficients)
    added = torch.zeros_like(rows) if added is None else added
    return _as_features(added.index_add(0, index, share), features)


def _gradient_rows(
    addend: Tensor | None, rows: Tensor, shift: Tensor | None, coefficients: Tensor | None
) -> Tensor:
    """Return addend + shift + rows @ coefficients, (n, C); a term that is None is left out.

    The shift is (C,), or (n, C).
    """
    total = addend if coefficients is None else _add_product(addend, rows, coefficients)
    if shift is not None:
        total = (torch.zeros_like(rows) if total is None else total) + shift
    assert total is not None
    return total


def _add_product(addend: Tensor | None, rows: Tensor, coefficients: Tensor) -> Tensor:
    """Return addend + rows @ coefficients, (n, C), in the memory layout of `rows`."""
    if rows.stride(-1) == 1:
        return rows @ coefficients if addend is None else torch.addmm(addend, rows, coefficients)
    # `coefficients` is symmetric: this is the same product, in the memory layout of `rows`.
    if addend is None:
        return (coefficients @ rows.mT).mT
    return torch.addmm(addend.mT, coefficients, rows.mT).mT


def _as_features(rows: Tensor, features: Tensor) -> Tensor:
    """Return rows (h w, C) as (1, C, h, w) in the memory layout of `features`."""
    _, channels, height, width = features.shape
    if is_channels_last(features):
        return rows.view(1, height, width, channels).permute(0, 3, 1, 2)
    return rows.mT.reshape(1, channels, height, width)
