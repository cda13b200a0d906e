"""Converts pictures from and to Pillow images, NumPy arrays and tensors."""

import io
import os
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.formats import read_image
from styletransfer.pictures.images import Picture, on_white, read, resize_picture
from styletransfer.settings.schemas import expanded

Source = str | os.PathLike[str] | Image.Image | NDArray[Any] | Tensor


def as_picture(source: Source, name: str) -> Picture:
    """Return `source` as a picture; error messages call it `name`, and a file by its path.

    `source` is the path of a picture file; a Pillow image; a NumPy array (H, W), (H, W, 3) or
    (H, W, 4), uint8 in 0 to 255 or floating in [0, 1]; or a floating tensor (3, H, W) or
    (1, 3, H, W) in [0, 1]. Arrays and tensors are sRGB, and their alpha is not premultiplied.
    (UserError if `source` is none of these, or its values are outside the range.)
    """
    if isinstance(source, str | os.PathLike):
        return read(expanded(source))
    if isinstance(source, Image.Image):
        return Picture.of(read_image(source, f"the {name} image"), name)
    if isinstance(source, np.ndarray):
        return _from_array(source, name)
    if isinstance(source, Tensor):
        return _from_tensor(source, name)
    kind = type(source).__name__
    raise UserError(f"{name} is a {kind}; give a path, a Pillow image, a NumPy array or a tensor")


def is_floating(source: Source) -> bool:
    """Return whether `source` is an array or a tensor of floats."""
    if isinstance(source, Tensor):
        return source.is_floating_point()
    return isinstance(source, np.ndarray) and np.issubdtype(source.dtype, np.floating)


def one_layer(source: Source, name: str) -> Source:
    """Return a mask or labels in a form that `as_picture` takes; other sources stay unchanged.

    Arrays and tensors (1, H, W) and (1, 1, H, W) become arrays (H, W). Integers from 0 to 255
    become uint8, and bool becomes 0 and 255. (UserError if a tensor is nested, sparse or meta.)
    """
    if isinstance(source, Tensor):
        check_plain(source, name)
        if source.ndim >= 3 and source.shape[-3] != 1:
            return source
        source = source.detach().cpu()
        return _one_layer((source.float() if source.is_floating_point() else source).numpy())
    return _one_layer(source) if isinstance(source, np.ndarray) else source


def _one_layer(array: NDArray[Any]) -> NDArray[Any]:
    while array.ndim > 2 and array.shape[0] == 1 and array.shape[-1] not in (1, 3, 4):
        array = array[0]
    if array.dtype == np.bool_:
        return array * np.uint8(255)
    is_whole = np.issubdtype(array.dtype, np.integer) and array.size > 0
    fits = is_whole and array.min() >= 0 and array.max() <= 255
    return array.astype(np.uint8) if fits else array


def to_array(rgb: Tensor, alpha: Tensor | None = None) -> NDArray[np.float32]:
    """Return rgb (1, 3, H, W) and alpha (1, 1, H, W), if any, as one array (H, W, 3 or 4)."""
    layers = rgb if alpha is None else torch.cat([rgb, alpha.to(rgb)], dim=1)
    array: NDArray[np.float32] = layers[0].permute(1, 2, 0).float().cpu().numpy()
    return np.ascontiguousarray(array)


def to_image(rgb: Tensor, alpha: Tensor | None = None) -> Image.Image:
    """Return a Pillow image, RGB or RGBA with 8 bits per sample; arguments as for `to_array`."""
    return Image.fromarray(np.round(to_array(rgb, alpha) * 255.0).astype(np.uint8))


def small_picture(picture: Picture, side: int) -> Image.Image:
    """Return an RGB image with sides of at most `side` pixels; transparent pixels become white."""
    picture = resize_picture(picture, min(side, max(picture.size)))
    return to_image(on_white(picture.rgb, picture.alpha))


def png(image: Image.Image) -> bytes:
    """Return the bytes of a PNG file of a Pillow image, with fast compression."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def jpeg(image: Image.Image, quality: int) -> bytes:
    """Return the bytes of a JPEG file of a Pillow image."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


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
    # Copy the array, because torch warns about arrays that are not writable.
    layers = torch.from_numpy(np.array(samples.transpose(2, 0, 1), np.float32, order="C"))[None]
    if layers.numel() == 0:
        raise UserError(f"{name} is empty")
    if not layers.isfinite().all():
        raise UserError(f"{name} holds NaN or infinity; floats must be in [0, 1]")
    low, high = (float(value) for value in layers.aminmax())
    if low < 0.0 or high > 1.0:
        problem = f"holds values from {low:.9g} to {high:.9g}"
        raise UserError(f"{name} {problem}; floats must be in [0, 1]")
    alpha = layers[:, 3:].contiguous() if layers.shape[1] == 4 else None
    return Picture(layers[:, :3].expand(1, 3, -1, -1).contiguous(), alpha, name)


def check_plain(tensor: Tensor, name: str) -> None:
    """Raise UserError for a nested or sparse tensor, or one without values (device="meta")."""
    if tensor.is_nested or tensor.is_meta or tensor.layout != torch.strided:
        raise UserError(f"{name} is a nested, sparse or meta tensor; give a plain one")


def _from_tensor(tensor: Tensor, name: str) -> Picture:
    check_plain(tensor, name)
    image = tensor[None] if tensor.ndim == 3 else tensor
    if image.ndim != 4 or image.shape[:2] != (1, 3):
        kind = f"a tensor of shape {tuple(tensor.shape)}"
        raise UserError(f"{name} is {kind}; it must be (3, H, W) or (1, 3, H, W)")
    if not image.is_floating_point():
        raise UserError(f"{name} is a tensor of {tensor.dtype}; give floats in [0, 1]")
    return _from_array(to_array(image.detach()), name)
