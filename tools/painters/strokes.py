"""Paints brush strokes that follow a field of directions, as bands of thick paint."""

from dataclasses import dataclass

import numpy as np

from tools.painters.canvas import Array, Frame, Rng


@dataclass
class Surface:
    """A Surface is the painted canvas: its colour, and the height of its paint."""

    colour: Array  # (H, W, 3), OKLab
    height: Array  # (H, W)


def trace(frame: Frame, angle: Array, starts: Array, length: Array, knots: int = 12) -> Array:
    """Follow `angle` both ways from each start; return paths (N, knots, 2) of x, y in pixels."""
    step = (length / (knots - 1))[:, None]
    halves = []
    for way in (-1, 1):
        spot, half = starts.copy(), []
        for _ in range(knots // 2):
            turn = frame.at(angle, spot)
            half.append(spot + way * step / 2 * np.stack([np.cos(turn), np.sin(turn)], -1))
            turn = frame.at(angle, half[-1])  # midpoint method: Euler's would widen spirals
            spot = spot + way * step * np.stack([np.cos(turn), np.sin(turn)], -1)
        halves.append(half)
    return np.stack(halves[0][::-1] + halves[1], 1).astype(np.float32)


def _hat(samples: int, nodes: int) -> Array:
    """Return weights (samples, nodes) that interpolate `nodes` values smoothly."""
    spot = np.linspace(0, nodes - 1, samples)[:, None]
    near = np.clip(1 - np.abs(spot - np.arange(nodes)), 0, 1)
    return (near * near * (3 - 2 * near)).astype(np.float32)


def lay(
    surface: Surface,
    paths: Array,
    width: Array,
    colour: Array,
    rng: Rng,
    *,
    load: float = 1.0,
    dry: float = 0.5,
    streak: float = 0.05,
    blunt: float = 5.0,
    hair: float = 2.4,
) -> None:
    """Paint strokes along `paths` (N, knots, 2) onto `surface`, each over the ones before.

    Each stroke has its own random bristles, `hair` pixels wide, with ridges (height `load`), light
    and dark streaks (`streak`), and gaps at the end (`dry`). A larger `blunt` squares the ends.
    """
    h, w = surface.height.shape
    flat_colour, flat_height = surface.colour.reshape(-1, 3), surface.height.reshape(-1)
    lengths = np.linalg.norm(np.diff(paths, axis=1), axis=2).sum(1)
    over = 1.5  # samples per pixel: enough to leave no holes in a rotated stroke
    ns, nt = int(lengths.max() * over) + 3, int(width.max() * over) + 3
    s, t = np.linspace(0, 1, ns, dtype=np.float32), np.linspace(-1, 1, nt, dtype=np.float32)
    along, bristle_s = _hat(ns, paths.shape[1]), _hat(ns, 5)
    across = _hat(nt, max(3, int(width.mean() / hair)))
    body = (1 - np.abs(2 * s - 1) ** blunt) ** 0.5
    rim = (0.5 * np.abs(t) ** 5 - np.abs(t) ** 14)[None, None]
    tangents = np.gradient(paths, axis=1)
    batch = max(1, int(1.2e6 / (ns * nt)))
    for i in range(0, len(paths), batch):
        part = slice(i, i + batch)
        n = len(paths[part])
        centre = np.einsum("sk,nkc->nsc", along, paths[part])
        tangent = np.einsum("sk,nkc->nsc", along, tangents[part])
        tangent /= np.linalg.norm(tangent, axis=2, keepdims=True) + 1e-6
        normal = np.stack([-tangent[..., 1], tangent[..., 0]], -1)
        reach = width[part, None] / 2 * body
        spot = centre[:, :, None] + normal[:, :, None] * (reach[..., None] * t)[..., None]
        hairs = rng.random((n, across.shape[1], 5), dtype=np.float32)
        hairs = 0.65 * hairs[:, :, :1] + 0.35 * hairs
        hairs = np.matmul(bristle_s, np.matmul(across, hairs).transpose(0, 2, 1))
        keep = hairs > dry * s[None, :, None] ** 3 + 0.3 * np.abs(t) ** 9
        col, row = np.rint(spot[..., 0]).astype(int), np.rint(spot[..., 1]).astype(int)
        keep &= (col >= 0) & (col < w) & (row >= 0) & (row < h)
        where = (row * w + col)[keep]
        relief = load * ((0.3 + 0.7 * hairs + rim) * (1.1 - 0.5 * s[None, :, None]))
        flat_height[where] = 0.4 * flat_height[where] + relief[keep]
        paint = np.repeat(colour[part, None], ns * nt, 1).reshape(n, ns, nt, 3)
        paint[..., 0] += streak * 2 * (hairs - 0.5)
        flat_colour[where] = paint[keep]


def tinted(rng: Rng, colour: Array, light: float, chroma: float) -> Array:
    """Return OKLab `colour` plus noise: deviation `light` in lightness, `chroma` in a and b."""
    swing = rng.standard_normal(colour.shape).astype(np.float32)
    return (colour + swing * np.array([light, chroma, chroma], np.float32)).astype(np.float32)
