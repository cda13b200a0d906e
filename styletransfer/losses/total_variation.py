"""Total variation: a prior on the picture itself."""

from torch import Tensor


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
