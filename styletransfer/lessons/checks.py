"""Checks each Function's backward against difference quotients of its forward, by gradcheck.

`check_all` is the command `scripts/gradcheck.py` without a target.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from styletransfer.features.extractor import max_pool
from styletransfer.features.winograd import transform_kernels, winograd_conv
from styletransfer.features.wrap_pad import wrap_pad
from styletransfer.losses import ContentDistance, MatchDistance
from styletransfer.losses.distance import PositionalDistance
from styletransfer.losses.match import ProductsTap
from styletransfer.losses.moments import gram_matrix, moments, moments_tap

# Step h of the difference quotients, the default of gradcheck. In float64 the rounding error of a
# quotient is about 1e-10.
STEP = 1e-6
# Largest accepted difference of a derivative in float64, absolute and relative. It is far above the
# rounding error, and far below the difference that a wrong term in a formula causes. gradcheck's
# default, 1e-3 relative and 1e-5 absolute, would miss small errors.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Case:
    """A case is a function and its inputs; derivatives are for the inputs that require grad."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    note: str = ""

    @property
    def shapes(self) -> str:
        """The inputs' shapes, such as "(4, 3) (2, 3)", followed by the note if there is one."""
        return " ".join([*(str(tuple(x.shape)) for x in self.inputs), self.note]).rstrip()


def check(case: Case) -> str:
    """Check first and second derivatives of one case; return the error in one line, "" if none."""
    # Before torch 2.14, vmap refuses the second derivative of torch's max pool if the map is
    # channels_last.
    is_refused = (case.name, case.note) == ("max_pool", "channels_last")
    settings: dict[str, Any] = {"eps": STEP, "atol": TOLERANCE, "rtol": TOLERANCE}
    settings["check_batched_grad"] = torch.__version__ >= "2.14" or not is_refused
    try:
        gradcheck(case.function, case.inputs, **settings)
        with torch.random.fork_rng(devices=[]):  # gradgradcheck draws output gradients
            torch.manual_seed(1)
            gradgradcheck(case.function, case.inputs, **settings)
    except RuntimeError as error:
        return str(error).strip().splitlines()[0]
    return ""


# Smallest difference of two random values: a maximum of equal values has no derivative. It is far
# larger than STEP, so that no step of a difference quotient makes two values equal.
MARGIN = 0.1


def draw(generator: torch.Generator, *shape: int) -> Tensor:
    """Return a seeded random float64 leaf that requires grad, normally distributed."""
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def all_different(generator: torch.Generator, *shape: int) -> Tensor:
    """Return a leaf with values that lie at least MARGIN apart from each other."""
    size = torch.Size(shape).numel()
    order = torch.randperm(size, generator=generator).double()
    return ((order - size / 2) * MARGIN).view(shape).requires_grad_()


def channels_last(x: Tensor) -> Tensor:
    """Return a leaf with the same values, stored channels_last."""
    return x.detach().contiguous(memory_format=torch.channels_last).requires_grad_()


def tapped_moments(x: Tensor, weights: Tensor | None = None) -> tuple[Tensor, ...]:
    """Return the outputs of `moments_tap` as one tuple: features, mean, second moment."""
    tapped, found = moments_tap(x, weights=weights)
    return tapped, *found


def tap(distance: type[PositionalDistance], x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the outputs of the tap of a distance to a target."""
    return distance(target).tap(x)


def cases() -> list[Case]:
    """Return the cases of every Function, and of `moments` and `gram_matrix`.

    `FedTap` is left out, because its backward adds the gradient of a loss outside of its forward.
    """
    generator = torch.Generator().manual_seed(0)
    random, different = partial(draw, generator), partial(all_different, generator)
    kernels, bias = transform_kernels(random(3, 2, 3, 3).detach()), random(3).detach()
    image, odd = channels_last(random(1, 2, 4, 4)), random(1, 2, 5, 3)
    layers = [
        Case("max_pool", max_pool, (different(2, 3, 2, 4),)),
        Case("max_pool", max_pool, (different(1, 2, 5, 3),), "odd sides"),
        Case("max_pool", max_pool, (channels_last(different(1, 3, 2, 4)),), "channels_last"),
        Case("winograd_conv", winograd_conv, (odd, kernels, bias), "odd sides"),
        Case("winograd_conv", winograd_conv, (image, kernels), "no bias"),
        Case("wrap_pad", wrap_pad, (odd,)),
    ]
    image, target = channels_last(random(1, 3, 2, 4)), random(1, 3, 2, 4).detach()
    weights = torch.arange(8, dtype=torch.float64).view(2, 4) % 3  # three of the weights are 0
    content, match = partial(tap, ContentDistance), partial(tap, MatchDistance)
    losses = [
        Case("gram_matrix", gram_matrix, (random(1, 3, 2, 4),)),
        Case("moments", moments, (random(1, 3, 2, 4),)),
        Case("moments_tap", tapped_moments, (random(1, 3, 2, 4),)),
        Case("moments_tap", tapped_moments, (random(1, 1, 3, 2),), "one channel"),
        Case("moments_tap", tapped_moments, (random(1, 3, 1, 1),), "one pixel"),
        Case("moments_tap", tapped_moments, (image,), "channels_last"),
        Case("moments_tap", tapped_moments, (random(1, 3, 2, 4), weights), "weights"),
        Case("ContentDistance", content, (random(1, 3, 2, 4), target)),
        Case("ContentDistance", content, (image, target), "channels_last"),
        Case("ProductsTap", ProductsTap.apply, (random(1, 3, 2, 4), target)),
        Case("MatchDistance", match, (image, target), "channels_last"),
    ]
    return [*layers, *losses]


def check_all() -> int:
    """Print a table; return 1 if a check fails, else 0."""
    complaints = []
    for case in cases():
        complaints.append(check(case))
        words = f"FAILED: {complaints[-1]}" if complaints[-1] else "passed"
        print(f"{case.name:<14} {case.shapes:<32} {words}")
    print(f"{complaints.count('')} of {len(complaints)} checks passed, to {TOLERANCE:g}.")
    print("FedTap is left out: its backward adds the gradient of a loss outside of its forward.")
    return 1 if any(complaints) else 0
