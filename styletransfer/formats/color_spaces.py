"""Colour spaces that a picture or film can state without an ICC profile; conversion to sRGB.

A colour space is a curve and primaries. The curve turns samples into linear light. A matrix turns
light of these primaries into light of the sRGB primaries. HDR (PQ and HLG) has light brighter than
white paper, the reference white. A tone mapping brings this light into [0, 1].
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Curve = Callable[[Floats], Floats]
Primaries = tuple[float, ...]
"""The chromaticities x, y of red, green, blue and white, in this order: eight numbers."""

_D65, _C, _E, _DCI = (0.3127, 0.3290), (0.310, 0.316), (1 / 3, 1 / 3), (0.314, 0.351)
SRGB: Primaries = (0.64, 0.33, 0.30, 0.60, 0.15, 0.06, *_D65)
ADOBE_RGB: Primaries = (0.64, 0.33, 0.21, 0.71, 0.15, 0.06, *_D65)  # Adobe RGB (1998), § 4.3.1.1
_P3 = (0.680, 0.320, 0.265, 0.690, 0.150, 0.060)
# Files store rounded chromaticities: those within _ROUNDING of sRGB's count as sRGB's.
_ROUNDING = 0.002
# Light of white paper in HDR (ITU-R BT.2408, "HDR reference white"): in PQ, 203 cd/m2; in HLG, the
# light of a sample of 0.75, as a fraction of the brightest light.
_WHITE_PQ, _WHITE_HLG = 203.0, 0.26496
_KNEE = 0.8  # tone mapping changes only HDR light above this value; white paper is 1
# Bradford's matrix, from XYZ to the responses of cones (Lindbloom, "Chromatic Adaptation").
_CONES = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])


def gamma(exponent: float) -> Curve:
    """Return the curve light = sample ** exponent."""
    return lambda values: values**exponent


def srgb(values: Any, where: Any = np.where) -> Any:
    """Return the linear light of sRGB samples (IEC 61966-2-1); for tensors, pass torch.where."""
    return where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def srgb_samples(light: Any, where: Any = np.where) -> Any:
    """Return the sRGB samples of linear light in [0, 1]; for tensors, pass torch.where."""
    return where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)


def _pq(values: Floats) -> Floats:
    """Return the linear light of PQ samples (SMPTE ST 2084, equation 4): 1 for white paper."""
    root = values ** (1.0 / 78.84375)
    light = np.maximum(root - 0.8359375, 0.0) / (18.8515625 - 18.6875 * root)
    nits: Floats = 10000.0 * light ** (1.0 / 0.1593017578125)
    return nits / _WHITE_PQ


def _hlg(values: Floats) -> Floats:
    """Return the linear light of HLG samples (ITU-R BT.2100, table 5): 1 for white paper.

    HLG adapts to a screen by a system gamma, 1.2 + 0.42 log10(peak / 1000 cd/m2). Here this gamma
    is 1, as for a screen with the usual peak of 334 cd/m2, so light is shown as it was recorded.
    """
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    bright = (np.exp((values - c) / a) + b) / 12.0
    return np.where(values <= 0.5, values**2 / 3.0, bright) / _WHITE_HLG


# Code in ITU-T H.273, table 2 -> primaries. PNG (chunk cICP), AVIF and HEIF (box nclx) and films
# state these codes. The code 2 means "unspecified" and is read as sRGB.
_CICP_PRIMARIES: dict[int, Primaries] = {
    1: SRGB,
    2: SRGB,
    4: (0.67, 0.33, 0.21, 0.71, 0.14, 0.08, *_C),
    5: (0.64, 0.33, 0.29, 0.60, 0.15, 0.06, *_D65),
    6: (0.630, 0.340, 0.310, 0.595, 0.155, 0.070, *_D65),
    7: (0.630, 0.340, 0.310, 0.595, 0.155, 0.070, *_D65),
    8: (0.681, 0.319, 0.243, 0.692, 0.145, 0.049, *_C),
    9: (0.708, 0.292, 0.170, 0.797, 0.131, 0.046, *_D65),
    10: (1.0, 0.0, 0.0, 1.0, 0.0, 0.0, *_E),
    11: (*_P3, *_DCI),
    12: (*_P3, *_D65),
    22: (0.630, 0.340, 0.295, 0.605, 0.155, 0.077, *_D65),
}
# Code in ITU-T H.273, table 3 -> transfer curve. BT.709, BT.601, BT.2020 and xvYCC define a curve
# for cameras, but screens, players and browsers show their samples as sRGB, and so does this table.
# Other codes are refused, because today's files do not state them.
_CICP_CURVES: dict[int, Curve] = {
    **dict.fromkeys((1, 2, 6, 11, 12, 13, 14, 15), srgb),
    8: gamma(1.0),
    16: _pq,
    18: _hlg,
}


class UnknownColorsError(Exception):
    """Raised if stated colours cannot be converted to sRGB; the message names these colours."""


@dataclass(frozen=True)
class ColorSpace:
    """A `ColorSpace` says which colours the RGB or grey samples of a picture or film mean."""

    primaries: Primaries = SRGB
    curve: Curve = srgb

    @property
    def is_srgb(self) -> bool:
        """Whether samples are already sRGB; small differences of primaries count as rounding."""
        near = np.abs(np.subtract(self.primaries, SRGB)).max() <= _ROUNDING
        return bool(near and self.curve is srgb)

    def srgb_of(self, samples: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.float32]:
        """Convert samples (H, W, 1 or 3), uint8 or uint16, to sRGB (H, W, 3) in [0, 1].

        Colours outside of sRGB are clipped, as an ICC conversion with relative colorimetry does.
        """
        deep = samples if samples.dtype == np.uint16 else samples * np.uint16(257)
        light = self._light_of_samples[deep]
        if self.curve in (_pq, _hlg):
            light = _tone_mapped(light)
        light = light @ self._matrix if light.shape[2] == 3 else light
        values: NDArray[np.float32] = srgb_samples(light.clip(0.0, 1.0)).astype(np.float32)
        return values if values.shape[2] == 3 else values.repeat(3, axis=2)

    @cached_property
    def _light_of_samples(self) -> Floats:
        """The linear light of every possible 16-bit sample, as a table (65536,)."""
        return self.curve(np.linspace(0.0, 1.0, 2**16)).astype(np.float32)

    @cached_property
    def _matrix(self) -> Floats:
        """The matrix (3, 3) that converts light to sRGB's primaries: light (..., 3) @ matrix."""
        forward = np.linalg.inv(_xyz(SRGB)) @ _adaptation(self.primaries[6:]) @ _xyz(self.primaries)
        return forward.T.astype(np.float32)


