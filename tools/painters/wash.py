"""Flowers in watercolour: wet washes, hard drying edges, blooms and granulation."""

import numpy as np

from tools.painters.canvas import Array, Frame, Rng, frame, smooth
from tools.painters.colour import finish, hex_lab, to_linear

# x, y, radius, petals, colour at the tips, colour at the heart
FLOWERS = [
    (0.30, 0.25, 0.165, 6, "e8487f", "8c1450"),
    (0.56, 0.185, 0.120, 5, "8f6fd0", "3f2590"),
    (0.53, 0.455, 0.190, 7, "f2603f", "b0182f"),
    (0.20, 0.560, 0.130, 6, "f0a238", "d8541f"),
    (0.68, 0.68, 0.120, 6, "d85aa8", "6f1f8f"),
    (0.31, 0.765, 0.105, 5, "6f96e4", "3a44b4"),
    (0.10, 0.335, 0.080, 5, "7f9be6", "3a3fae"),
    (0.71, 0.34, 0.078, 5, "f7b84a", "e0661f"),
]


class _Sheet:
    """Wet paper: pigment sums up as absorbance, so every glaze darkens the ones below."""

    def __init__(self, f: Frame) -> None:
        self.f, self.rng = f, f.rng
        self.absorbed = np.zeros((*f.shape, 3), np.float32)
        self.tooth: Array = 0.6 * f.noise(2.0, 2.4) + 0.4 * f.noise(5, 2.2)
        self.wander = [f.noise(38, 2.1) for _ in range(2)]
        self.pool = f.noise(55, 2.0)
        self.wet = f.noise(75, 2.6)

    def place(self, box: tuple[slice, slice], amount: float) -> tuple[Array, Array]:
        """Coordinates inside `box`, displaced the way water wanders."""
        return (
            self.f.x[box] + amount * self.wander[0][box],
            self.f.y[box] + amount * self.wander[1][box],
        )

    def box(self, x: float, y: float, reach: float) -> tuple[slice, slice]:
        """Pixels within `reach` of a place."""
        h, w = self.f.shape
        low = np.clip(np.array([y - reach, x - reach]) * h, 0, [h - 1, w - 1]).astype(int)
        high = np.clip(np.array([y + reach, x + reach]) * h + 1, low + 1, [h, w]).astype(int)
        return slice(low[0], high[0]), slice(low[1], high[1])

    def wash(
        self,
        box: tuple[slice, slice],
        depth: Array,
        colour: Array,
        strength: Array | float,
        soft: float = 0.0,
    ) -> None:
        """Lay a wash where `depth` (picture heights inside its outline) is positive.

        Where the paper is wet the border bleeds; where it is dry pigment collects in a dark line.
        """
        px = depth * self.f.shape[0] / self.f.unit
        wet = np.clip(smooth(0.5, 1.9, self.wet[box]) + soft, 0, 1)
        # A ragged hem from the paper's tooth, wide where it is wet.
        spread = 0.7 + 16 * wet
        cover = smooth(-1, 1, (px + 0.35 * self.tooth[box] * (1 + 3 * wet)) / spread)
        hem = np.exp(-np.abs(px - 1.2) / 1.5) + 0.5 * np.exp(-np.maximum(px, 0) / 7)
        body = 0.78 + 0.24 * self.pool[box] + 0.85 * hem * (1 - wet)
        grain = 1 + (0.10 + 0.10 * wet) * np.clip(self.tooth[box], -2.5, 2.5)
        density = np.maximum(cover * body * grain * strength, 0)
        absorbance = -np.log(np.clip(to_linear(colour), 0.004, 0.995))
        self.absorbed[box] += density[..., None] * absorbance

    def backrun(self, x: float, y: float, radius: float) -> None:
        """Drop clean water: it pushes pigment outward into a feathered rim."""
        box = self.box(x, y, radius * 1.7)
        px, py = self.place(box, 0.016)
        gap = np.hypot(px - x, py - y) / radius + 0.05 * self.tooth[box]
        lift = 0.45 * smooth(1.0, 0.55, gap)
        rim = 0.38 * np.exp(-np.abs(gap - 1.0) / np.where(gap < 1, 0.10, 0.03))
        self.absorbed[box] *= (1 - lift + rim * smooth(1.6, 1.2, gap))[..., None]


