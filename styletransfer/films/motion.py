"""Finds the motion between two frames of a film (optical flow), and warps images by it.

A flow (1, 2, H, W) is the displacement of each pixel, in pixels to the right and down, from its
position in one frame to the position of the same object in another frame.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from styletransfer.errors import UserError, imported
from styletransfer.pictures.color import LUMINANCE
from styletransfer.pictures.images import blurred

# SOFTENING: standard deviation in pixels of the Gaussian that blurs the reliability mask, from the
# code of Ruder et al. 2016. TAPS: half-width in pixels of Gaussian kernels, without the centre.
SOFTENING, TAPS = 0.8, 3
# Smallest mean reliability, from 0 to 1, between two frames of one scene; a smaller value means a
# cut. Two unrelated photographs reach less than 0.1, and two frames of a fast pan more than 0.5.
LEAST_IN_COMMON = 0.25


@dataclass(frozen=True)
class Motion:
    """A Motion is the optical flow from one frame to another, and its reliability."""

    flow: Tensor  # (1, 2, H, W), in pixels, right and down, from the first frame to the other
    # (1, 1, H, W) in [0, 1]: 1 where the flow is reliable, 0 where it is not, such as where an
    # object is hidden in the other frame; see `reliability`.
    reliability: Tensor

    @property
    def is_cut(self) -> bool:
        """Whether the mean reliability is below LEAST_IN_COMMON, as for two different scenes."""
        return float(self.reliability.mean()) < LEAST_IN_COMMON


def motion_between(image: Tensor, other: Tensor) -> Motion:
    """Return the motion from frame `image` to frame `other`, both (1, 3, H, W) in [0, 1]."""
    here, there = _luma(image), _luma(other)
    flow, back = (_flow(*pair).to(image.device) for pair in ((here, there), (there, here)))
    return Motion(flow, softened(reliability(flow, back)))


def check_flow(size: tuple[int, int]) -> None:
    """Raise UserError if OpenCV is missing, or cannot compute flow for this (height, width)."""
    blank = torch.zeros(size, dtype=torch.uint8).numpy()
    _flow(blank, blank)


def warp(image: Tensor, flow: Tensor, mode: str = "bilinear") -> Tensor:
    """Return an image (N, C, H, W) warped by `flow` (N, 2, H, W): out(x) = image(x + flow(x)).

    Outside the border, the image repeats its outermost pixels. A flow (1, 2, H, W) is used for all
    N images. `mode` is one of `grid_sample`: "nearest", "bilinear", or "bicubic", which is sharper
    and may leave [0, 1].
    """
    height, width = image.shape[2:]
    x, y = _ends(flow)
    # Convert pixels to grid_sample's coordinates: -1 and 1 are the centres of the border pixels.
    x = x * (2 / max(width - 1, 1)) - 1
    y = y * (2 / max(height - 1, 1)) - 1
    grid = torch.stack((x, y), dim=-1).expand(len(image), -1, -1, -1)
    return grid_sample(image, grid, mode, padding_mode="border", align_corners=True)


def reliability(flow: Tensor, back: Tensor) -> Tensor:
    """Return a mask (1, 1, H, W): 1 where a flow (1, 2, H, W) is reliable, 0 where it is not.

    The flow is unreliable where `flow` and the flow `back` from the other frame do not cancel (the
    object is hidden there), where `flow` changes fast (the edge of a moving object), and where it
    leads out of the frame. The first two conditions are equations 5 and 6 of Sundaram et al. 2010
    with the constants of Ruder et al. 2016 (arXiv:1604.08610), section 4.2.
    """
    returned = warp(back, flow)
    length = _squared(flow)
    hidden = _squared(flow + returned) >= 0.01 * (length + _squared(returned)) + 0.5
    slope = sum(_squared(side) for side in torch.gradient(flow, dim=(2, 3)))
    edge = slope > 0.01 * length + 0.002
    height, width = flow.shape[2:]
    x, y = _ends(flow)
    inside = ((x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1))[:, None]
    return (~hidden & ~edge & inside).to(flow)


def softened(mask: Tensor) -> Tensor:
    """Return a mask (1, 1, H, W) with soft edges: the lesser of the mask and its blur."""
    return torch.minimum(mask, blurred(mask, SOFTENING, TAPS))


def _ends(flow: Tensor) -> tuple[Tensor, Tensor]:
    """Return x and y, each (N, H, W) in pixels, of the positions where a flow (N, 2, H, W) ends."""
    height, width = flow.shape[2:]
    rows = torch.arange(height, dtype=flow.dtype, device=flow.device)
    columns = torch.arange(width, dtype=flow.dtype, device=flow.device)
    return columns + flow[:, 0], rows[:, None] + flow[:, 1]


def _squared(vectors: Tensor) -> Tensor:
    """Return the squared length (1, 1, H, W) of each vector in a flow (1, 2, H, W)."""
    return vectors.square().sum(1, keepdim=True)


def _luma(image: Tensor) -> Any:
    """Return the BT.709 luma of a picture (1, 3, H, W), as a NumPy array (H, W) of uint8."""
    red, green, blue = map(torch.mul, image[0].float().cpu(), LUMINANCE)
    return (red + green + blue).mul(255).round().clamp(0, 255).to(torch.uint8).numpy()


def _flow(image: Any, other: Any) -> Tensor:
    """Return the flow (1, 2, H, W) from one grey picture (H, W) of uint8 to another.

    The method is dense inverse search (Kroeger et al. 2016, arXiv:1603.03590). OpenCV's preset
    "medium" finds shifts by whole pixels with an error of 0.02 pixels; "fast" has an error of 0.11.
    """
    cv2 = imported("cv2", "finding motion needs OpenCV;", "video")
    search = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    try:
        flow = torch.from_numpy(search.calc(image, other, None))
    except cv2.error as error:
        # OpenCV needs 12 pixels on the longer side. Its pyramid of smaller and smaller copies also
        # fails if one side is much shorter than the other, as at 400 x 8.
        height, width = image.shape
        raise UserError(
            f"frames of {width} x {height} pixels are too small or too narrow to find motion in; "
            "choose a larger size"
        ) from error
    return flow.permute(2, 0, 1)[None].contiguous()
