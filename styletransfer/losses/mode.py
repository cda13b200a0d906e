"""The types that every loss mode uses: a loss, and a loss with its weight in an objective."""

from dataclasses import dataclass

from styletransfer.losses.content import ContentDistance
from styletransfer.losses.distance import LossLayer
from styletransfer.losses.match import MatchDistance
from styletransfer.losses.style import StyleDistance

#: A distance is a loss L of features F (1, C, H, W), for a constant target. `value` returns L, and
#: `scaled` returns weight^2 L; both use torch's operations, which autograd differentiates. `tap`
#: returns F and L; its gradient is written by hand. `forward` calls `tap`, and keeps L in `loss`.
Distance = ContentDistance | MatchDistance | StyleDistance


@dataclass(frozen=True)
class Term:
    """A term is one content, match or style loss of an objective."""

    name: str  #: kind, region and layer, such as "style/relu1_1" or "style/sky/relu1_1"
    module: LossLayer  #: the layer that computes the loss
    weight: float  #: the loss is multiplied by this in the objective
