"""The style loss of Gatys et al. 2016: squared distance of Gram matrices."""

from torch import Tensor

from styletransfer.functions.moments import Moments
from styletransfer.losses.style import StyleMeasure


def statistic(moments: Moments) -> Tensor:
    """Return the Gram matrix (C, C): the second moment over C, as the PyTorch tutorials have it.

    It does not tell a flat feature from one of strong contrast that has the same mean square.
    """
    return moments.second / moments.second.shape[-1]


GRAM = StyleMeasure("gram", statistic, with_mean=False)
