"""Motion between two frames of a film: how it moves a picture, and where it can be relied on.

A flow (1, 2, H, W) says for each pixel of a frame, in pixels to the right and down, where the same
point is in another frame.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import conv2d, grid_sample, pad

# Standard deviation in pixels of the Gaussian that softens reliability, and the taps on each side.
# Ruder et al. 2016, in the code that goes with the paper.
SOFTENING, TAPS = 0.8, 3
# Of a frame, the share that has to be found again in the next one. Two photographs that have
# nothing to do with each other agree on less than a tenth; a fast pan leaves more than a half.
LEAST_IN_COMMON = 0.25


@dataclass(frozen=True)
class Motion:
    """Where the points of a frame are in another one.

    Attributes:
        flow: (1, 2, H, W), from this frame to the other.
        reliability: (1, 1, H, W), from 0, where a point is hidden in the other frame or at the edge
            of something that moves, to 1.
    """

    flow: Tensor
    reliability: Tensor

    @property
    def is_cut(self) -> bool:
        """Whether the two frames have too little in common to be of one scene."""
        return float(self.reliability.mean()) < LEAST_IN_COMMON

    def warped(self, image: Tensor) -> Tensor:
        """Return the other frame's `image` (1, C, H, W) as this frame would show it."""
        return warp(image, self.flow.to(image))


def make_motion(flow: Tensor, back: Tensor) -> Motion:
    """Return the motion with softened reliability.

    Args:
        flow: (1, 2, H, W), from this frame to the other.
        back: (1, 2, H, W), from the other to this one.
    """
    return Motion(flow, softened(reliability(flow, back)))


def warp(image: Tensor, flow: Tensor, mode: str = "bilinear") -> Tensor:
    """Return `image` as seen where `flow` leads: out(x) = image(x + flow(x)).

    Beyond its border the image goes on as its outermost pixels.

    Args:
        image: (N, C, H, W).
        flow: (N, 2, H, W) or (1, 2, H, W), in pixels to the right and down.
        mode: bilinear; or bicubic, which is sharper and may leave the image's range.
    """
    height, width = image.shape[2:]
    rows, columns = _positions(flow)
    # From pixels to grid_sample's coordinates, -1 and 1 at the centres of the outermost pixels.
    x = (columns + flow[:, 0]) * (2 / max(width - 1, 1)) - 1
    y = (rows + flow[:, 1]) * (2 / max(height - 1, 1)) - 1
    grid = torch.stack((x, y), dim=-1).expand(len(image), -1, -1, -1)
    return grid_sample(image, grid, mode, padding_mode="border", align_corners=True)


def reliability(flow: Tensor, back: Tensor) -> Tensor:
    """Return where a flow can be relied on: (1, 1, H, W), 1 there and 0 elsewhere.

    Equations 5 and 6 of Sundaram et al. 2010 with the numbers of Ruder et al. 2016
    (arXiv:1604.08610), section 4.2: a point is hidden where flow and way back do not cancel, and
    at the edge of something that moves where the flow changes fast. What the flow leads out of the
    frame is not seen either.

    Args:
        flow: (1, 2, H, W), from this frame to the other.
        back: (1, 2, H, W), from the other to this one.
    """
    there = warp(back, flow)
    length = _squared(flow)
    hidden = _squared(flow + there) >= 0.01 * (length + _squared(there)) + 0.5
    slope = sum(_squared(each) for each in torch.gradient(flow, dim=(2, 3)))
    edge = slope > 0.01 * length + 0.002
    return (~hidden & ~edge & inside(flow)).to(flow)


def inside(flow: Tensor) -> Tensor:
    """Tell for each pixel (N, 1, H, W) whether a flow (N, 2, H, W) stays within the frame."""
    height, width = flow.shape[2:]
    rows, columns = _positions(flow)
    x, y = columns + flow[:, 0], rows + flow[:, 1]
    return ((x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1))[:, None]


def softened(mask: Tensor) -> Tensor:
    """Return a mask (1, 1, H, W) under a Gaussian of SOFTENING pixels, nowhere above what it was.

    So no pixel is relied on that was not.
    """
    offsets = torch.arange(-TAPS, TAPS + 1, dtype=mask.dtype, device=mask.device)
    kernel = torch.exp(-(offsets**2) / (2 * SOFTENING**2))
    kernel = kernel / kernel.sum()
    padded = pad(mask, (TAPS,) * 4, mode="replicate")
    blurred = conv2d(conv2d(padded, kernel.view(1, 1, 1, -1)), kernel.view(1, 1, -1, 1))
    return torch.minimum(mask, blurred)


def _positions(flow: Tensor) -> tuple[Tensor, Tensor]:
    """Return each pixel's row (H, 1) and column (1, W)."""
    height, width = flow.shape[2:]
    rows = torch.arange(height, dtype=flow.dtype, device=flow.device)
    columns = torch.arange(width, dtype=flow.dtype, device=flow.device)
    return rows[:, None], columns[None, :]


def _squared(vectors: Tensor) -> Tensor:
    """Return the squared length (1, 1, H, W) of vectors (1, 2, H, W)."""
    return vectors.square().sum(1, keepdim=True)
