"""Difference quotients: a derivative, measured by calling forward, and gradients unlike it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

# By the dtype that forward computes in: the step, and the relative error of a right gradient.
STEPS = {torch.float64: (2.0**-20, 1e-5), torch.float32: (2.0**-7, 1e-3)}


def weights_like(x: Tensor, number: int = 0) -> Tensor:
    """Return weights in the shape of x, of both signs; another number gives other ones."""
    places = torch.arange(x.numel(), device=x.device, dtype=torch.float64)
    return (places + number / 3).square().cos().to(x).view(x.shape)


def weighed(tensors: Iterable[Tensor], power: int = 1) -> Tensor:
    """Return the floating point numbers, to a power, times weights, one after another."""
    found = [
        (x**power * weights_like(x, number)).double().flatten()
        for number, x in enumerate(tensors)
        if x.is_floating_point()
    ]
    return torch.cat(found) if found else torch.zeros(1, dtype=torch.float64)


@dataclass(frozen=True)
class Difference:
    """A difference is that of a gradient from the derivative of forward, at some numbers."""

    found: Tensor
    wanted: Tensor
    is_wrong: Tensor  #: for each number

    @property
    def factor(self) -> float | None:
        """What the derivative is multiplied by, if that is the same number everywhere."""
        wanted, found = (x.where(self.wanted.isfinite(), 0) for x in (self.wanted, self.found))
        factor = ((found * wanted).sum() / wanted.square().sum()).item()
        rest = (found - factor * wanted).abs().max() / wanted.abs().max()
        return factor if factor and rest < 0.01 * abs(factor - 1) else None

    def __str__(self) -> str:
        """Return by how much the gradient is off."""
        if self.factor is not None:
            return f"is {self.factor:.5g} times the derivative of forward"
        worst = (self.found - self.wanted).abs().where(self.is_wrong, -1).argmax()
        place = [int(i) for i in torch.unravel_index(worst, self.found.shape)]
        found, wanted = (x.flatten()[worst].item() for x in (self.found, self.wanted))
        count = f"{int(self.is_wrong.sum())} of {self.found.numel()} numbers"
        at = f"at {place} {found:.5g} for {wanted:.5g}"
        return f"is not the derivative of forward ({count}; {at})"


def measured(
    terms: Callable[..., Tensor], leaves: Sequence[Tensor], dtype: torch.dtype
) -> Iterator[tuple[Tensor, Tensor, float]]:
    """Yield for each leaf the derivative of the sum of `terms(*leaves)` by each of its numbers.

    Two step sizes tell how far a quotient can be trusted (Richardson's extrapolation). The second
    tensor says where it is clear: not at a jump or a kink. The number is the error by rounding.
    """
    middle, (step, _) = terms(*leaves), STEPS[dtype]
    noise = 50 * torch.finfo(dtype).eps / step * float(middle.abs().sum())

    def changes(index: int, place: int) -> Iterator[float]:
        for distance in (step, -step, step / 2, -step / 2):
            moved = [x.detach().clone().requires_grad_() for x in leaves]
            with torch.no_grad():
                moved[index][torch.unravel_index(torch.tensor(place), moved[index].shape)] += (
                    distance
                )
            yield float((terms(*moved) - middle).sum())

    for index, leaf in enumerate(leaves):
        rows = [list(changes(index, place)) for place in range(leaf.numel())]
        quotients = torch.tensor(rows, dtype=torch.float64).view(-1, 4).T / step
        up, down, near_up, near_down = quotients.reshape(4, *leaf.shape)
        wide, narrow = (up - down) / 2, near_up - near_down
        value = (4 * narrow - wide) / 3
        size = value.nan_to_num().abs().max() if leaf.numel() else 0
        bent, near = (up + down).abs(), 2 * (near_up + near_down).abs()
        is_kink = (near > 0.75 * bent) & (bent > 0.001 * size + noise)
        yield value, ((wide - narrow).abs() <= 0.01 * size + noise) & ~is_kink, noise


def differences(
    terms: Callable[..., Tensor],
    leaves: Sequence[Tensor],
    gradients: Iterable[Tensor | None],
    dtype: torch.dtype,
) -> tuple[dict[int, Difference], int]:
    """Return which gradients of the sum of `terms` are wrong; how many numbers none can tell."""
    found, unclear = {}, 0
    rows = zip(gradients, measured(terms, leaves, dtype), strict=True)
    for index, (gradient, (wanted, is_clear, noise)) in enumerate(rows):
        ours = torch.zeros_like(wanted) if gradient is None else gradient.detach().cpu().double()
        size = max([0.0, *wanted[is_clear].abs().tolist()])
        allowed = STEPS[dtype][1] * (wanted.abs() + min(size, 1)) + noise
        is_wrong = is_clear & ~((ours - wanted).abs() <= allowed)
        unclear += int((~is_clear).sum())
        if is_wrong.any():
            found[index] = Difference(ours, wanted.where(is_clear, torch.nan), is_wrong)
    return found, unclear
