"""Losses that are mean squares: of differences of features, pictures or neighbouring pixels."""

from torch import Tensor

from styletransfer.system.precision import accumulate_dtype


def mean_square(difference: Tensor) -> Tensor:
    """Return mean(difference^2), 0-d, summed in float32 or wider."""
    return difference.to(accumulate_dtype(difference.dtype)).square().mean()


def content_loss(features: Tensor, target: Tensor) -> Tensor:
    """Return mean((F - P)^2): equation 1 of Gatys et al. 2016 as a mean instead of half a sum.

    F are the features (1, C, H, W), and P the target, of the same shape.
    """
    return mean_square(features - target)


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

    The squared (H^1) form of Mahendran and Vedaldi 2015 (arXiv:1412.0035, beta = 2), as a mean so
    that a weight means the same at every size. A picture one pixel wide or high has no neighbours
    along that axis, and that axis then adds nothing.
    """
    down = (image[..., 1:, :] - image[..., :-1, :]).square().sum()
    right = (image[..., :, 1:] - image[..., :, :-1]).square().sum()
    return (down + right) / image.numel()
