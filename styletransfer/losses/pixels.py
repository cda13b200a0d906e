"""Losses of the picture itself: its total variation, and its distance to an expected frame."""

from torch import Tensor

from styletransfer.features.tensors import accumulate_dtype


def temporal_loss(image: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """Return 1/D sum_k c_k (x_k - t_k)^2 over all D = 3 H W values, 0-d.

    Equation 7 of Ruder et al. 2016 (arXiv:1604.08610): x is the image (1, 3, H, W); t is the
    target, of the same shape, such as the previous frame warped by the motion; and c are the
    weights (1, 1, H, W) in [0, 1], 0 where the target is unknown.
    """
    squared = (image - target).to(accumulate_dtype(image.dtype)).square()
    return (weights * squared).mean()


def total_variation(image: Tensor) -> Tensor:
    """Return the sum of squared differences between neighbouring pixels, divided by 3 H W, 0-d.

    This is the squared (H^1) form of Mahendran and Vedaldi 2015 (arXiv:1412.0035, beta = 2), as a
    mean, which does not grow with the number of pixels. A picture one pixel wide or high has no
    neighbours along that axis, and that axis then adds nothing.
    """
    down = (image[..., 1:, :] - image[..., :-1, :]).square().sum()
    right = (image[..., :, 1:] - image[..., :, :-1]).square().sum()
    return (down + right) / image.numel()
