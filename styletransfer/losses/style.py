"""Style losses: each compares a statistic of two pictures, the pastiche and the style image.

The statistic is a function of the moments of features, such as the Gram matrix. `covariance.py` has
two other statistics. Every style loss is a `StyleDistance`, and `MomentsTap` has the
formula of its gradient.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.autograd import Function

from styletransfer.losses.distance import LossLayer
from styletransfer.losses.moments import Moments, add_moments_gradient, moments


def squared_distance(statistic: Tensor, target: Tensor) -> Tensor:
    """Return mean((S - T)^2), 0-d. Multiplying S and T by w multiplies the result by w^2."""
    return (statistic - target).square().mean()


@dataclass(frozen=True)
class StyleMeasure:
    """A style measure is a statistic of moments, and a function that compares two statistics."""

    name: str  #: the value of the config key objective.style_loss
    #: A function of `Moments` that returns the tensor to compare, such as a Gram matrix.
    statistic: Callable[[Moments], Tensor]
    #: A function of a statistic and a target that returns a loss, 0-d: at least 0, and 0 for the
    #: style's own statistic, except for a rounding error.
    compare: Callable[[Tensor, Tensor], Tensor] = squared_distance
    with_mean: bool = True  #: whether the statistic uses the mean of the features
    #: A function, called once per `StyleDistance`, that returns the target for a style's statistic.
    prepare: Callable[[Tensor], Tensor] = Tensor.detach

    @property
    def is_squared(self) -> bool:
        """Whether multiplying statistic and target by w multiplies the loss by w^2."""
        return self.compare is squared_distance

    def loss(self, moments: Moments, target: Tensor) -> Tensor:
        """Return the loss, 0-d, of the pastiche's `moments`; `target` is a result of `prepare`."""
        return self.compare(self.statistic(moments), target)


def gram(moments: Moments) -> Tensor:
    """Return the Gram matrix (C, C) of Gatys et al. 2016: the second moment divided by C.

    The PyTorch tutorials divide in the same way. The diagonal of the Gram matrix does not
    distinguish a constant feature from a feature of strong contrast that has the same mean square.
    """
    return moments.second / moments.second.shape[-1]


GRAM = StyleMeasure("gram", gram, with_mean=False)


class StyleDistance(LossLayer):
    """L = compare(S, prepare(A)): S is the features' statistic, A the style image's statistic.

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
        self.register_buffer("target", measure.prepare(target.detach()))
        self.register_buffer("weights", weights)
        self.measure = measure

    def forward(self, features: Tensor) -> Tensor:
        """Call `tap`: keep L in `loss`, and return the features unchanged (a view)."""
        tapped, self.loss = self.tap(features)
        return tapped

    def value(self, features: Tensor) -> Tensor:
        """Return L, 0-d, computed by torch's operations, which autograd differentiates."""
        found = moments(features, self.measure.with_mean, self.weights)
        return self.measure.loss(found, self.target)

    def scaled(self, features: Tensor, weight: float) -> Tensor:
        """Return w^2 L; if the measure `is_squared`, it is computed as mean((S w - A w)^2)."""
        if not self.measure.is_squared:
            return weight**2 * self.value(features)
        found = moments(features, self.measure.with_mean, self.weights)
        return self.measure.compare(self.measure.statistic(found) * weight, self.target * weight)

    def tap(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features unchanged (a view), and L.

        `MomentsTap` computes the moments, and has a gradient in closed form. L follows from the
        moments by a few operations on small matrices, which autograd differentiates.
        """
        tapped, *found = MomentsTap.apply(features, self.measure.with_mean, self.weights)
        return tapped, self.measure.loss(Moments(*found), self.target)


class MomentsTap(Function):
    """This Function computes moments; its backward has the formula for any loss L of the moments.

    With g = dL/dmean (C,) and H = dL/dsecond (C, C), the features f_p (C,) at each of n positions p
    have dL/df_p = (g + (H + H^T) f_p) / n. If positions have weights m_p, m_p / sum(m) replaces
    1 / n. Backward adds dL/df_p to the gradient that the features receive from deeper layers.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        features: Tensor, with_mean: bool, weights: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the features (a view, no copy), their mean (C,) and second moment (C, C)."""
        return features.view_as(features), *moments(features, with_mean, weights)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, bool, Tensor | None], output: tuple[Tensor, ...]
    ) -> None:
        """Save the features, which the network keeps in memory anyway, and the weights if given."""
        features, ctx.with_mean, weights = inputs
        ctx.save_for_backward(features, *([] if weights is None else [weights]))
        # With False, the gradient of an unused output is None in backward, not a tensor of zeros.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None]:
        """Return the gradient of the features; `with_mean` and `weights` have no gradient."""
        features, *given = ctx.saved_tensors
        addend, mean, second = grads
        weights = given[0] if given else None
        mean = mean if ctx.with_mean else None
        total = math.prod(features.shape[2:]) if weights is None else weights.sum()
        return add_moments_gradient(addend, features, mean, second, total, weights), None, None
