"""L-BFGS in which a step takes two matrix-vector products and waits for the device once."""

import math
from typing import Any

import torch
from torch import Tensor

from styletransfer.system.checkpoint import check_like


class LBFGS:
    """`LBFGS` is the limited-memory BFGS method (Nocedal and Wright 2006, algorithm 7.5).

    A pair is a step and the gradient's change in this step. The textbooks' recursion goes through
    the pairs twice, with an inner product at each, and the host waits for every one. Here all pairs
    are rows of one matrix, and the step is a combination of these rows and the gradient. Its
    factors follow on the host from the inner products of the rows with each other and with the
    gradient (Byrd, Nocedal and Schnabel 1994, "Representations of quasi-Newton matrices and their
    use in limited memory methods", formula 3.1; Chen et al. 2014, "Large-scale L-BFGS using
    MapReduce"). A step makes one product of the matrix and the gradient, waits for it, and makes
    one product of the factors and the matrix.

    `shift` is the contiguous leaf that is optimised, `history` the largest number of pairs that are
    kept. `rate` is the fraction of the quasi-Newton step that is made. A step without pairs, such
    as the first step, follows the negative gradient instead. Its mean absolute change of a value is
    `first`, whatever `rate` is.
    """

    def __init__(self, shift: Tensor, *, history: int, rate: float, first: float) -> None:
        self.shift, self.history, self.rate, self.first = shift, history, rate, first
        # A slot has two rows: a step, and the gradient's change in this step. One more slot holds
        # the last step. Its second row is the gradient before the step, until the next gradient is
        # known; then the change replaces it.
        slots = history + 1
        self.rows = shift.detach().new_zeros(slots, 2, shift.numel())
        # Inner products of each row with the change of each slot and, at the last index, with the
        # last gradient. They are on the CPU.
        self.products = torch.zeros(slots, 2, slots + 1, dtype=shift.dtype)
        self.order: list[int] = []  # slots of the pairs, the oldest first
        self.last: int | None = None  # slot of the newest step, not yet a pair

    @torch.no_grad()
    def step(self) -> None:
        """Make one step from `shift.grad` (1, 3, H, W), which is copied and not changed."""
        assert self.shift.grad is not None
        gradient = self.shift.grad.flatten()
        move = torch.empty_like(gradient)  # first, so that lack of memory changes no state
        if self.last is not None:
            self._learn(gradient, self.last)
        self._move_along(gradient, out=move)
        self.last = next(slot for slot in range(len(self.rows)) if slot not in self.order)
        torch.stack((move, gradient), out=self.rows[self.last])
        self.shift.add_(move.view_as(self.shift))

    def _learn(self, gradient: Tensor, slot: int) -> None:
        """Compute the inner products of rows with `gradient` (n,); keep the last step as a pair.

        The last step is in `slot`. It becomes a pair if its curvature is positive beyond rounding
        errors. Otherwise the next step overwrites it, and no pair is lost.
        """
        move, change = self.rows[slot]
        torch.sub(gradient, change, out=change)
        own = torch.stack((move.dot(change), change.dot(change), move.dot(move)))
        rows = self.rows[: len(self.order) + 1].flatten(0, 1)  # the pairs and the last step
        found = torch.cat((rows @ gradient, own)).cpu()  # a step waits for the device only here
        now, (curvature, change_square, move_square) = found[:-3].view(-1, 2), found[-3:].tolist()
        used = len(now)
        least = torch.finfo(gradient.dtype).eps * math.sqrt(change_square * move_square)
        if curvature > least > 0:
            # The change is this gradient minus the last one. A row's product with the change is its
            # product with this gradient minus its product with the last one, both known.
            column = now - self.products[:used, :, -1]
            column[slot, 0], column[slot, 1] = curvature, change_square
            self.products[:used, :, slot] = column
            self.products[slot, 1, :used] = column[:, 1]
            self.order = [*self.order, slot][-self.history :]
        self.products[:used, :, -1] = now

    def _move_along(self, gradient: Tensor, out: Tensor) -> None:
        """Write minus `rate` times the approximate inverse Hessian times `gradient` (n,) to `out`.

        If there is no pair, write minus `gradient`, scaled to the mean absolute value `first`.
        """
        if not self.order:
            length = gradient.norm(1)
            scale = -self.first * gradient.numel() / length
            torch.mul(gradient, scale.masked_fill_(length == 0, 0), out=out)
            return
        # Each pair gives a row of S, the move of the parameters in a step, and a row of Y, the
        # gradient's change in this step. R is the upper triangle of S Y^T.
        products = self.products[self.order].double()
        triangle, squares = (products[:, kind, self.order] for kind in (0, 1))
        move_slopes, change_slopes = products[:, :, -1:].unbind(1)  # S g and Y g, each (pairs, 1)
        triangle, curvatures = triangle.triu(), triangle.diagonal().unsqueeze(1)
        scale = (curvatures[-1] / squares[-1, -1]).item()
        shares = torch.linalg.solve_triangular(triangle, move_slopes, upper=True)
        right = curvatures * shares + scale * (squares @ shares - change_slopes)
        moves = torch.linalg.solve_triangular(triangle.mT, right, upper=False)
        used = max(self.order) + 1
        factors = torch.zeros(used, 2, dtype=torch.float64)
        factors[self.order] = torch.cat((moves, -scale * shares), 1)
        # Without `non_blocking`, the step would wait for the device a second time, in this copy.
        there = factors.flatten().to(gradient.dtype).to(gradient.device, non_blocking=True)
        rows = self.rows[:used].flatten(0, 1)
        torch.addmv(gradient, rows.T, there, beta=-self.rate * scale, alpha=-self.rate, out=out)

    def state_dict(self) -> dict[str, Any]:
        """Return the pairs, the last step and the inner products; tensors are not copied."""
        return {key: getattr(self, key) for key in ("rows", "products", "order", "last")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state`, for a shift of the same size; the tensors of `state` are reused.

        Raises LookupError, TypeError or ValueError if `state` has another form.
        """
        order, last = state["order"], state["last"]
        check_like([state["rows"], state["products"]], [self.rows, self.products])
        check_like([order, last], [[0] * len(order), 0], [[], None])
        # `step` always takes the first free slot, so a valid state uses slots 0, 1, 2 and so on.
        if last is not None and sorted([*order, last]) != list(range(len(order) + 1)):
            raise ValueError("slots that no steps of L-BFGS take")
        products = state["products"].cpu()
        if not (products[order, :, order] > 0).all():
            raise ValueError("a pair that no step of L-BFGS keeps")
        self.rows, self.products, self.order, self.last = state["rows"], products, order, last
