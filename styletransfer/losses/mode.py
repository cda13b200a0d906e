"""The protocol by which an objective drives any loss mode."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from styletransfer.losses.style import StyleMeasure


@dataclass(frozen=True)
class Term:
    """One content or style loss of an objective."""

    name: str  #: kind and layer, such as "style/relu1_1"
    module: nn.Module  #: the transparent layer; after a forward its `loss` holds a 0-d tensor
    weight: float  #: the linear weight of the loss in the objective


@dataclass(frozen=True)
class LossMode:
    """One way for modules to carry losses to the image's gradient."""

    name: str  #: as in the config
    #: (target features, linear weight) -> transparent content-loss layer.
    content: Callable[[Tensor, float], nn.Module]
    #: (target statistic, linear weight, measure, weights of positions or None) -> transparent
    #: style-loss layer.
    style: Callable[[Tensor, float, StyleMeasure, Tensor | None], nn.Module]
    #: (terms, prior) -> weighted losses, one per term, after their gradient and that of `prior` (a
    #: loss on the image itself, or None) was accumulated in the image.
    differentiate: Callable[[Sequence[Term], Tensor | None], list[Tensor]]
    #: Gradients at each position follow from the moments, so the graph keeps nothing beside the
    #: features, and a picture can be evaluated in tiles.
    is_closed_form: bool = False


def differentiate_sum(terms: Sequence[Term], prior: Tensor | None) -> list[Tensor]:
    """Sum weight * loss over all modules and call `.backward()` once."""
    losses: list[Tensor] = [term.weight * term.module.loss for term in terms]  # type: ignore
    total = torch.stack(losses).sum()
    if prior is not None:
        total = total + prior
    total.backward()  # type: ignore[no-untyped-call]
    return losses
