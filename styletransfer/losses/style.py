"""Style losses: each compares a statistic of two pictures, the pastiche and the style image.

The statistic is a function of the moments of features. The module defines three style measures,
`gram`, `moments` and `wasserstein`, and `StyleDistance`, the loss that uses one of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.features.tensors import to_float64
from styletransfer.losses.distance import LossLayer, mean_square
from styletransfer.losses.moments import Moments, moments_tap
from styletransfer.losses.moments import moments as moments_of

# RIDGE times the mean variance of the channels is added to each variance; `wasserstein` uses the
# style's mean variance. This keeps the gradient finite: the slope of a square root is infinite at
# 0, and the covariance of a network's channels is nearly singular.
RIDGE = 1e-4
# TINY is also added to each variance, which is then above 0 even if all features are constant. In
# `wasserstein`, TINY times the added value is the lower limit of eigenvalues, because rounding may
# make them negative.
TINY = 1e-12


def squared_distance(statistic: Tensor, target: Tensor) -> Tensor:
    """Return mean((S - T)^2), 0-d. A factor w on both S and T gives w^2 times the result."""
    return mean_square(statistic - target)


@dataclass(frozen=True)
class StyleMeasure:
    """A style measure is a statistic of moments, and a function that compares two statistics."""

    name: str  #: the value of the config key objective.style_loss
    #: Moments -> the tensor that is compared. The style's tensor is the target of the loss.
    statistic: Callable[[Moments], Tensor]
    #: (statistic, target) -> 0-d tensor, at least 0, and 0 if both are equal, except for a
    #: rounding error.
    compare: Callable[[Tensor, Tensor], Tensor] = squared_distance
    with_mean: bool = True  #: whether the statistic uses the mean; see `moments`

    @property
    def is_squared(self) -> bool:
        """Whether a factor w on both statistic and target multiplies the loss by w^2."""
        return self.compare is squared_distance

    def loss(self, moments: Moments, target: Tensor) -> Tensor:
        """Return the loss, 0-d, for the pastiche's moments and the style's statistic `target`."""
        return self.compare(self.statistic(moments), target)


def gram(moments: Moments) -> Tensor:
    """Return the Gram matrix (C, C) of Gatys et al. 2016: the second moment divided by C.

    The PyTorch tutorials divide in the same way. The diagonal of the Gram matrix does not
    distinguish a constant feature from a feature of strong contrast that has the same mean square.
    """
    return moments.second / moments.second.shape[-1]


def by_channel(moments: Moments) -> Tensor:
    """Return (2, C): the mean and the standard deviation of each channel.

    AdaIN's style loss compares them by the root of summed squares (Huang and Belongie 2017,
    arXiv:1703.06868, equation 13). It follows Li et al. 2017 (arXiv:1701.01036).
    """
    variance = (moments.second.diagonal() - moments.mean.square()).clamp_min(0)
    deviation = (variance + RIDGE * variance.mean() + TINY).sqrt()
    return torch.stack([moments.mean, deviation])


def normal(moments: Moments) -> Tensor:
    """Return (C + 1, C): the mean in the first row, the covariance in the other rows."""
    mean, second = moments
    return torch.cat([mean[None], second - mean[:, None] * mean])


def wasserstein(statistic: Tensor, target: Tensor) -> Tensor:
    """Return the squared 2-Wasserstein distance of two normal distributions, 0-d.

    The arguments are results of `normal`. With the mean m and the covariance C of the pastiche,
    and m_s and C_s of the style, the distance is (Dowson and Landau 1982, "The Frechet distance
    between multivariate normal distributions")

        |m - m_s|^2 + tr(C) + tr(C_s) - 2 tr((C_s^1/2 C C_s^1/2)^1/2)

    With C_s = L L^T the last trace is the sum of the square roots of the eigenvalues of L^T C L.
    This needs no matrix square root. The gradient stays finite if eigenvalues are equal, unlike the
    gradient of eigenvectors. The eigenvalues are computed in float64.
    """
    given, statistic, target = statistic, to_float64(statistic), to_float64(target)
    mean, covariance = statistic[0], statistic[1:]
    target_mean, target_covariance = target[0], target[1:]
    ridge = RIDGE * target_covariance.diagonal().mean().clamp_min(0) + TINY
    identity = torch.eye(len(mean), dtype=mean.dtype, device=mean.device) * ridge
    covariance, target_covariance = covariance + identity, target_covariance + identity
    factor = _factor(target_covariance, ridge)
    eigenvalues = torch.linalg.eigvalsh(factor.mT @ covariance @ factor)
    traces = covariance.trace() + target_covariance.trace()
    shift = (mean - target_mean).square().sum()
    roots = eigenvalues.clamp_min(TINY * ridge).sqrt().sum()
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


GRAM = StyleMeasure("gram", gram, with_mean=False)
MOMENTS = StyleMeasure("moments", by_channel)
WASSERSTEIN = StyleMeasure("wasserstein", normal, wasserstein)


class StyleDistance(LossLayer):
    """L = compare(S, A): S is the statistic of the features' moments, A the style's statistic.

    With the measure GRAM, S and A are Gram matrices, and L is their mean squared difference.

    Args:
        target: A, the style image's statistic; for GRAM its Gram matrix (C, C).
        measure: the statistic, and how two statistics are compared.
        weights: (H, W), the weights of the feature map's positions; None for equal weights.
    """

    target: Tensor
    weights: Tensor | None

    def __init__(
        self, target: Tensor, measure: StyleMeasure = GRAM, weights: Tensor | None = None
    ) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.register_buffer("weights", weights)
        self.measure = measure

    def forward(self, features: Tensor) -> Tensor:
        """Keep L in `loss`; return the features; backward adds the gradient of `MomentsTap`."""
        tapped, self.loss = self.tap(features)
        return tapped

    def value(self, features: Tensor) -> Tensor:
        """Return L, 0-d, computed by torch's operations, which autograd differentiates."""
        found = moments_of(features, self.measure.with_mean, self.weights)
        return self.measure.loss(found, self.target)

    def scaled(self, features: Tensor, weight: float) -> Tensor:
        """Return w^2 L; if `is_squared`, as mean((S w - A w)^2), with w inside the square."""
        if not self.measure.is_squared:
            return weight**2 * self.value(features)
        found = moments_of(features, self.measure.with_mean, self.weights)
        return self.measure.compare(self.measure.statistic(found) * weight, self.target * weight)

    def tap(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features unchanged (a view), and L, which uses `MomentsTap`.

        `MomentsTap` computes the moments of the features, and has a gradient in closed form. L
        follows from the moments by a few operations on small matrices, which autograd
        differentiates.
        """
        tapped, found = moments_tap(features, self.measure.with_mean, self.weights)
        return tapped, self.measure.loss(found, self.target)
