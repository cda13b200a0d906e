"""Training for films without a film: two views of one picture are to be painted alike.

As in Wang et al. 2020, "Consistent Video Style Transfer via Relaxation and Regularization"
(arXiv:2009.11018), the second view is the picture moved and bent by random flow, with grain. What a
network paints of it should be what it paints of the first view, moved and bent likewise.
"""

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from styletransfer.networks import StyleNetwork
from styletransfer.pictures.motion import inside, warp

# Standard deviations in pixels of a view's shift, and of its bending, which changes from cell to
# cell: what neighbouring frames of a film differ by.
SHIFT, BEND, CELL = 6.0, 1.5, 48
# Of the grain, for colours in [0, 1]: that of a small camera.
GRAIN = 0.015


def instability(
    network: StyleNetwork,
    images: Tensor,
    pastiches: Tensor,
    blend: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """Return mean((warp(S(x)) - S(warp(x) + grain))^2), 0-d, over what both views show.

    Args:
        network: S, in training.
        images: x, (N, 3, H, W) in [0, 1].
        pastiches: S(x), with their graph.
        blend: (N, S), the styles of each.
        generator: on the CPU, from which the second view follows.
    """
    flow = random_flow(images, generator)
    grain = GRAIN * torch.randn(images.shape, generator=generator).to(images)
    again = network((warp(images, flow) + grain).clamp(0, 1), blend)
    shown = inside(flow).to(images)
    squared: Tensor = (warp(pastiches, flow) - again).square()
    return (shown * squared).sum() / (3 * shown.sum()).clamp_min(1)


def random_flow(images: Tensor, generator: torch.Generator) -> Tensor:
    """Return a smooth random flow (N, 2, H, W) in pixels for images (N, 3, H, W)."""
    count, _, height, width = images.shape
    shift = SHIFT * torch.randn((count, 2, 1, 1), generator=generator)
    cells = (count, 2, height // CELL + 2, width // CELL + 2)
    bend = BEND * torch.randn(cells, generator=generator)
    return (shift + interpolate(bend, (height, width), mode="bicubic")).to(images)
