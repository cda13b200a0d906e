"""Style losses that compare the mean of features, and their variances or their covariance.

The style loss `moments` compares the mean and the standard deviation of each channel. The style
loss `wasserstein` compares normal distributions with the mean and the covariance of the features.
"""

import torch
from torch import Tensor

from styletransfer.features.tensors import to_float64
from styletransfer.losses.moments import Moments
from styletransfer.losses.style import StyleMeasure

# RIDGE times the mean variance of the channels is added to each variance; `wasserstein` uses the
# style's mean variance. This keeps the gradient finite: the slope of a square root is infinite at
# 0, and the covariance of a network's channels is nearly singular.
RIDGE = 1e-4
# TINY is also added to each variance, which is then above 0 even if all features are constant. The
# sum of both is called the ridge. In `wasserstein`, rounding may make eigenvalues negative, so they
# are clamped to at least TINY times the ridge.
TINY = 1e-12


def by_channel(moments: Moments) -> Tensor:
    """Return (2, C): the mean and the standard deviation of each channel.

    AdaIN's style loss sums the Euclidean norms of their differences (Huang and Belongie 2017,
    arXiv:1703.06868, equation 13). Li et al. 2017 (arXiv:1701.01036) compared them before.
    """
    variance = (moments.second.diagonal() - moments.mean.square()).clamp_min(0)
    deviation = (variance + RIDGE * variance.mean() + TINY).sqrt()
    return torch.stack([moments.mean, deviation])


def normal(moments: Moments) -> Tensor:
    """Return (C + 1, C): the mean in the first row, the covariance in the other rows."""
    mean, second = moments
    return torch.cat([mean[None], second - mean[:, None] * mean])


def wasserstein_target(statistic: Tensor) -> Tensor:
    """Return the target of `wasserstein`, (C + 2, C) in float64, from the style's `normal`.

    The first row is the mean. Each number of the second row is the ridge, the value that is added
    to the variances. The other rows are L, the `_factor` of the covariance with the ridge.
    """
    statistic = to_float64(statistic)
    mean, covariance = statistic[0], statistic[1:]
    ridge = RIDGE * covariance.diagonal().mean().clamp_min(0) + TINY
    factor = _factor(covariance + torch.eye(len(mean)).to(mean) * ridge, ridge)
    return torch.cat([mean[None], ridge.expand(1, len(mean)), factor])


def wasserstein(statistic: Tensor, target: Tensor) -> Tensor:
    """Return the squared 2-Wasserstein distance of two normal distributions, 0-d.

    The arguments are results of `normal` and `wasserstein_target`. With the mean m and the
    covariance C of the pastiche, and m_s and C_s of the style, the distance is (Dowson and Landau
    1982, "The Frechet distance between multivariate normal distributions")

        |m - m_s|^2 + tr(C) + tr(C_s) - 2 tr((C_s^1/2 C C_s^1/2)^1/2)

    With C_s = L L^T the last trace is the sum of the square roots of the eigenvalues of L^T C L.
    This needs no matrix square root. The gradient stays finite if eigenvalues are equal, unlike the
    gradient of eigenvectors. The eigenvalues are computed in float64. On a GPU they take longer
    than the rest of the loss: torch computes them partly on the CPU, which waits for them.
    """
    given, statistic = statistic, to_float64(statistic)
    mean, target_mean, ridge, factor = statistic[0], target[0], target[1], target[2:]
    covariance = statistic[1:] + ridge.diag()
    eigenvalues = torch.linalg.eigvalsh(factor.mT @ covariance @ factor)
    traces = covariance.trace() + factor.square().sum()  # the sum of squares is tr(L L^T)
    shift = (mean - target_mean).square().sum()
    roots = eigenvalues.clamp_min(TINY * ridge[0]).sqrt().sum()
    result: Tensor = shift + traces - 2 * roots
    return result.to(given)


def _factor(covariance: Tensor, ridge: Tensor) -> Tensor:
    """Return L with L L^T = covariance (C, C).

    If rounding made an eigenvalue negative, eigenvalues below `ridge` are first set to `ridge`.
    """
    factor: Tensor
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if failed:  # the style hardly varies, and rounding made an eigenvalue negative
        values, vectors = torch.linalg.eigh(covariance)
        factor = vectors * values.clamp_min(ridge).sqrt()
    return factor


MOMENTS = StyleMeasure("moments", by_channel)
WASSERSTEIN = StyleMeasure("wasserstein", normal, wasserstein, prepare=wasserstein_target)
