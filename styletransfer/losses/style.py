"""What a style loss is made of: a statistic of the features' moments, and a distance."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from styletransfer.functions.moments import Moments
from styletransfer.losses.squares import mean_square

Distance = Callable[[Tensor, Tensor], Tensor]


def squared_distance(statistic: Tensor, target: Tensor) -> Tensor:
    """Return mean((S - T)^2), 0-d. A factor on both S and T acts squared."""
    return mean_square(statistic - target)


@dataclass(frozen=True)
class StyleMeasure:
    """One way to compare styles: distance(statistic(pastiche), statistic(style))."""

    name: str  # as in the config
    # Moments -> what is compared; of the style, this is the target of a loss.
    statistic: Callable[[Moments], Tensor]
    # (statistic, target) -> 0-d, at least 0, and 0 where both are equal.
    distance: Distance = squared_distance
    with_mean: bool = True  # the statistic needs the mean, too; see `moments`

    @property
    def is_squared(self) -> bool:
        """A factor on statistic and target acts squared on the distance."""
        return self.distance is squared_distance

    def loss(self, moments: Moments, target: Tensor) -> Tensor:
        """Return the loss, 0-d, of a pastiche with these moments."""
        return self.distance(self.statistic(moments), target)
