"""What a style loss is made of, a statistic of the features' moments and a distance; and three."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.losses.moments import Moments
from styletransfer.losses.squares import mean_square
from styletransfer.system.precision import to_float64

Distance = Callable[[Tensor, Tensor], Tensor]
# Of the mean variance of all channels, of the style's in `wasserstein`, added to each: the slope of
# a root at 0 is infinite, and a network's channels are nearly dependent.
RIDGE = 1e-4
# Where nothing varies at all, and for eigenvalues that rounding has made negative.
TINY = 1e-12


def squared_distance(statistic: Tensor, target: Tensor) -> Tensor:
    """Return mean((S - T)^2), 0-d. A factor on both S and T acts squared."""
    return mean_square(statistic - target)


@dataclass(frozen=True)
class StyleMeasure:
    """One way to compare styles: distance(statistic(pastiche), statistic(style))."""

    name: str  #: as in the config
    #: Moments -> what is compared; of the style, this is the target of a loss.
    statistic: Callable[[Moments], Tensor]
    #: (statistic, target) -> 0-d, at least 0, and 0 where both are equal.
    distance: Distance = squared_distance
    with_mean: bool = True  #: the statistic needs the mean, too; see `moments`

    @property
    def is_squared(self) -> bool:
        """A factor on statistic and target acts squared on the distance."""
        return self.distance is squared_distance

    def loss(self, moments: Moments, target: Tensor) -> Tensor:
        """Return the loss, 0-d, of a pastiche with these moments."""
        return self.distance(self.statistic(moments), target)


def gram(moments: Moments) -> Tensor:
    """Return the Gram matrix (C, C): the second moment over C, as the PyTorch tutorials have it.

    Of Gatys et al. 2016. It does not tell a flat feature from one of strong contrast that has the
    same mean square.
    """
    return moments.second / moments.second.shape[-1]


def by_channel(moments: Moments) -> Tensor:
    """Return (2, C): means, and standard deviations.

    The style loss of AdaIN (Huang and Belongie 2017, arXiv:1703.06868, equation 13), there with the
    root of the summed squares; after Li et al. 2017 (arXiv:1701.01036).
    """
    variance = (moments.second.diagonal() - moments.mean.square()).clamp_min(0)
    deviation = (variance + RIDGE * variance.mean() + TINY).sqrt()
    return torch.stack([moments.mean, deviation])


def normal(moments: Moments) -> Tensor:
    """Return (C + 1, C): the mean above the covariance."""
    mean, second = moments
    return torch.cat([mean[None], second - mean[:, None] * mean])


def wasserstein(statistic: Tensor, target: Tensor) -> Tensor:
    """Return what it costs at least to move one normal distribution onto another, 0-d.

    The squared 2-Wasserstein distance of normal distributions (Dowson and Landau 1982, "The Frechet
    distance between multivariate normal distributions"), with means m and covariances C:

        |m - m_s|^2 + tr(C) + tr(C_s) - 2 tr((C_s^1/2 C C_s^1/2)^1/2)

    With C_s = L L^T the last trace is the sum of the roots of the eigenvalues of L^T C L: no root
    of a matrix is needed, and the gradient of a sum of eigenvalues' roots stays finite where
    eigenvalues coincide, which that of the eigenvectors does not. They are found in float64.
    """
    given, statistic, target = statistic, to_float64(statistic), to_float64(target)
    mean, covariance = statistic[0], statistic[1:]
    target_mean, target_covariance = target[0], target[1:]
    ridge = RIDGE * target_covariance.diagonal().mean().clamp_min(0) + TINY
    eye = torch.eye(len(mean), dtype=mean.dtype, device=mean.device) * ridge
    covariance, target_covariance = covariance + eye, target_covariance + eye
    factor = _factor(target_covariance, ridge)
    eigenvalues = torch.linalg.eigvalsh(factor.mT @ covariance @ factor)
    traces = covariance.trace() + target_covariance.trace()
    shift = (mean - target_mean).square().sum()
    roots = eigenvalues.clamp_min(TINY * ridge).sqrt().sum()
    result: Tensor = shift + traces - 2 * roots
    return result.to(given)


def _factor(covariance: Tensor, ridge: Tensor) -> Tensor:
    """Return L with L L^T = covariance, of which rounding may have made eigenvalues negative."""
    factor: Tensor
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if failed:  # a style that hardly varies
        values, vectors = torch.linalg.eigh(covariance)
        factor = vectors * values.clamp_min(ridge).sqrt()
    return factor


GRAM = StyleMeasure("gram", gram, with_mean=False)
MOMENTS = StyleMeasure("moments", by_channel)
WASSERSTEIN = StyleMeasure("wasserstein", normal, wasserstein)