def _ground(sheet: _Sheet) -> None:
    """Loose washes, wet in wet, that leave white paper to breathe."""
    f, everywhere = sheet.f, (slice(None), slice(None))
    for x, y, size, code, strength in (
        (0.12, 0.10, 0.30, "a9d3e8", 0.75),
        (0.66, 0.06, 0.26, "f6d7a0", 0.70),
        (0.02, 0.50, 0.26, "cdbbe6", 0.65),
        (0.44, 0.36, 0.34, "f4c9c0", 0.55),
        (0.76, 0.50, 0.28, "b5ddc6", 0.80),
        (0.20, 0.84, 0.30, "a4cfae", 0.95),
        (0.58, 0.90, 0.30, "8fbfd0", 0.90),
        (0.40, 0.62, 0.26, "e4dd94", 0.70),
    ):
        px, py = sheet.place(everywhere, 0.05)
        depth = 0.6 * (size - np.hypot(px - x, py - y))
        sheet.wash(everywhere, depth, hex_lab(code), strength * (0.7 + 0.3 * sheet.wet), soft=0.35)
    for _ in range(9):
        x, y = sheet.rng.uniform(0, f.aspect), sheet.rng.uniform(0, 1)
        sheet.backrun(x, y, sheet.rng.uniform(0.04, 0.10))


def _leaf(sheet: _Sheet, root: Array, heading: float, length: float, code: str) -> None:
    """One leaf in two strokes, a thread of dry paper between them."""
    middle = root + 0.5 * length * np.array([np.cos(heading), np.sin(heading)])
    box = sheet.box(middle[0], middle[1], length * 0.8)
    px, py = sheet.place(box, 0.006)
    dx, dy = px - root[0], py - root[1]
    u = (dx * np.cos(heading) + dy * np.sin(heading)) / length
    v = (dy * np.cos(heading) - dx * np.sin(heading)) / length + 0.16 * np.sin(2.6 * u)
    half = 0.21 * np.sin(np.pi * np.clip(u, 0, 1) ** 0.75)
    for side in (-1, 1):
        depth = np.minimum(half - np.abs(v), side * v - 0.009) * length
        depth = np.where((u > 0) & (u < 1), depth, -0.02)
        shade = (1.0 if side > 0 else 0.66) * (1.15 - 0.5 * u)
        sheet.wash(box, depth, hex_lab(code), shade)


def _stem(sheet: _Sheet, x: float, y: float, foot: float) -> None:
    """A bending stem from the flower down past the sheet's edge."""
    everywhere = (slice(None), slice(None))
    px, py = sheet.place(everywhere, 0.004)
    fall = np.clip((py - y) / (1.02 - y), 0, 1)
    line = x + (foot - x) * fall**1.6 + 0.02 * np.sin(5 * fall + 9 * x)
    depth = np.where(py > y, 0.0045 + 0.002 * fall - np.abs(px - line), -0.02)
    for other_x, other_y, radius, *_ in FLOWERS:  # stems pass behind the flowers
        depth = np.minimum(depth, np.hypot(px - other_x, py - other_y) - 0.82 * radius)
    sheet.wash(everywhere, depth, hex_lab("5f8f4f"), 0.8)


def _petal(
    sheet: _Sheet, x: float, y: float, turn: float, length: float, tip: str, heart: str
) -> None:
    """One petal: broad, notched, deeper in colour towards the heart."""
    rng = sheet.rng
    box = sheet.box(x + 0.5 * length * np.cos(turn), y + 0.5 * length * np.sin(turn), length * 0.95)
    px, py = sheet.place(box, 0.010)
    dx, dy = px - x, py - y
    u = (dx * np.cos(turn) + dy * np.sin(turn)) / length
    v = (dy * np.cos(turn) - dx * np.sin(turn)) / length + rng.uniform(-0.12, 0.12) * u
    broad = rng.uniform(0.40, 0.54)
    notch = 0.06 * np.exp(-((v / 0.07) ** 2)) + 0.02 * np.sin(19 * v + turn)
    half = broad * np.sqrt(np.maximum(np.sin(np.pi * np.clip((u + notch) / 1.0, 0, 1) ** 1.7), 0))
    depth = np.where((u > 0.0) & (u + notch < 1), half - np.abs(v), -0.12) * length
    depth = np.minimum(depth, (1 - u - notch) * length)
    inward = smooth(0.75, 0.0, u)
    sheet.wash(box, depth, hex_lab(tip), 0.42 + 0.30 * rng.random() + 0.15 * u)
    veins = 0.5 + 0.5 * np.sin(v / (0.25 + np.abs(u)) * 26 + 1.5 * sheet.wander[0][box])
    sheet.wash(box, depth - 0.004, hex_lab(heart), inward * (0.16 + 0.34 * veins), soft=0.2)


