"""The losses as plain differentiable functions; every loss mode computes these same numbers."""

from torch import Tensor

from styletransfer.functions.gram import gram_matrix
from styletransfer.functions.precision import accumulate_dtype

__all__ = ["content_loss", "gram_matrix", "mean_square", "style_loss", "total_variation"]


def mean_square(difference: Tensor) -> Tensor:
    """Return mean(difference^2), 0-d, summed in float32 or wider."""
    return difference.to(accumulate_dtype(difference.dtype)).square().mean()


def content_loss(features: Tensor, target: Tensor) -> Tensor:
    """Return mean((F - P)^2): equation 1 of Gatys et al. 2016 as a mean instead of half a sum.

    Args:
        features: F, (1, C, H, W).
        target: P, of the same shape.
    """
    return mean_square(features - target)


def style_loss(features: Tensor, target_gram: Tensor) -> Tensor:
    """Return mean((G - A)^2) of the Gram matrix G of the features.

    Args:
        features: F, (1, C, H, W).
        target_gram: A, (C, C).
    """
    gram = gram_matrix(features)
    return mean_square(gram - target_gram.to(gram.dtype))


def total_variation(image: Tensor) -> Tensor:
    """Return the mean squared difference of neighbouring pixels, 0-d.

    The squared (H^1) form of Mahendran and Vedaldi 2015 (arXiv:1412.0035, beta = 2), as a mean so
    that a weight means the same at every size. A picture one pixel wide or high has no neighbours
    along that axis, and that axis then adds nothing.

    Args:
        image: (1, 3, H, W).
    """
    down = (image[..., 1:, :] - image[..., :-1, :]).square().sum()
    right = (image[..., :, 1:] - image[..., :, :-1]).square().sum()
    return (down + right) / image.numel()
