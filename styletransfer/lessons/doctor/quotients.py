"""Compares gradients with the derivative of forward, measured by difference quotients."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from styletransfer.lessons.doctor.verdicts import first_line

# Dtype that forward computes in -> (step of a difference quotient, largest relative error of a
# gradient that counts as right).
STEPS = {torch.float64: (2.0**-20, 1e-5), torch.float32: (2.0**-7, 1e-3)}


def weights_like(x: Tensor, number: int = 0) -> Tensor:
    """Return weights in the shape of x, of both signs; each `number` gives different weights."""
    places = torch.arange(x.numel(), device=x.device, dtype=torch.float64)
    return (places + number / 3).square().cos().to(x).view(x.shape)


def weighed(tensors: Iterable[Tensor | None]) -> Tensor:
    """Return the numbers of all floating point tensors times weights, as one vector."""
    pairs = ((i, x) for i, x in enumerate(tensors) if x is not None and x.is_floating_point())
    found = [(x * weights_like(x, i)).double().flatten() for i, x in pairs]
    return torch.cat(found) if found else torch.zeros(1, dtype=torch.float64)


@dataclass(frozen=True)
class Difference:
    """A Difference compares the gradient `found` with the derivative of forward, `wanted`."""

    found: Tensor
    wanted: Tensor
    is_wrong: Tensor  #: True at each number that is wrong

    @property
    def factor(self) -> float | None:
        """The wrong factor, if the whole gradient is the derivative times a factor, else None."""
        wanted, found = (x.where(self.wanted.isfinite(), 0) for x in (self.wanted, self.found))
        factor = ((found * wanted).sum() / wanted.square().sum()).item()
        rest = (found - factor * wanted).abs().max() / wanted.abs().max()
        return factor if factor and rest < 0.01 * abs(factor - 1) else None

    def __str__(self) -> str:
        """Return text that says how the gradient differs from the derivative."""
        if self.factor is not None:
            return f"is {self.factor:.5g} times the derivative of forward"
        worst = (self.found - self.wanted).abs().where(self.is_wrong, -1).argmax()
        place = [int(i) for i in torch.unravel_index(worst, self.found.shape)]
        found, wanted = (x.flatten()[worst].item() for x in (self.found, self.wanted))
        said = f"{int(self.is_wrong.sum())} of {self.found.numel()} numbers; at {place}"
        return f"is not the derivative of forward ({said} {found:.5g} for {wanted:.5g})"


@dataclass(frozen=True)
class Measured:
    """A Measured is forward's derivative by each number of one leaf, by difference quotients."""

    value: Tensor
    is_clear: Tensor  #: True where both step sizes give the same value, without a kink
    noise: float  #: largest error that rounding can cause
    tolerance: float  #: largest relative error of a gradient that counts as right


def measured(
    terms: Callable[..., Tensor], leaves: Sequence[Tensor], dtype: torch.dtype
) -> Iterator[Measured]:
    """Yield, for each leaf, the derivative of `terms(*leaves).sum()` by each of its numbers.

    Two step sizes make the quotients more exact (Richardson's extrapolation).
    """
    middle, (step, tolerance) = terms(*leaves), STEPS[dtype]
    noise = 50 * torch.finfo(dtype).eps / step * float(middle.abs().sum())

    def change(moved: Tensor, by: Tensor) -> float:
        points = (x.detach() + by if x is moved else x.detach().clone() for x in leaves)
        return float((terms(*(x.requires_grad_() for x in points)) - middle).sum())

    for leaf in leaves:
        places = torch.arange(leaf.numel(), device=leaf.device).view(leaf.shape)
        moves = ((n, by) for n in range(leaf.numel()) for by in (step, -step, step / 2, -step / 2))
        rows = [change(leaf, by * (places == n)) for n, by in moves]
        quotients = torch.tensor(rows, dtype=torch.float64).view(*leaf.shape, 4) / step
        up, down, near_up, near_down = quotients.unbind(-1)
        wide, narrow = (up - down) / 2, near_up - near_down
        value = (4 * narrow - wide) / 3
        size = value.nan_to_num().abs().max() if leaf.numel() else 0
        bent, near = (up + down).abs(), 2 * (near_up + near_down).abs()
        is_kink = (near > 0.75 * bent) & (bent > 0.001 * size + noise)
        is_clear = ((wide - narrow).abs() <= 0.01 * size + noise) & ~is_kink
        yield Measured(value, is_clear, noise, tolerance)


def differences(
    rows: Iterable[Measured], gradients: Iterable[Tensor | None]
) -> dict[int, Difference]:
    """Return index of a leaf -> Difference, for each wrong gradient; None counts as zeros."""
    found = {}
    for index, (row, gradient) in enumerate(zip(rows, gradients, strict=True)):
        wanted = row.value.where(row.is_clear, torch.nan)
        ours = torch.zeros_like(wanted) if gradient is None else gradient.detach().cpu().double()
        size = max([0.0, *wanted[row.is_clear].abs().tolist()])
        allowed = row.tolerance * (wanted.abs() + min(size, 1)) + row.noise
        is_wrong = row.is_clear & ~((ours - wanted).abs() <= allowed)
        if is_wrong.any():
            found[index] = Difference(ours, wanted, is_wrong)
    return found


def gradients(
    of: Tensor | Sequence[Tensor],
    leaves: Sequence[Tensor],
    grads: Sequence[Tensor] | None = None,
    seed: int = 1,  # not 0, so that backward does not draw forward's numbers again
    **options: bool,
) -> list[Tensor | None]:
    """Return the gradients; `seed` decides which random numbers backward draws."""
    torch.manual_seed(seed)
    found = torch.autograd.grad(of, leaves, grads, allow_unused=True, **options)
    return [x.to_dense() if x is not None and x.is_sparse and not x.is_meta else x for x in found]


def same(one: Any, other: Any, tolerance: float = 1e-6) -> bool:
    """Return whether two lists of gradients are equal except for rounding; None counts as zeros."""
    numbers = (
        [torch.tensor(0.0).double() if x is None else x.detach().cpu().double() for x in pair]
        for pair in zip(one, other, strict=True)
    )
    return all(torch.allclose(a, b, rtol=10 * tolerance, atol=tolerance) for a, b in numbers)


def differs(found: Callable[[], Any], wanted: Any) -> str:
    """Return "" if `found()` equals `wanted`, else "another result", or the error's first line."""
    try:
        return "" if same(found(), wanted) else "another result"
    except Exception as error:
        return first_line(error)