def _flower(sheet: _Sheet, spot: tuple[float, float, float, int, str, str]) -> None:
    """A ring of overlapping petals round a dark, spattered heart."""
    x, y, radius, petals, tip, heart = spot
    rng, start = sheet.rng, sheet.rng.uniform(0, 6.28)
    for i in rng.permutation(petals):
        turn = start + 6.28 * i / petals + rng.normal(0, 0.10)
        # Seen a little from the side: petals at the back are shorter.
        length = radius * rng.uniform(0.88, 1.10) * (1 - 0.16 * np.sin(-turn))
        _petal(sheet, x, y, turn, length, tip, heart)
    for _ in range(16):
        turn, far = rng.uniform(0, 6.28), radius * rng.uniform(0.03, 0.30)
        _drop(sheet, x + far * np.cos(turn), y + far * np.sin(turn), radius * 0.035, "3a2338", 0.8)
    _drop(sheet, x, y, radius * 0.11, "5a5a22", 0.9)


def _drop(sheet: _Sheet, x: float, y: float, radius: float, code: str, strength: float) -> None:
    """A small round spot."""
    box = sheet.box(x, y, radius * 2 + 0.012)
    px, py = sheet.place(box, 0.003)
    sheet.wash(box, radius - np.hypot(px - x, py - y), hex_lab(code), strength)


def watercolour(size: int, rng: Rng) -> Array:
    """Paint the flowers, `size` pixels high."""
    f = frame(size, 0.78, rng, 1)
    sheet = _Sheet(f)
    _ground(sheet)
    for x, y, radius, *_ in FLOWERS:
        _stem(sheet, x, y + 0.85 * radius, 0.42 + 0.35 * (x - 0.40))
    for x, y, turn, long, code in (
        (0.45, 0.70, 3.5, 0.18, "6faa6a"), (0.47, 0.72, 0.25, 0.24, "2f7a6a"),
        (0.40, 0.88, 2.9, 0.26, "5f9f5a"), (0.46, 0.90, -0.35, 0.27, "6f9f3f"),
        (0.40, 0.43, 3.6, 0.18, "5f9f6a"), (0.62, 0.33, -1.2, 0.16, "3f8f7a"),
        (0.33, 0.42, 1.9, 0.15, "86a84a"), (0.62, 0.56, 0.1, 0.17, "4f8f6f"),
        (0.16, 0.70, 2.2, 0.17, "5f9a4f"), (0.43, 0.16, -1.5, 0.13, "6faa8a"),
        (0.55, 0.80, 1.0, 0.19, "2f6f6a"), (0.30, 0.90, 1.9, 0.16, "7faa4f"),
    ):  # fmt: skip
        _leaf(sheet, np.array([x, y]), turn + rng.normal(0, 0.08), long, code)
    for spot in FLOWERS:
        _flower(sheet, spot)
    for code in ("e8487f", "5f86dc", "f0a238", "4f8f5a", "8f6fd0"):
        for _ in range(14):
            x, y = rng.uniform(0, f.aspect), rng.uniform(0, 1)
            _drop(sheet, x, y, 0.0016 + 0.006 * rng.random() ** 4, code, 0.7)
    light = to_linear(hex_lab("fbf7ee")) * np.exp(-sheet.absorbed)
    gy, gx = np.gradient(sheet.tooth)
    return finish(light * (1 + 0.035 * np.clip(gx + gy, -2, 2))[..., None], 1)
