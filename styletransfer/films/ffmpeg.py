"""FFmpeg by PyAV, imported when a film is opened; its frames <-> tensors (1, 3, H, W) of sRGB."""

import struct
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from styletransfer.errors import UserError

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


def pyav() -> ModuleType:
    """Return the module (UserError: it is not installed)."""
    try:
        import av
    except ImportError as error:
        raise UserError("films need PyAV; run: pip install 'styletransfer[video]'") from error
    return av


def reason(error: Exception) -> str:
    """Return what FFmpeg or the system says, in a few words."""
    return getattr(error, "strerror", None) or str(error)


def display_matrix(frame: Any) -> Matrix | None:
    """Return how a decoded frame is to be turned; None for not at all."""
    data = frame.side_data.get(pyav().sidedata.sidedata.Type.DISPLAYMATRIX)
    return None if data is None else struct.unpack("9i", bytes(data))


def is_turned(matrix: Matrix | None) -> bool:
    """Tell whether rows become columns."""
    return matrix is not None and abs(matrix[1]) > abs(matrix[0])


def to_tensor(frame: Any, size: tuple[int, int], matrix: Matrix | None) -> Tensor:
    """Return a decoded frame, resampled to (height, width) `size` and turned, float32 in [0, 1]."""
    is_hd = frame.width > LARGEST_SD[0] or frame.height > LARGEST_SD[1]
    unsaid = frame.colorspace == UNSPECIFIED and not frame.format.is_rgb
    colors = frame.reformat(
        *(size[1], size[0], "rgb24"),
        src_colorspace="ITU709" if unsaid and is_hd else None,
        interpolation=_interpolation(),
        threads=1,
    ).to_ndarray()
    image = torch.from_numpy(colors).permute(2, 0, 1)[None].float() / 255
    return _upright(image, matrix).contiguous()


def from_tensor(image: Tensor, *, even: bool) -> Any:
    """Return an image, clamped to [0, 1], as a frame: 8 bits, 4:2:0, BT.709, limited range.

    With `even`, the last row and column are repeated where their number is odd.
    """
    height, width = image.shape[2:]
    pixels = image.detach().to("cpu", torch.float32).clamp(0.0, 1.0)
    if even:
        pixels = pad(pixels, (0, width % 2, 0, height % 2), mode="replicate")
    samples = (pixels[0] * 255).round().byte().permute(1, 2, 0).contiguous().numpy()
    return (
        pyav()
        .VideoFrame.from_ndarray(samples, "rgb24")
        .reformat(
            format="yuv420p",
            dst_colorspace="ITU709",
            dst_color_range="MPEG",
            interpolation=_interpolation(),
            threads=1,
        )
    )


def _upright(image: Tensor, matrix: Matrix | None) -> Tensor:
    """Turn by quarters and mirror: (a, b, _, c, d, ...) moves (x, y) to (a x + c y, b x + d y)."""
    if matrix is None:
        return image
    a, b, _, c, d = matrix[:5]
    across, down = a, d
    if is_turned(matrix):
        image, across, down = image.transpose(2, 3), c, b
    return image.flip([side for side, sign in ((2, down), (3, across)) if sign < 0])


def _interpolation() -> Any:
    """Return how chroma is resampled: well, and rounded exactly."""
    kinds = pyav().video.reformatter.Interpolation
    return kinds.BICUBIC | kinds.ACCURATE_RND | kinds.FULL_CHR_H_INT | kinds.FULL_CHR_H_INP
