"""A real backward: each loss has a `torch.autograd.Function` with its own `backward`.

In plain PyTorch, from the complete program docs/examples/autograd_function.py:

    class ContentTap(torch.autograd.Function):
        @staticmethod
        def forward(ctx, features, target):  # -> features, loss
            ctx.save_for_backward(features, target)
            return features.view_as(features), (features - target).square().mean()

        @staticmethod
        def backward(ctx, grad_features, grad_loss):  # -> one gradient for each input of forward
            features, target = ctx.saved_tensors
            return grad_features + grad_loss * 2 * (features - target) / features.numel(), None

Autograd calls this `backward`, because the Function is a node of the graph. The Function returns
two things: the features, unchanged, for the next layer, and the loss. So the gradient from deeper
layers passes through this node, too, and the node adds the gradient of the loss to it.

In this mode a loss is itself the layer: its `forward`, in `content.py`, `match.py` or `style.py`,
calls the loss's Function, keeps the loss, and returns the features.
"""

from collections.abc import Sequence
from copy import copy

import torch
from torch import Tensor

from styletransfer.losses.mode import Distance, Term


class AutogradFunction:
    """This is the default mode: autograd calls the hand-written backward of each loss."""

    name = "autograd_function"
    is_closed_form = True

    @staticmethod
    def layer(distance: Distance, weight: float) -> Distance:
        """Return a copy of `distance`, because each objective that uses it needs its own `loss`."""
        return copy(distance)

    @staticmethod
    def differentiate(terms: Sequence[Term], prior: Tensor | None, output: Tensor) -> list[Tensor]:
        """Call `.backward()` once, on the sum of `prior` and of weight * loss of each term."""
        losses = [term.weight * term.module.loss for term in terms]
        torch.stack(losses if prior is None else [*losses, prior]).sum().backward()
        return losses
