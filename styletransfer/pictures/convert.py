"""Pictures in memory, as other libraries hold them: Pillow images, NumPy arrays, tensors."""

import os
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.pictures.decode import decode_image
from styletransfer.pictures.images import Picture, read
from styletransfer.settings.paths import expanded

Source = str | os.PathLike[str] | Image.Image | NDArray[Any] | Tensor


def as_picture(source: Source, name: str) -> Picture:
    """Return a picture given in any of these forms; messages call it `name`.

    Args:
        source: the path of a picture file; a Pillow image; a NumPy array (H, W), (H, W, 3) or
            (H, W, 4), uint8 in 0 to 255 or floating in [0, 1]; or a floating tensor (3, H, W) or
            (1, 3, H, W) in [0, 1]. Colours are sRGB, alpha is not premultiplied.
        name: such as "content".

    Raises:
        UserError: another type, layout or range, or a file that cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        return read(expanded(source))
    if isinstance(source, Image.Image):
        rgb, alpha = decode_image(source, f"the {name} image")
        opacity = None if alpha is None else torch.from_numpy(alpha)[None]
        return Picture(torch.from_numpy(rgb)[None], opacity, name)
    if isinstance(source, np.ndarray):
        return _from_array(source, name)
    if isinstance(source, Tensor):
        return _from_tensor(source, name)
    raise UserError(
        f"{name} is a {type(source).__name__}; give a path, a Pillow image, a NumPy array or a "
        "tensor"
    )


def plane_as_array(source: Source) -> Source:
    """Return a tensor (H, W) as a NumPy array, and anything else as it is."""
    if isinstance(source, Tensor) and source.ndim == 2:
        return source.detach().cpu().numpy()
    return source


def to_array(rgb: Tensor, alpha: Tensor | None = None) -> NDArray[np.float32]:
    """Return (1, 3, H, W), and (1, 1, H, W) if there is an alpha, as (H, W, 3 or 4) in [0, 1]."""
    layers = rgb if alpha is None else torch.cat([rgb, alpha.to(rgb)], dim=1)
    array: NDArray[np.float32] = layers[0].permute(1, 2, 0).float().cpu().numpy()
    return np.ascontiguousarray(array)


def to_image(rgb: Tensor, alpha: Tensor | None = None) -> Image.Image:
    """Return the same as a Pillow image, RGB or RGBA with 8 bits per sample."""
    return Image.fromarray(np.round(to_array(rgb, alpha) * 255.0).astype(np.uint8))


def _from_array(array: NDArray[Any], name: str) -> Picture:
    samples = array[..., None] if array.ndim == 2 else array
    if samples.ndim != 3 or samples.shape[2] not in (1, 3, 4):
        raise UserError(
            f"{name} is an array of shape {array.shape}; it must be (H, W), (H, W, 3) or (H, W, 4)"
        )
    if array.dtype == np.uint8:
        samples = samples / np.float32(255.0)
    elif not np.issubdtype(array.dtype, np.floating):
        raise UserError(f"{name} is an array of {array.dtype}; give uint8, or floats in [0, 1]")
    samples = samples.astype(np.float32)  # a copy: torch warns of arrays that are not writable
    _check_range(torch.from_numpy(np.ascontiguousarray(samples)), name)
    alpha = samples[..., 3:] if samples.shape[2] == 4 else None
    rgb = np.repeat(samples, 3, axis=2) if samples.shape[2] == 1 else samples[..., :3]
    return Picture(_layers(rgb), None if alpha is None else _layers(alpha), name)


def _from_tensor(tensor: Tensor, name: str) -> Picture:
    image = tensor[None] if tensor.ndim == 3 else tensor
    if image.ndim != 4 or image.shape[:2] != (1, 3):
        raise UserError(
            f"{name} is a tensor of shape {tuple(tensor.shape)}; it must be (3, H, W) or "
            "(1, 3, H, W)"
        )
    if not image.is_floating_point():
        raise UserError(f"{name} is a tensor of {tensor.dtype}; give floats in [0, 1]")
    if image.layout != torch.strided:
        raise UserError(f"{name} is a tensor of layout {tensor.layout}; give a dense one")
    image = image.detach().to("cpu", torch.float32)
    _check_range(image, name)
    return Picture(image, name=name)


def _check_range(samples: Tensor, name: str) -> None:
    if samples.numel() == 0:
        raise UserError(f"{name} is empty")
    if not samples.isfinite().all():
        raise UserError(f"{name} holds NaN or infinity; floats must be in [0, 1]")
    low, high = (float(value) for value in samples.aminmax())
    if low < 0.0 or high > 1.0:
        raise UserError(
            f"{name} holds values from {low:.9g} to {high:.9g}; floats must be in [0, 1]"
        )


def _layers(samples: NDArray[Any]) -> Tensor:
    """Return (H, W, C) as (1, C, H, W) in float32, sharing no memory."""
    return torch.from_numpy(np.array(samples.transpose(2, 0, 1), dtype=np.float32, order="C"))[None]
