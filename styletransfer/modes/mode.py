"""The protocol by which an objective drives any loss mode."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from styletransfer.losses import GRAM, StyleMeasure


class LossLayer(nn.Module):
    """A transparent layer: it passes features (1, C, H, W) on, and keeps their loss in `loss`.

    Args:
        target: P (1, C, H, W) of a content loss; the style's statistic, for Gram matrices A (C, C),
            of a style loss. Detached and kept as a buffer.
        measure: of a style loss: which statistic, and how far it is from the target.
        weights: (H, W), of the positions of the region that is to have this style; None for all.
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
        self.loss: Tensor | None = None


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
