"""A style loss that compares each channel by itself: its mean and its standard deviation.

The style loss of AdaIN (Huang and Belongie 2017, arXiv:1703.06868, equation 13), there with the
root of the summed squares; after Li et al. 2017 (arXiv:1701.01036).
"""

import torch
from torch import Tensor

from styletransfer.functions.moments import Moments
from styletransfer.losses.style import StyleMeasure

# Of the mean variance of all channels, added to each: the slope of a root at 0 is infinite.
RIDGE = 1e-4
# Where no channel varies at all.
TINY = 1e-12


def statistic(moments: Moments) -> Tensor:
    """Return (2, C): means, and standard deviations."""
    variance = (moments.second.diagonal() - moments.mean.square()).clamp_min(0)
    deviation = (variance + RIDGE * variance.mean() + TINY).sqrt()
    return torch.stack([moments.mean, deviation])


MOMENTS = StyleMeasure("moments", statistic)
