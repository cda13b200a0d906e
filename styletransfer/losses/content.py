"""The content loss: features compared position by position."""

from torch import Tensor

from styletransfer.losses.mean_square import mean_square


def content_loss(features: Tensor, target: Tensor) -> Tensor:
    """Return mean((F - P)^2): equation 1 of Gatys et al. 2016 as a mean instead of half a sum.

    Args:
        features: F, (1, C, H, W).
        target: P, of the same shape.
    """
    return mean_square(features - target)
