"""Decoded frames <-> tensors (1, 3, H, W), float32, sRGB in [0, 1]."""

import struct
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from styletransfer.films.library import pyav

# Of a frame, in pixels: what is larger and does not say its matrix has that of BT.709, what is
# smaller that of BT.601, as players take it.
LARGEST_SD = (1279, 576)
# FFmpeg's numbers (AVColorSpace, AVColorTransferCharacteristic): not said; the two curves of HDR.
UNSPECIFIED = 2
HDR = (16, 18)
# ITU-T H.273's number of BT.709: as matrix, primaries and transfer curve.
BT709 = 1
# H.273 has full and limited range; FFmpeg's number of the limited one, 16 to 235.
LIMITED = 1

Matrix = tuple[int, ...]
"""Of a display, as in ISO 14496-12: nine integers, of which the second and the fourth turn."""


def display_matrix(frame: Any) -> Matrix | None:
    """Return how a decoded frame is to be turned; None for not at all."""
    av = pyav()
    data = frame.side_data.get(av.sidedata.sidedata.Type.DISPLAYMATRIX)
    return None if data is None else struct.unpack("9i", bytes(data))


def is_turned(matrix: Matrix | None) -> bool:
    """Tell whether rows become columns."""
    return matrix is not None and abs(matrix[1]) > abs(matrix[0])


def upright(image: Tensor, matrix: Matrix | None) -> Tensor:
    """Turn by quarters and mirror an image (1, 3, H, W).

    With matrix (a, b, _, c, d, ...) the pixel (x, y) goes to (a x + c y, b x + d y).
    """
    if matrix is None:
        return image
    a, b, _, c, d = matrix[:5]
    across, down = a, d
    if is_turned(matrix):
        image, across, down = image.transpose(2, 3), c, b
    return image.flip([side for side, sign in ((2, down), (3, across)) if sign < 0])


def to_tensor(frame: Any, size: tuple[int, int], matrix: Matrix | None) -> Tensor:
    """Return a decoded frame as an upright image.

    Args:
        frame: from PyAV.
        size: (height, width) before it is turned; a frame that has another one is resampled.
        matrix: see `upright`.
    """
    height, width = size
    is_hd = frame.width > LARGEST_SD[0] or frame.height > LARGEST_SD[1]
    unsaid = frame.colorspace == UNSPECIFIED and not frame.format.is_rgb
    colors = frame.reformat(
        width,
        height,
        "rgb24",
        src_colorspace="ITU709" if unsaid and is_hd else None,
        interpolation=_interpolation(),
        threads=1,
    ).to_ndarray()
    image = torch.from_numpy(colors).permute(2, 0, 1)[None].float() / 255
    return upright(image, matrix).contiguous()


def from_tensor(image: Tensor, *, even: bool) -> Any:
    """Return an image as a frame to encode: 8 bits, 4:2:0, BT.709, limited range.

    Args:
        image: (1, 3, H, W), clamped to [0, 1].
        even: repeat the last row and column where their number is odd.
    """
    av = pyav()
    height, width = image.shape[2:]
    pixels = image.detach().to("cpu", torch.float32).clamp(0.0, 1.0)
    if even and (height % 2 or width % 2):
        pixels = pad(pixels, (0, width % 2, 0, height % 2), mode="replicate")
    samples = (pixels[0] * 255).round().byte().permute(1, 2, 0).contiguous().numpy()
    return av.VideoFrame.from_ndarray(samples, "rgb24").reformat(
        format="yuv420p",
        dst_colorspace="ITU709",
        dst_color_range="MPEG",
        interpolation=_interpolation(),
        threads=1,
    )


def _interpolation() -> Any:
    """Return how chroma is resampled: well, and rounded exactly."""
    kinds = pyav().video.reformatter.Interpolation
    return kinds.BICUBIC | kinds.ACCURATE_RND | kinds.FULL_CHR_H_INT | kinds.FULL_CHR_H_INP
