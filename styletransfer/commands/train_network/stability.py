"""Training for films without a film: two views of one picture are to be painted alike.

As in Wang et al. 2020, "Consistent Video Style Transfer via Relaxation and Regularization"
(arXiv:2009.11018), the second view is the picture moved and bent by random flow, with grain. What a
network paints of it should be what it paints of the first view, moved and bent likewise.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from styletransfer.films.motion import inside, warp
from styletransfer.networks import StyleNetwork

# Standard deviations in pixels of a view's shift, and of its bending, which changes from cell to
# cell: what neighbouring frames of a film differ by.
SHIFT, BEND, CELL = 6.0, 1.5, 48
# Of the grain, for colours in [0, 1]: that of a small camera.
GRAIN = 0.015


class Views(NamedTuple):
    """Second views (N, 3, H, W) of pictures, and the flow (N, 2, H, W) in pixels to them."""

    images: Tensor
    flow: Tensor


def second_views(images: Tensor, generator: torch.Generator) -> Views:
    """Return the second view of each picture (N, 3, H, W), by a generator on the CPU."""
    flow = random_flow(images, generator)
    grain = GRAIN * torch.randn(images.shape, generator=generator).to(images)
    return Views((warp(images, flow) + grain).clamp(0, 1), flow)


def instability(network: StyleNetwork, views: Views, pastiches: Tensor, blend: Tensor) -> Tensor:
    """Return mean((warp(S(x)) - S(second view of x))^2), 0-d, over what both views show.

    That is the mean over the pictures of each one's mean; `pastiches` are S(x), (N, 3, H, W), with
    their graph, and `blend` (N, S) the styles of each.
    """
    again = network(views.images.to(pastiches), blend)
    flow = views.flow.to(pastiches)
    shown = inside(flow).to(pastiches)
    squared = shown * (warp(pastiches, flow) - again).square()
    every = (1, 2, 3)
    means: Tensor = squared.sum(every) / (3 * shown.sum(every)).clamp_min(1)
    return means.mean()


def random_flow(images: Tensor, generator: torch.Generator) -> Tensor:
    """Return a smooth random flow (N, 2, H, W) in pixels for images (N, 3, H, W)."""
    count, _, height, width = images.shape
    shift = SHIFT * torch.randn((count, 2, 1, 1), generator=generator)
    cells = (count, 2, height // CELL + 2, width // CELL + 2)
    bend = BEND * torch.randn(cells, generator=generator)
    return (shift + interpolate(bend, (height, width), mode="bicubic")).to(images)
