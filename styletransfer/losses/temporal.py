"""The temporal loss: a film's frame against what the frame before leads to expect."""

from torch import Tensor

from styletransfer.functions.precision import accumulate_dtype


def temporal_loss(image: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """Return 1/D sum_k c_k (x_k - t_k)^2 over all D values, 0-d.

    Equation 7 of Ruder et al. 2016 (arXiv:1604.08610).

    Args:
        image: x, (1, 3, H, W).
        target: t, of the same shape, such as the frame before, moved along.
        weights: c, (1, 1, H, W) in [0, 1], 0 where nothing is known.
    """
    squared = (image - target).to(accumulate_dtype(image.dtype)).square()
    return (weights * squared).mean()
