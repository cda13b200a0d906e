"""The points at which each Function is checked: varied shapes, layouts and missing inputs."""

import torch
from torch import Tensor

from styletransfer.functions.content_tap import content_tap
from styletransfer.functions.max_pool import max_pool
from styletransfer.functions.moments import gram_matrix, moments
from styletransfer.functions.moments_tap import moments_tap
from styletransfer.functions.winograd import transform_kernels, winograd_conv
from styletransfer.lessons.checks import Case
from styletransfer.lessons.global_max_pool import global_max_pool
from styletransfer.lessons.linear import linear
from styletransfer.lessons.relu import relu
from styletransfer.lessons.scale import scale

# A corner (relu at 0, a tie of maxima) has no derivative; stay this far from it.
MARGIN = 0.1


class Draw:
    """Draws seeded float64 leaves that require grad."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape: int) -> Tensor:
        """Return normal values."""
        return self._normal(shape).requires_grad_()

    def away_from_zero(self, *shape: int) -> Tensor:
        """Return values of both signs, none within MARGIN of zero."""
        x = self._normal(shape)
        return (x + MARGIN * x.sign()).requires_grad_()

    def all_different(self, *shape: int) -> Tensor:
        """Return values that lie at least MARGIN apart from each other."""
        size = torch.Size(shape).numel()
        order = torch.randperm(size, generator=self.generator).double()
        return ((order - size / 2) * MARGIN).view(shape).requires_grad_()

    def _normal(self, shape: tuple[int, ...]) -> Tensor:
        return torch.randn(shape, generator=self.generator, dtype=torch.float64)


def channels_last(x: Tensor) -> Tensor:
    """Return a leaf with the same values, stored channels_last."""
    return x.detach().contiguous(memory_format=torch.channels_last).requires_grad_()


def transposed(x: Tensor) -> Tensor:
    """Return a leaf with the same values whose memory runs along the first axis."""
    return x.detach().t().contiguous().t().requires_grad_()


def tapped_moments(x: Tensor, weights: Tensor | None = None) -> tuple[Tensor, ...]:
    """Return all three outputs of the moments tap."""
    tapped, found = moments_tap(x, weights=weights)
    return tapped, *found


def cases(seed: int = 0) -> list[Case]:
    """Return every Function's cases, plus those of the moments by ordinary operations."""
    draw = Draw(seed)
    return [*_lessons(draw), *_layers(draw), *_losses(draw)]


def _lessons(draw: Draw) -> list[Case]:
    different = draw.all_different
    image = channels_last(different(2, 3, 2, 2))
    return [
        Case("relu", relu, (draw.away_from_zero(3, 4),)),
        Case("relu", relu, (channels_last(draw.away_from_zero(2, 3, 2, 2)),), "channels_last"),
        Case("relu", relu, (draw(0, 3),), "empty"),
        Case("scale", scale, (draw(4, 3), draw(3))),
        Case("scale", scale, (draw(4, 3), draw(4, 3))),
        Case("scale", scale, (channels_last(draw(2, 3, 2, 2)), draw(3, 1, 1)), "channels_last"),
        Case("scale", scale, (draw(0, 3), draw(3)), "empty"),
        Case("linear", linear, (draw(4, 3), draw(2, 3), draw(2))),
        Case("linear", linear, (draw(4, 3), draw(2, 3)), "no bias"),
        Case("linear", linear, (draw(4, 3), draw(2, 3).detach()), "frozen weight"),
        Case("linear", linear, (draw(3), draw(2, 3), draw(2))),
        Case("linear", linear, (draw(2, 2, 3), draw(2, 3), draw(2))),
        Case("linear", linear, (transposed(draw(4, 3)), transposed(draw(2, 3))), "transposed"),
        Case("linear", linear, (draw(0, 3), draw(2, 3), draw(2)), "empty"),
        Case("global_max_pool", global_max_pool, (different(2, 3, 5),)),
        Case("global_max_pool", global_max_pool, (different(2, 3, 2, 2),)),
        Case("global_max_pool", global_max_pool, (image,), "channels_last"),
        Case("global_max_pool", global_max_pool, (draw(0, 3, 4),), "empty"),
    ]


def _layers(draw: Draw) -> list[Case]:
    kernels, bias = transform_kernels(draw(3, 2, 3, 3).detach()), draw(3).detach()
    different = draw.all_different
    image, odd = channels_last(draw(1, 2, 4, 4)), draw(1, 2, 5, 3)
    return [
        Case("max_pool", max_pool, (different(2, 3, 2, 4),)),
        Case("max_pool", max_pool, (different(1, 2, 5, 3),), "odd sides"),
        Case("max_pool", max_pool, (channels_last(different(1, 3, 2, 4)),), "channels_last"),
        Case("winograd_conv", winograd_conv, (odd, kernels, bias), "odd sides"),
        Case("winograd_conv", winograd_conv, (image, kernels), "no bias"),
    ]


def _losses(draw: Draw) -> list[Case]:
    image, target = channels_last(draw(1, 3, 2, 4)), draw(1, 3, 2, 4)
    weights = torch.arange(8, dtype=torch.float64).view(2, 4) % 3  # some are 0
    return [
        Case("gram_matrix", gram_matrix, (draw(1, 3, 2, 4),)),
        Case("moments", moments, (draw(1, 3, 2, 4),)),
        Case("moments_tap", tapped_moments, (draw(1, 3, 2, 4),)),
        Case("moments_tap", tapped_moments, (draw(1, 1, 3, 2),), "one channel"),
        Case("moments_tap", tapped_moments, (draw(1, 3, 1, 1),), "one pixel"),
        Case("moments_tap", tapped_moments, (image,), "channels_last"),
        Case("moments_tap", tapped_moments, (draw(1, 3, 2, 4), weights), "weights"),
        Case("content_tap", content_tap, (draw(1, 3, 2, 4), target)),
        Case("content_tap", content_tap, (image, draw(1, 3, 2, 4)), "channels_last"),
    ]
