"""The types that every loss mode uses: a loss, and a loss with its weight in an objective."""

from dataclasses import dataclass

from torch import Tensor

from styletransfer.losses.content import ContentDistance
from styletransfer.losses.distance import LossLayer
from styletransfer.losses.match import MatchDistance
from styletransfer.losses.style import StyleDistance

#: A distance is a loss L of features F (1, C, H, W), for a constant target. `value` returns L, and
#: `scaled` returns weight^2 L; autograd differentiates both. `tap` calls a Function that has a
#: hand-written backward, and returns F and L. `forward` calls `tap`, and keeps L in `loss`.
Distance = ContentDistance | MatchDistance | StyleDistance


@dataclass(frozen=True)
class Term:
    """A term is one content, match or style loss of an objective."""

    name: str  #: such as "style/relu1_1", or "style/sky/relu1_1" for a region called sky
    module: LossLayer  #: the layer that computes the loss
    #: The loss is multiplied by this in the objective. It is a 0-d tensor if the evaluation is
    #: captured, because a replay cannot get another float.
    weight: float | Tensor
