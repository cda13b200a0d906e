"""Motion between two frames, found by OpenCV's dense inverse search."""

from typing import Any

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.films.motion import Motion, make_motion


def motion_between(image: Tensor, other: Tensor) -> Motion:
    """Return where the points of a frame are in another one.

    Args:
        image: (1, 3, H, W), sRGB in [0, 1], of a size that `check_flow` takes.
        other: of the same shape.

    Raises:
        UserError: OpenCV is not installed, or takes no frames of this size.
    """
    grey, before = _grey(image), _grey(other)
    return make_motion(_flow(grey, before).to(image.device), _flow(before, grey).to(image.device))


def check_flow(size: tuple[int, int]) -> None:
    """Check that motion can be found in frames of (height, width) `size`.

    Raises:
        UserError: it cannot, or OpenCV is not installed.
    """
    blank = torch.zeros(size, dtype=torch.uint8).numpy()
    _flow(blank, blank)


def _flow(image: Any, other: Any) -> Tensor:
    """Return the flow (1, 2, H, W) between two grey pictures (H, W) of bytes.

    Kroeger et al. 2016 (arXiv:1603.03590) in OpenCV's preset "medium": within 0.02 pixels of a
    shift of whole pixels, where "fast" is within 0.11.

    Raises:
        UserError: OpenCV is not installed, or takes no pictures of this size.
    """
    cv2 = _opencv()
    search = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    try:
        found = torch.from_numpy(search.calc(image, other, None))
    except cv2.error as error:  # it needs 12 pixels one way, and scales by powers of 2
        height, width = image.shape
        raise UserError(
            f"frames of {width} x {height} pixels are too small or too narrow to find motion in; "
            "choose a larger size"
        ) from error
    return found.permute(2, 0, 1)[None].contiguous()


def _grey(image: Tensor) -> Any:
    """Return the luma (H, W) of a picture as bytes, by the weights of Rec. 709."""
    red, green, blue = image[0].float().cpu()
    luma = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return luma.mul(255).round().clamp(0, 255).to(torch.uint8).numpy()


def _opencv() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise UserError(
            "finding motion needs OpenCV: pip install 'styletransfer[video]'"
        ) from error
    return cv2
