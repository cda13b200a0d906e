"""Motion between two frames, found by OpenCV's dense inverse search."""

from typing import Any

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.pictures.motion import Motion, make_motion

# Below it OpenCV finds no place for its patches.
SMALLEST_SIDE = 8


def motion_between(image: Tensor, other: Tensor) -> Motion:
    """Return where the points of a frame are in another one.

    Args:
        image: (1, 3, H, W), sRGB in [0, 1], each side at least SMALLEST_SIDE.
        other: of the same shape.

    Raises:
        UserError: OpenCV is not installed.
    """
    grey, before = _grey(image), _grey(other)
    return make_motion(_flow(grey, before).to(image.device), _flow(before, grey).to(image.device))


def check_flow() -> None:
    """Check that motion can be found.

    Raises:
        UserError: OpenCV is not installed.
    """
    _opencv()


def _flow(image: Any, other: Any) -> Tensor:
    """Return the flow (1, 2, H, W) between two grey pictures (H, W) of bytes.

    Kroeger et al. 2016 (arXiv:1603.03590) in OpenCV's preset "medium": within 0.02 pixels of a
    shift of whole pixels, where "fast" is within 0.11.
    """
    cv2 = _opencv()
    search = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    found = torch.from_numpy(search.calc(image, other, None))
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
