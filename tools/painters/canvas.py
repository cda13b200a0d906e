"""Functions that all painted style images share: canvas, noise, and distances."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rng = np.random.Generator


@dataclass(frozen=True)
class Frame:
    """A Frame is the canvas of a picture: its size, its coordinates, and a random generator."""

    shape: tuple[int, int]  # (H, W) in pixels
    unit: float  # 1/768 of the longer side, in pixels
    x: Array  # (H, W), x of each pixel, in picture heights
    y: Array  # (H, W), y of each pixel, in picture heights
    rng: Rng  # draws the noise and the points

    @property
    def aspect(self) -> float:
        """Width over height."""
        return self.shape[1] / self.shape[0]

    def at(self, picture: Array, points: Array) -> Array:
        """Return `picture` at pixel coordinates (x, y), rounded down and clipped to the frame."""
        cols = np.clip(points[..., 0].astype(int), 0, self.shape[1] - 1)
        rows = np.clip(points[..., 1].astype(int), 0, self.shape[0] - 1)
        return picture[rows, cols]

    def noise(self, scale: float | tuple[float, float], rough: float = 3.0) -> Array:
        """Return noise (H, W) with features `scale` units large; see the function `noise`."""
        sy, sx = scale if isinstance(scale, tuple) else (scale, scale)
        return noise(self.rng, self.shape, (sy * self.unit, sx * self.unit), rough)

    def scatter(self, spacing: float) -> Array:
        """Return points (N, 2), x and y in pixels, about `spacing` units apart, in random order."""
        gap = spacing * self.unit
        y = np.arange(-gap, self.shape[0] + gap, gap)
        x = np.arange(-gap, self.shape[1] + gap, gap)
        grid = np.stack(np.meshgrid(x, y), -1).astype(np.float32)
        grid[1::2, :, 0] += gap / 2  # staggered rows, so that no columns are visible
        points = (grid + self.rng.uniform(-0.5, 0.5, grid.shape) * gap).reshape(-1, 2)
        return self.rng.permutation(points).astype(np.float32)


def frame(size: int, aspect: float, rng: Rng, scale: int = 1) -> Frame:
    """Return a frame with a longer side of `size` x `scale` pixels; `aspect` is width / height."""
    width = size if aspect >= 1 else round(size * aspect)
    height = round(size / aspect) if aspect >= 1 else size
    shape = (height * scale, width * scale)
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32) / shape[0]
    return Frame(shape, size * scale / 768, x, y, rng)


def smooth(low: float, high: float, value: Array) -> Array:
    """Return a smooth step of `value`: 0 at `low` and before, 1 at `high` and beyond."""
    part = np.clip((value - low) / (high - low), 0, 1)
    return (part * part * (3 - 2 * part)).astype(np.float32)


def _filtered(picture: Array, pad: int, gain: Callable[[Array, Array], Array]) -> Array:
    """Multiply the spectrum by `gain(fy, fx)`, in cycles per pixel; mirror `pad` border pixels."""
    wide = np.pad(picture, pad, mode="reflect")
    fy = np.fft.fftfreq(wide.shape[0])[:, None]
    fx = np.fft.rfftfreq(wide.shape[1])[None]
    out = np.fft.irfft2(np.fft.rfft2(wide) * gain(fy, fx), s=wide.shape)
    return out[pad : pad + picture.shape[0], pad : pad + picture.shape[1]].astype(np.float32)


def blur(picture: Array, radius: float) -> Array:
    """Return a Gaussian blur with standard deviation `radius` in pixels and mirrored borders."""
    pad = min(int(3 * radius) + 1, min(picture.shape) - 1)
    return _filtered(
        picture, pad, lambda fy, fx: np.exp(-2 * (np.pi * radius) ** 2 * (fy**2 + fx**2))
    )


def noise(
    rng: Rng, shape: tuple[int, int], scale: tuple[float, float], rough: float = 3.0
) -> Array:
    """Return noise of mean 0 and deviation 1, features about `scale` pixels (rows, columns) large.

    Detail below that size falls off with the power `rough`: 1.5 is craggy, 4 is smooth.
    """
    white = rng.standard_normal(shape).astype(np.float32)
    sy, sx = scale
    field = _filtered(
        white, 0, lambda fy, fx: (1 + (2.5 * sy * fy) ** 2 + (2.5 * sx * fx) ** 2) ** (-rough / 2)
    )
    return (field - field.mean()) / (field.std() + 1e-9)


def distance(inside: NDArray[np.bool_], reach: int) -> Array:
    """Return the distance of each pixel to the nearest False pixel, at most `reach` pixels."""
    far = np.float32(reach * reach)
    square = np.where(inside, far, np.float32(0))
    for axis in (0, 1):
        wide = np.pad(
            square, [(reach, reach) if a == axis else (0, 0) for a in (0, 1)], mode="edge"
        )
        best = square.copy()
        for shift in range(-reach, reach + 1):
            part = np.take(wide, np.arange(square.shape[axis]) + reach + shift, axis)
            np.minimum(best, part + np.float32(shift * shift), out=best)
        square = best
    return np.sqrt(square)


def borders(label: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask (H, W) of the pixels whose right or lower neighbour has another label."""
    edge = np.zeros(label.shape, bool)
    edge[:, :-1] |= label[:, 1:] != label[:, :-1]
    edge[:-1] |= label[1:] != label[:-1]
    return edge


