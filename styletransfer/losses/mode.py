"""The interface of a loss mode: how an objective makes loss layers and differentiates losses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from styletransfer.losses.style import StyleMeasure


@dataclass(frozen=True)
class Term:
    """A term is one content, match or style loss of an objective."""

    name: str  #: kind and layer, such as "style/relu1_1"
    module: nn.Module  #: the layer that computes the loss; `loss` is 0-d after a forward pass
    weight: float  #: the linear weight of the loss in the objective


@dataclass(frozen=True)
class LossMode:
    """A loss mode is a way to compute losses in modules and differentiate them w.r.t. the image."""

    name: str  #: the value of the config key loss_mode.name
    #: (target features, linear weight) -> content-loss layer, which returns its input unchanged.
    content: Callable[[Tensor, float], nn.Module]
    #: (target features, linear weight) -> match-loss layer, which returns its input unchanged.
    match: Callable[[Tensor, float], nn.Module]
    #: (target statistic, linear weight, measure, weights of positions or None) -> style-loss layer,
    #: which returns its input unchanged.
    style: Callable[[Tensor, float, StyleMeasure, Tensor | None], nn.Module]
    #: (terms, prior, output) -> weighted losses, one per term. Their gradient, and the gradient of
    #: `prior` (a 0-d loss on the image itself, or None), is added to the image's `.grad`. `output`
    #: is what the network returned: the features after the deepest loss.
    differentiate: Callable[[Sequence[Term], Tensor | None, Tensor], list[Tensor]]
    #: True if the gradient at each position follows from the moments in closed form. The graph then
    #: saves nothing but the features, and a picture can be evaluated in tiles.
    is_closed_form: bool = False


def differentiate_sum(terms: Sequence[Term], prior: Tensor | None, output: Tensor) -> list[Tensor]:
    """Call `.backward()` once on the sum of weight * loss over all terms; return the losses.

    `prior` is a further loss, already weighted, of the picture itself, such as total variation.
    """
    losses: list[Tensor] = [term.weight * term.module.loss for term in terms]  # type: ignore
    total = torch.stack(losses).sum()
    if prior is not None:
        total = total + prior
    total.backward()  # type: ignore[no-untyped-call]
    return losses
