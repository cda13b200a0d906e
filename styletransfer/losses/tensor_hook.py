"""The hook way: each loss layer adds its loss's gradient in a hook on its features.

`features.register_hook(hook)` makes autograd call `hook(grad)` when the gradient of these features
is complete, and continue with the tensor that the hook returns. Each loss is computed on a leaf,
the detached features, so its graph ends at this leaf instead of the image. The calling code sends
zeros backward from the network's output. On the way to the image, each hook adds weight * dL/dF to
the gradient. Lua Torch's `updateGradInput` added it at the same place (jcjohnson/neural-style).

The loss that a layer keeps has no graph: it cannot be differentiated by `loss.backward()`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from styletransfer.losses.content import ContentDistance
from styletransfer.losses.distance import Distance
from styletransfer.losses.mode import LossLayer, LossMode, Term
from styletransfer.losses.style import GRAM, StyleDistance, StyleMeasure


class TensorHook(LossLayer):
    """This layer returns its input F, and a hook adds weight * dL/dF to the gradient of F.

    Args:
        distance: L, the loss that the layer computes.
        weight: the linear weight of the gradient that the hook adds. It does not multiply `loss`.
    """

    def __init__(self, distance: Distance, weight: float) -> None:
        super().__init__()
        self.distance, self.weight = distance, weight

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss`; set the hook; return the features (1, C, H, W), a view."""
        leaf = features.detach().requires_grad_()
        _, loss = self.distance.tap(leaf)
        weight = torch.full_like(loss, self.weight)

        def add_gradient(grad: Tensor) -> Tensor:
            """Return grad + weight * dL/dF; the graph from `leaf` to L has only a few nodes."""
            (slope,) = torch.autograd.grad(loss, leaf, weight, retain_graph=True)
            return grad + slope

        self.loss = loss.detach()
        output = features.view_as(features)  # a new node of the graph, which `explain` shows
        if output.requires_grad:
            # A hook on a leaf, such as the image, would stay after this step. A hook on the view
            # `output` would be lost if the next layer changed `output` in place.
            hooked = output if features.is_leaf else features
            hooked.register_hook(add_gradient)
        return output


class ContentLoss(TensorHook):
    """MSE(F, P): F and P (1, C, H, W) are the features of the input and of the content image."""

    def __init__(self, target: Tensor, weight: float) -> None:
        super().__init__(ContentDistance(target), weight)


class StyleLoss(TensorHook):
    """With GRAM, MSE(G, A): G, A are the Gram matrices (C, C) of the input and the style image."""

    def __init__(self, target: Tensor, weight: float, measure: StyleMeasure = GRAM) -> None:
        super().__init__(StyleDistance(target, measure), weight)


def send_zeros(terms: Sequence[Term], prior: Tensor | None, output: Tensor) -> list[Tensor]:
    """Backpropagate zeros from the network's output, so that every hook adds its gradient."""
    losses = [term.weight * term.module.loss for term in terms]
    output.backward(torch.zeros_like(output))
    if prior is not None:
        prior.backward()
    return losses


MODE = LossMode("tensor_hook", layer=TensorHook, differentiate=send_zeros, is_closed_form=True)
