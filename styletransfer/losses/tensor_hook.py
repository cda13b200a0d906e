"""The hook way: each loss layer adds its loss's gradient in a hook on the features it returns.

`features.register_hook(hook)` makes autograd call `hook(grad)` when the gradient of these features
is complete, and continue with the tensor that the hook returns. Each loss is computed on detached
features, so it has no graph, and its gradient is known in closed form. The calling code sends zeros
backward from the network's output. On the way to the image, each hook adds weight * dL/dF to the
gradient. Lua Torch's `updateGradInput` added it at the same place (jcjohnson/neural-style).

A loss without a graph cannot be differentiated again, by `loss.backward()` or any other function.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from styletransfer.losses import LossLayer, LossMode, Term, weighted_losses
from styletransfer.losses.cosine import cosine_gradient, cosine_loss
from styletransfer.losses.moments import Moments, add_moments_gradient, moments
from styletransfer.losses.squares import content_loss
from styletransfer.losses.style import GRAM, StyleMeasure


class HookLayer(LossLayer):
    """A loss layer whose loss has no graph: a hook adds its gradient to that of the features."""

    def with_hook(self, features: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Tensor:
        """Return a view of the features with `hook` registered; `features` itself gets no hook."""
        tapped = features.view_as(features)
        if tapped.requires_grad:
            tapped.register_hook(hook)  # type: ignore[no-untyped-call]
        return tapped


class ContentLoss(HookLayer):
    """This layer returns its input F, and a hook adds weight * dMSE(F, P)/dF to its gradient.

    Args:
        target: P, the content image's features at this layer, (1, C, H, W).
        weight: the linear weight of the gradient that the hook adds; `loss` is without it.
    """

    target: Tensor

    def __init__(self, target: Tensor, weight: float) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.weight = weight

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W), with the hook."""
        measured = features.detach()
        self.loss = content_loss(measured, self.target)
        factor = self.weight * 2 / measured.numel()
        return self.with_hook(features, lambda grad: grad + (measured - self.target) * factor)


class MatchLoss(HookLayer):
    """This layer returns its input F; a hook adds the gradient of mean_p(1 - cos(F_p, T_p)).

    Args:
        target: T, (1, C, H, W), at each position p the features of the most similar style position.
        weight: the linear weight of the gradient that the hook adds; `loss` is without it.
    """

    target: Tensor

    def __init__(self, target: Tensor, weight: float) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.weight = weight

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W), with the hook."""
        measured = features.detach()
        self.loss = cosine_loss(measured, self.target)
        factor = self.weight / measured[:, 0].numel()
        return self.with_hook(
            features, lambda grad: grad + cosine_gradient(measured, self.target) * factor
        )


class StyleLoss(HookLayer):
    """This layer returns its input F, and a hook adds the gradient of a style loss.

    Autograd differentiates the loss w.r.t. the moments, which are small; the hook adds the gradient
    w.r.t. the features in closed form (see `add_moments_gradient`).

    Args:
        target: the statistic of the style image; for the Gram loss its Gram matrix (C, C).
        weight: the linear weight of the gradient that the hook adds; `loss` is without it.
        measure: the statistic that is compared, and the distance.
        weights: (H, W), the weights of the feature map's positions; None for equal weights.
    """

    target: Tensor
    weights: Tensor | None

    def __init__(
        self,
        target: Tensor,
        weight: float,
        measure: StyleMeasure = GRAM,
        weights: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())
        self.register_buffer("weights", weights)
        self.weight, self.measure = weight, measure

    def forward(self, features: Tensor) -> Tensor:
        """Keep the loss in `self.loss` and return the features (1, C, H, W), with the hook."""
        measured = features.detach()
        found = moments(measured, self.measure.with_mean, self.weights)
        found = Moments(*(moment.requires_grad_() for moment in found))
        with torch.enable_grad():  # the caller may have disabled gradients
            loss = self.measure.loss(found, self.target)
            mean, second = torch.autograd.grad(self.weight * loss, found, allow_unused=True)
        self.loss = loss.detach()
        total = measured[0, 0].numel() if self.weights is None else self.weights.sum()

        def add_gradient(grad: Tensor) -> Tensor | None:
            return add_moments_gradient(grad, measured, mean, second, total, self.weights)

        return self.with_hook(features, add_gradient)


def send_zeros(terms: Sequence[Term], prior: Tensor | None, output: Tensor) -> list[Tensor]:
    """Backpropagate zeros from the network's output, so that every hook adds its gradient."""
    losses = weighted_losses(terms)
    output.backward(torch.zeros_like(output))  # type: ignore[no-untyped-call]
    if prior is not None:
        prior.backward()  # type: ignore[no-untyped-call]
    return losses


MODE = LossMode(
    name="tensor_hook",
    content=ContentLoss,
    match=MatchLoss,
    style=StyleLoss,
    differentiate=send_zeros,
    is_closed_form=True,
)
