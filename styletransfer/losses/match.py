"""The match loss: at each position, one minus the cosine of the features and their target.

The target of a position is the features at the style position that is most similar to it (Kolkin
et al. 2022, "Neural Neighbor Style Transfer", arXiv:2203.13215). A cosine compares which features
are present, not how strong they are, so every position of the picture counts alike.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer.features.tensors import accumulate_dtype, check_target
from styletransfer.losses.distance import PositionalDistance


class MatchDistance(PositionalDistance):
    """L = mean_p(1 - cos(F_p, T_p)), where the target T (1, C, H, W) are the matched features.

    A cosine does not change when both vectors are multiplied by a weight.
    """

    def forward(self, features: Tensor) -> Tensor:
        """Return L, 0-d, with a gradient by autograd."""
        return cosine_loss(features, self.target)

    def tap(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features unchanged (a view), and L, with the gradient of `CosineTap`.

        (ValueError: features and target differ in shape, or are not (1, C, H, W).)
        """
        check_target("MatchDistance", features, self.target)
        tapped, loss = CosineTap.apply(features, self.target)
        return tapped, loss


def cosine_loss(features: Tensor, target: Tensor) -> Tensor:
    """Return the mean over positions p of 1 - cos(F_p, T_p), 0-d, from 0 to 2.

    F are the features (1, C, H, W) and T the target, of the same shape. Where F is 0, the cosine
    counts as 0. Where T is 0 the position has no target, and its loss counts as 0.
    """
    cosines, *_, is_wanted = _cosines(features, target)
    return (is_wanted.to(cosines.dtype) - cosines).mean()


def cosine_gradient(features: Tensor, target: Tensor) -> Tensor:
    """Return the gradient w.r.t. features F of the sum over positions p of 1 - cos(F_p, T_p).

    For f = F_p / |F_p| and t = T_p / |T_p| it is (cos f - t) / |F_p|, and 0 where F_p or T_p is 0.
    """
    cosines, lengths, units, is_seen, _ = _cosines(features, target)
    directions = features / lengths.to(features.dtype)
    gradient = (directions * cosines.to(features.dtype) - units) / lengths.to(features.dtype)
    return gradient * is_seen


def _cosines(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the terms of the cosine between features F and target T at each position p.

    They are cos(F_p, T_p), 0 where F_p or T_p is 0; |F_p|, 1 where F_p is 0; T_p / |T_p|; whether
    |F_p| is not 0; and whether |T_p| is not 0. T_p / |T_p| has the shape of F, the other terms have
    the shape (1, 1, H, W).
    """
    dtype = accumulate_dtype(features.dtype)
    lengths, sizes = (
        torch.linalg.vector_norm(x, dim=1, keepdim=True, dtype=dtype) for x in (features, target)
    )
    is_wanted = sizes > 0
    units = target / torch.where(is_wanted, sizes, 1).to(target.dtype)
    products = (features * units).sum(1, keepdim=True, dtype=dtype)
    is_seen = lengths > 0
    lengths = torch.where(is_seen, lengths, 1)
    # `where` gives autograd a gradient of 0 at positions whose features are all 0.
    return torch.where(is_seen, products / lengths, 0), lengths, units, is_seen, is_wanted


class CosineTap(Function):
    """This Function computes L = mean_p(1 - cos(F_p, T_p)), and dL/dF by `cosine_gradient`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features (a view, no copy) and the 0-d loss."""
        return features.view_as(features), cosine_loss(features, target)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, ...]) -> None:
        """Save features F and target T, which stay in memory anyway."""
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        """Return the gradient of the features; the target, a constant, has none."""
        grad_features, grad_loss = grads
        if grad_loss is None:
            return grad_features, None
        features, target = ctx.saved_tensors
        factor = (grad_loss / features[:, 0].numel()).to(features.dtype)
        grad_input = cosine_gradient(features, target) * factor
        return grad_input if grad_features is None else grad_features + grad_input, None
