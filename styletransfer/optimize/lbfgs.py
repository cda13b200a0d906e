"""L-BFGS for one tensor: an evaluation a step, and no line search.

torch.optim has one too, but the first of its optimisers that is made imports torch's compiler,
which takes half as long as torch itself. It also compares with absolute tolerances, which the
gradients of small weights meet.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Pair:
    """What a step (n,) has taught: the gradient's change (n,) along it, and their inner product."""

    move: Tensor
    change: Tensor
    curvature: float


class LBFGS:
    """The limited-memory BFGS method (Nocedal and Wright 2006, algorithms 7.4 and 7.5).

    Args:
        point: a contiguous leaf, which is moved.
        history: pairs that are kept.
        rate: share of the quasi-Newton step that is made.
        first: mean change of a value in a step that follows the bare gradient, as the first does:
            of the curvature nothing is known then.
    """

    def __init__(self, point: Tensor, *, history: int, rate: float, first: float) -> None:
        self.point, self.rate, self.first = point, rate, first
        self.pairs: deque[Pair] = deque(maxlen=history)  # the oldest first
        self._move: Tensor | None = None
        self._gradient: Tensor | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], object]) -> None:
        """Make one step; nothing has changed before `closure` returns.

        Args:
            closure: sets the gradient at the point. It is taken over: the next step changes it.
        """
        with torch.enable_grad():
            closure()
        assert self.point.grad is not None
        gradient = self.point.grad.flatten()
        self._learn(gradient)
        self._gradient, self._move = gradient, self._step_along(gradient)
        self.point.add_(self._move.view_as(self.point))

    def _learn(self, gradient: Tensor) -> None:
        """Keep what the last step has taught, unless rounding hides it or it curves down."""
        if self._move is None or self._gradient is None:
            return
        move, change = self._move, self._gradient.neg_().add_(gradient)
        curvature = change.dot(move).item()
        if curvature > torch.finfo(move.dtype).eps * move.norm().item() * change.norm().item():
            self.pairs.append(Pair(move, change, curvature))

    def _step_along(self, gradient: Tensor) -> Tensor:
        """Return minus the approximate inverse Hessian times `gradient`, shortened by `rate`."""
        step = gradient.neg()
        if not self.pairs:
            length = step.norm(1).item()
            return step.mul_(self.first * step.numel() / length if length else 0.0)
        shares = []
        for pair in reversed(self.pairs):
            shares.append(step.dot(pair.move).item() / pair.curvature)
            step.add_(pair.change, alpha=-shares[-1])
        newest = self.pairs[-1]
        step.mul_(newest.curvature / newest.change.dot(newest.change).item())
        for pair, share in zip(self.pairs, reversed(shares), strict=True):
            step.add_(pair.move, alpha=share - step.dot(pair.change).item() / pair.curvature)
        return step.mul_(self.rate)

    def state_dict(self) -> dict[str, Any]:
        """Return all but the point and the settings: plain values, and live tensors."""
        return {
            "pairs": [vars(pair) for pair in self.pairs],
            "move": self._move,
            "gradient": self._gradient,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from the `state_dict` of another with a point of the same size; it is used up."""

        def here(value: Any) -> Any:
            return value.to(self.point.device) if isinstance(value, Tensor) else value

        pairs = [{key: here(value) for key, value in pair.items()} for pair in state["pairs"]]
        self.pairs = deque((Pair(**pair) for pair in pairs), self.pairs.maxlen)
        self._move, self._gradient = here(state["move"]), here(state["gradient"])
