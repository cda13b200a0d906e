"""A loss mode is a layer that can compute any loss, and a function that differentiates losses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from styletransfer.losses.distance import Distance


class LossLayer(nn.Module):
    """A loss layer returns its input, and keeps the loss of its last forward in `loss`."""

    loss: Tensor  #: 0-d; `Objective.evaluate` deletes it, so that its graph is freed


@dataclass(frozen=True)
class Term:
    """A term is one content, match or style loss of an objective."""

    name: str  #: kind, region and layer, such as "style/relu1_1" or "style/sky/relu1_1"
    module: LossLayer  #: the layer that computes the loss
    weight: float  #: the linear weight of the loss in the objective


@dataclass(frozen=True)
class LossMode:
    """A loss mode is a way to compute losses in modules and differentiate them w.r.t. the image."""

    name: str  #: the value of the config key loss_mode.name
    #: (distance, linear weight) -> a layer that computes this loss and returns its input unchanged.
    layer: Callable[[Distance, float], LossLayer]
    #: (terms, prior, output) -> weighted losses, one per term. Their gradient, and the gradient of
    #: `prior` (a 0-d loss on the image itself, or None), is added to the image's `.grad`. `output`
    #: is what the network returned: the features after the deepest loss.
    differentiate: Callable[[Sequence[Term], Tensor | None, Tensor], list[Tensor]]
    #: True if the layer uses `Distance.tap`. The only large tensors that the graph then saves are
    #: features and targets, and a picture can be evaluated in tiles.
    is_closed_form: bool = False
