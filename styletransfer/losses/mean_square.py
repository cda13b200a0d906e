"""The squared distance on which most losses rest."""

from torch import Tensor

from styletransfer.functions.precision import accumulate_dtype


def mean_square(difference: Tensor) -> Tensor:
    """Return mean(difference^2), 0-d, summed in float32 or wider."""
    return difference.to(accumulate_dtype(difference.dtype)).square().mean()