def _tone_mapped(light: Floats) -> Floats:
    """Map HDR light (H, W, 1 or 3), in which white paper is 1, to [0, 1].

    The largest channel m of a pixel stays as it is up to the knee k. Above the knee, with
    x = (m - k) / (1 - k), it becomes k + (1 - k) x / (1 + x), the curve of Reinhard et al. 2002,
    "Photographic Tone Reproduction for Digital Images", equation 3, for the part above the knee.
    The curve is smooth at the knee, and does not depend on a picture's or frame's brightest light.
    The other channels are multiplied by the same factor, which keeps hue and saturation.
    """
    most = light.max(axis=2, keepdims=True)
    above = np.maximum(most - _KNEE, 0.0) / (1.0 - _KNEE)
    mapped = _KNEE + (1.0 - _KNEE) * above / (1.0 + above)
    return np.where(most > _KNEE, light * (mapped / np.maximum(most, _KNEE)), light)


@cache
def by_cicp(primaries: int, transfer: int) -> ColorSpace | None:
    """Return the colour space of two codes of ITU-T H.273; None if both mean "unspecified".

    PNG has the codes in its chunk cICP, AVIF and HEIF in a box nclx, films in each stream.
    (UnknownColorsError if a code has no conversion.)
    """
    if primaries == transfer == 2:
        return None
    try:
        return ColorSpace(_CICP_PRIMARIES[primaries], _CICP_CURVES[transfer])
    except KeyError:
        raise UnknownColorsError(
            f"primaries {primaries} and transfer {transfer} of H.273"
        ) from None


def by_chromaticities(primaries: Primaries, curve: Curve) -> ColorSpace:
    """Return the colour space (UnknownColorsError if the primaries' matrix has no inverse)."""
    try:
        if not np.isfinite(np.linalg.inv(_xyz(primaries))).all():
            raise ValueError
    except (ValueError, ZeroDivisionError, np.linalg.LinAlgError):
        raise UnknownColorsError(f"chromaticities {primaries}") from None
    return ColorSpace(primaries, curve)


def _white(x: float, y: float) -> Floats:
    """Return the XYZ of a white with the chromaticity (x, y) and the luminance 1."""
    return np.array([x / y, 1.0, (1.0 - x - y) / y])


def _xyz(primaries: Primaries) -> Floats:
    """Return the matrix (3, 3) from RGB to XYZ (Lindbloom, "RGB/XYZ Matrices")."""
    xy = np.reshape(primaries[:6], (3, 2))
    columns = np.vstack([xy.T, 1.0 - xy.sum(axis=1)])
    scale: Floats = np.linalg.solve(columns, _white(*primaries[6:8]))
    return columns * scale


def _adaptation(white: Primaries) -> Floats:
    """Return Bradford's matrix (3, 3), which adapts XYZ values from `white` to the white D65."""
    before, after = _CONES @ _white(*white), _CONES @ _white(*_D65)
    adapted: Floats = np.linalg.inv(_CONES) @ np.diag(after / before) @ _CONES
    return adapted
