"""Colour and light: conversions between OKLab, linear RGB and sRGB, and shading."""

import numpy as np

from tools.painters.canvas import Array

_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    np.float32,
)
_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ],
    np.float32,
)
_LMS_BACK, _LAB_BACK = np.linalg.inv(_LMS), np.linalg.inv(_LAB)


def hex_lab(code: str) -> Array:
    """Convert one "rrggbb" colour to OKLab."""
    rgb = np.array([int(code[i : i + 2], 16) for i in (0, 2, 4)], np.float32) / 255
    return lab(np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92))


def lab(linear: Array) -> Array:
    """Convert linear RGB to OKLab, in which mixtures of two colours look natural."""
    return (np.cbrt(linear.astype(np.float32) @ _LMS.T) @ _LAB.T).astype(np.float32)


def to_linear(colour: Array) -> Array:
    """Convert OKLab to linear RGB; negative values become 0."""
    return np.maximum(((colour @ _LAB_BACK.T) ** 3) @ _LMS_BACK.T, 0).astype(np.float32)


def ramp(codes: str, position: Array) -> Array:
    """Return OKLab colours at `position` (0 to 1) on a gradient of space-separated hex `codes`."""
    stops = np.stack([hex_lab(code) for code in codes.split()])
    spot = np.clip(position, 0, 1) * (len(stops) - 1)
    low = np.minimum(spot.astype(int), len(stops) - 2)
    part = (spot - low)[..., None].astype(np.float32)
    return stops[low] * (1 - part) + stops[low + 1] * part


def blend(under: Array, over: Array, share: Array) -> Array:
    """Mix two colour pictures; `share` (H, W), from 0 to 1, is the weight of `over`."""
    return under + (over - under) * np.clip(share, 0, 1)[..., None]


def lit(colour: Array, height: Array, strength: float, gloss: float = 0.1) -> Array:
    """Shade linear RGB as a relief of `height` (H, W) lit from the upper left.

    `strength` scales the height, and `gloss` the highlights.
    """
    gy, gx = np.gradient(height * strength)
    size = np.sqrt(gx * gx + gy * gy + 1)
    light = np.array([-0.45, -0.6, 0.66])
    half = light + np.array([0, 0, 1])
    half /= np.linalg.norm(half)
    shade = (-gx * light[0] - gy * light[1] + light[2]) / size / light[2]
    shine = np.maximum((-gx * half[0] - gy * half[1] + half[2]) / size, 0) ** 40
    shade = np.clip(0.35 + 0.65 * shade, 0.15, 1.7)
    return colour * shade[..., None] + (gloss * shine * shine)[..., None]


def finish(light: Array, scale: int) -> Array:
    """Average `scale` x `scale` pixels and encode linear RGB as sRGB from 0 to 1."""
    h, w, _ = light.shape
    light = light.reshape(h // scale, scale, w // scale, scale, 3).mean((1, 3))
    # Compress values above 0.8 smoothly; a clip would remove all detail from the brightest paint.
    light = np.where(light > 0.8, 0.8 + 0.2 * np.tanh((light - 0.8) / 0.2), light)
    rgb = np.where(
        light > 0.0031308, 1.055 * np.maximum(light, 1e-8) ** (1 / 2.4) - 0.055, 12.92 * light
    )
    return np.clip(rgb, 0, 1).astype(np.float32)
