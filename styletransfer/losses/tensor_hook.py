"""The hook way: each loss layer adds its loss's gradient in a hook on the features.

In plain PyTorch, from the complete program docs/examples/tensor_hook.py:

    def forward_hook(layer, inputs, output):
        leaf = output.detach().requires_grad_()
        layer.loss = loss_of(leaf)
        (grad_loss,) = torch.autograd.grad(layer.loss, leaf)
        output.register_hook(lambda grad_output: grad_output + grad_loss)

`features.register_hook(hook)` makes autograd call `hook(grad)` when the gradient of these features
is complete, and continue with the tensor that the hook returns. Each loss is computed on a leaf,
the detached features, so its graph ends at this leaf instead of the image. The calling code sends
zeros backward from the network's output. On the way to the image, each hook adds weight * dL/dF to
the gradient. In Lua Torch, the method `updateGradInput` of a loss layer added the loss's gradient
at the same place (jcjohnson/neural-style).

The loss that a layer keeps has no graph: it cannot be differentiated by `loss.backward()`.
"""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from styletransfer.losses.distance import LossLayer
from styletransfer.losses.mode import Distance, Term


class TensorHook(LossLayer):
    """This layer returns its input F, and a hook adds weight * dL/dF to the gradient of F.

    Args:
        distance: L, the loss that the layer computes.
        weight: the factor of the gradient that the hook adds. It does not multiply `loss`.
    """

    name = "tensor_hook"
    is_closed_form = True

    def __init__(self, distance: Distance, weight: float) -> None:
        super().__init__()
        self.distance, self.weight = distance, weight

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss, register the hook, and return the features (1, C, H, W), a view."""
        leaf = features.detach().requires_grad_()
        _, loss = self.distance.tap(leaf)
        weight = torch.full_like(loss, self.weight)

        def add_gradient(grad: Tensor) -> Tensor:
            """Return grad + weight * dL/dF, computed by a backward pass from L to `leaf` only."""
            (slope,) = torch.autograd.grad(loss, leaf, weight, retain_graph=True)
            return grad + slope

        self.loss = loss.detach()
        output = features.view_as(features)  # the command `explain` shows this node of the graph
        if output.requires_grad:
            # The hook is on `features`, because the view `output` would lose it if the next layer
            # changed `output` in place. But if `features` is a leaf, such as the image, the hook is
            # on `output`, because a leaf would keep the hook after this step.
            hooked = output if features.is_leaf else features
            hooked.register_hook(add_gradient)
        return output

    @classmethod
    def layer(cls, distance: Distance, weight: float) -> Self:
        """Return a layer whose hook adds weight * dL/dF."""
        return cls(distance, weight)

    @staticmethod
    def differentiate(terms: Sequence[Term], prior: Tensor | None, output: Tensor) -> list[Tensor]:
        """Backpropagate zeros from the network's output, so that every hook adds its gradient."""
        losses = [term.weight * term.module.loss for term in terms]
        output.backward(torch.zeros_like(output))
        if prior is not None:
            prior.backward()
        return losses
