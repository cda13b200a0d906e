"""The match loss: at each position, one minus the cosine of the features and their target.

The target of a position is the features at the style position that is most similar to it (Kolkin
et al. 2022, "Neural Neighbor Style Transfer", arXiv:2203.13215). A cosine compares which features
are present, not how strong they are, so positions with strong features do not count more.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer.features.tensors import accumulate_dtype, check_target
from styletransfer.losses.content import ContentTap
from styletransfer.losses.distance import PositionalDistance
from styletransfer.system.devices import at_a_time

# Number of values that `ProductsTap` multiplies at a time on the CPU, where their float32 copies
# then stay in the cache (measured on x86).
BLOCK = 2**17


class MatchDistance(PositionalDistance):
    """L = mean over positions p of w_p (1 - cos(F_p, T_p)), for matched features T (1, C, H, W).

    The weights w, in [0, 1], are 1 by default. Where F is 0, the cosine counts as 0. Where T is 0
    the position has no target, and its loss counts as 0. Only the directions T_p / |T_p| are kept,
    as `target`.

    Args:
        target: the matched features T.
        weights: (1, 1, H, W), or None for 1 everywhere.
    """

    weights: Tensor  # (1, 1, H, W), 0 where the position has no target

    def __init__(self, target: Tensor, weights: Tensor | None = None) -> None:
        dtype = accumulate_dtype(target.dtype)
        lengths = torch.linalg.vector_norm(target.detach(), dim=1, keepdim=True, dtype=dtype)
        is_wanted = lengths > 0
        super().__init__(target / torch.where(is_wanted, lengths, 1).to(target.dtype))
        wanted = is_wanted.to(dtype)
        self.register_buffer("weights", wanted if weights is None else wanted * weights.to(wanted))

    def forward(self, features: Tensor) -> Tensor:
        """Call `tap`: keep L in `loss`, and return the features unchanged (a view)."""
        tapped, self.loss = self.tap(features)
        return tapped

    def value(self, features: Tensor) -> Tensor:
        """Return L, 0-d, from 0 to 2 except for a rounding error.

        It is computed by torch's operations, which autograd differentiates.
        """
        return self._loss(*inner_products(features, self.target))

    def scaled(self, features: Tensor, weight: float) -> Tensor:
        """Return w^2 L: w multiplies L, because a factor on features does not change a cosine."""
        return weight**2 * self.value(features)

    def tap(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features unchanged (a view), and L, which uses `ProductsTap`.

        `ProductsTap` computes two inner products at each position, and has a gradient in closed
        form. L follows from them by a few operations on maps of one channel, which autograd
        differentiates.

        Raises ValueError if features and target differ in shape, or are not (1, C, H, W).
        """
        check_target("MatchDistance", features, self.target)
        tapped, dots, squares = ProductsTap.apply(features, self.target)
        return tapped, self._loss(dots, squares)

    def _loss(self, dots: Tensor, squares: Tensor) -> Tensor:
        """Return L from dots = F_p . T_p / |T_p| and squares = |F_p|^2, (1, 1, H, W) each."""
        is_seen = squares > 0
        lengths = torch.where(is_seen, squares, 1).sqrt()
        # `where` gives autograd a gradient of 0 at positions whose features are all 0.
        return (self.weights * (1 - torch.where(is_seen, dots / lengths, 0))).mean()


def inner_products(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return F_p . T_p and |F_p|^2 at each position p, (1, 1, H, W) each.

    They are summed in float32 for bfloat16, else in the features' dtype.
    """
    dtype = accumulate_dtype(features.dtype)
    dots, squares = (features * x for x in (target, features))
    return dots.sum(1, keepdim=True, dtype=dtype), squares.sum(1, keepdim=True, dtype=dtype)


class ProductsTap(Function):
    """This Function computes F_p . T_p and |F_p|^2; backward works for any loss L of these two.

    With d = dL/d(F_p . T_p) and s = dL/d(|F_p|^2) at each position: dL/dF_p = d T_p + 2 s F_p.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the features F (a view, no copy), F . T and |F|^2, the last two (1, 1, H, W).

        A few rows of the feature map are multiplied at a time; bfloat16 values become float32.
        """
        dtype = accumulate_dtype(features.dtype)
        values = features.shape[1] * features.shape[3]  # in one row of the feature map
        rows = at_a_time(max(1, BLOCK // values), features.device, values)
        blocks = zip(torch.split(features, rows, 2), torch.split(target, rows, 2), strict=True)
        products = [inner_products(f.to(dtype), t.to(dtype)) for f, t in blocks]
        dots, squares = (torch.cat(parts, 2) for parts in zip(*products, strict=True))
        return features.view_as(features), dots, squares

    setup_context = staticmethod(ContentTap.setup_context)  # saves F and T for backward

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        """Return the gradient of the features; the target, a constant, has none."""
        total, grad_dots, grad_squares = grads
        features, target = ctx.saved_tensors
        if grad_squares is not None:
            total = _plus_product(total, features, 2 * grad_squares)
        if grad_dots is not None:
            total = _plus_product(total, target, grad_dots)
        return total, None


def _plus_product(total: Tensor | None, maps: Tensor, factor: Tensor) -> Tensor:
    """Return total + maps * factor, in the dtype of `maps`; a total of None counts as 0."""
    factor = factor.to(maps.dtype)
    return maps * factor if total is None else torch.addcmul(total, maps, factor)