def nearest(
    sites: Array,
    shape: tuple[int, int],
    bin_size: int,
    region: NDArray[np.int64] | None = None,
    angle: Array | None = None,
) -> NDArray[np.int64]:
    """Return the index of the site nearest to each pixel (H, W), of those up to `bin_size` away.

    `sites` (N, 2) are points x, y in pixels; sites in the region of the pixel come first. With an
    `angle` in radians per site, the distance is mainly the larger of the two offsets in axes turned
    by `angle`, which makes the cells nearly square.
    """
    rows, cols = -(-shape[0] // bin_size) + 2, -(-shape[1] // bin_size) + 2
    spot = np.clip(sites, 0, np.array(shape[::-1]) - 1).astype(int)
    cell = (spot[:, 1] // bin_size + 1) * cols + spot[:, 0] // bin_size + 1
    order = np.argsort(cell, kind="stable")
    rank = np.arange(len(order)) - np.searchsorted(cell[order], cell[order])
    table = np.full((rank.max() + 1, rows * cols), -1)
    table[rank, cell[order]] = order
    table = table.reshape(-1, rows, cols)
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    home = None if region is None else region[spot[:, 1], spot[:, 0]]
    turn = None if angle is None else (np.cos(angle), np.sin(angle))
    best, label = np.full(shape, np.inf, np.float32), np.zeros(shape, np.int64)
    for layer in table:
        for i in range(3):
            for j in range(3):
                block = layer[i : rows - 2 + i, j : cols - 2 + j]
                who = block.repeat(bin_size, 0).repeat(bin_size, 1)[: shape[0], : shape[1]]
                dx, dy = x - sites[who, 0], y - sites[who, 1]
                if turn is None:
                    gap = dx * dx + dy * dy
                else:
                    c, s = turn[0][who], turn[1][who]
                    u, v = np.abs(dx * c + dy * s), np.abs(dy * c - dx * s)
                    gap = np.maximum(u, v) ** 2 + 0.1 * (u * u + v * v)
                if region is not None and home is not None:
                    gap = gap + 1e6 * (home[who] != region)
                closer = (gap < best) & (who >= 0)
                best[closer], label[closer] = gap[closer], who[closer]
    return label


def bump(frame: Frame, centre: Sequence[float], radius: float) -> Array:
    """Return a Gaussian (H, W) of height 1 around (x, y); lengths are in picture heights."""
    gap = (frame.x - centre[0]) ** 2 + (frame.y - centre[1]) ** 2
    return np.exp(-gap / radius**2)
