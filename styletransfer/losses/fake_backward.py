"""The PyTorch 0.3 way: a loss module with an ordinary method called `backward`.

In plain PyTorch, from the complete program docs/examples/fake_backward.py:

    class ContentLoss(nn.Module):
        def __init__(self, target, weight):
            super().__init__()
            self.weight = weight
            self.register_buffer("target", target.detach() * weight)

        def forward(self, features):
            self.loss = mse_loss(features * self.weight, self.target)
            return features

        def backward(self, retain_graph=True):
            self.loss.backward(retain_graph=retain_graph)
            return self.loss

Autograd does not know this method. `loss.backward()` on a network that holds such modules walks the
graph of operations and never calls it. The calling code calls it, once for each module. Each call
walks the graph from its own layer to the image again, and `retain_graph=True` keeps the saved
tensors for the calls that follow.

The weight w multiplies the features, or the Gram matrix, inside the loss:
MSE(F w, P w) = w^2 MSE(F, P). It therefore acts squared: the style weight of 1000 in the 0.3
tutorial has the same effect as the style weight of 1 000 000 in the 0.4 tutorial. A loss that is
no squared difference, such as the Wasserstein distance, is multiplied by w^2 instead.
"""

import math
from collections.abc import Sequence
from typing import Self

from torch import Tensor

from styletransfer.losses.distance import LossLayer
from styletransfer.losses.mode import Distance, Term


class FakeBackward(LossLayer):
    """This layer returns its input F and keeps w^2 L(F) in `loss`.

    Args:
        distance: L, the loss that the layer computes.
        weight: w, at least 0.
    """

    name = "fake_backward"
    is_closed_form = False

    def __init__(self, distance: Distance, weight: float) -> None:
        super().__init__()
        self.distance, self.weight = distance, weight

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W) unchanged."""
        self.loss = self.distance.scaled(features, self.weight)
        return features

    def backward(self, retain_graph: bool = True) -> Tensor:
        """Differentiate the loss of the last forward; autograd never calls this method."""
        self.loss.backward(retain_graph=retain_graph)
        return self.loss

    @classmethod
    def layer(cls, distance: Distance, weight: float) -> Self:
        """Return a layer with the loss `weight` * L(F) = w^2 L(F): its w is sqrt(weight)."""
        return cls(distance, math.sqrt(weight))

    @staticmethod
    def differentiate(terms: Sequence[Term], prior: Tensor | None, output: Tensor) -> list[Tensor]:
        """Call `backward` of each layer and of `prior`; gradients add up in the image's `.grad`."""
        layers = [term.module for term in terms if isinstance(term.module, FakeBackward)]
        losses = [layer.backward() for layer in layers]
        if prior is not None:
            prior.backward()
        return losses
