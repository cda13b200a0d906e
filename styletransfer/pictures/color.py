"""Colour spaces (sRGB, linear light, OKLab), mixtures of two pictures, and palette matching.

OKLab separates lightness L from colour (a, b); equal distances in it look about equally large:
Björn Ottosson, "A perceptual color space for image processing", 2020,
https://bottosson.github.io/posts/oklab. Functions that convert colours take and return floats
of shape (3, N).
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from styletransfer.formats import color_spaces
from styletransfer.pictures.images import Picture, resize, size_of
from styletransfer.system.devices import at_a_time

# Matrices of Ottosson 2020, with the digits of his C++ code. _CONES maps linear sRGB to the eye's
# cone responses; _LAB maps their cube roots to L, a, b. The inverses are computed, so that a
# conversion to OKLab and back is exact.
_CONES = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
_LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]
_TO_CONES, _TO_LAB = (torch.tensor(x, dtype=torch.float64) for x in (_CONES, _LAB))
_FROM_CONES, _FROM_LAB = torch.linalg.inv(_TO_CONES), torch.linalg.inv(_TO_LAB)

_ROUNDING = 1e-5  # a colour may be outside [0, 1] by this error of float32, in linear light
_HALVINGS = 12  # bisection steps in the search for the largest chroma
# _STRIP: number of pixels converted at once on the CPU, so that intermediate results need little
# memory. _VALUES: numbers in memory for each pixel: about eight colours (8 x 3) in `from_oklab`.
_STRIP, _VALUES = 2**18, 24
# Added to every variance, because variances of 0, as in a grey picture, have no inverse. The value
# is from the authors' code for Gatys et al. 2016, "Preserving Color in Neural Artistic Style
# Transfer", arXiv:1606.05897. In OKLab it is a standard deviation of 0.003, which is invisible.
LEAST_VARIANCE = 1e-5
# Limits, in OKLab, of the distance that `monochrome` measures: up to ONE_HUE a picture has one hue,
# from HUES on it has several hues. The distance is at most 0.01 in drawings and prints in one ink,
# even on yellowed paper, and at least 0.02 in photographs and paintings with few colours.
ONE_HUE, HUES = 0.01, 0.02


LUMINANCE = (0.2126, 0.7152, 0.0722)  # weights of red, green and blue in ITU-R BT.709

# Mean (3, 1) and covariance (3, 3) of the colours of a picture in OKLab, float64, on the CPU.
Palette = tuple[Tensor, Tensor]


# Linear light for sRGB values, and sRGB values for linear light, all in [0, 1].
to_linear: Callable[[Tensor], Tensor] = partial(color_spaces.srgb, where=torch.where)
to_srgb: Callable[[Tensor], Tensor] = partial(color_spaces.srgb_samples, where=torch.where)


def to_oklab(srgb: Tensor) -> Tensor:
    """Convert sRGB (3, N) in [0, 1] to OKLab (3, N), whose rows are L in [0, 1], a and b."""
    cones = _times(_TO_CONES, to_linear(srgb))
    return _times(_TO_LAB, cones.sign() * cones.abs().pow(1 / 3))


def from_oklab(lab: Tensor) -> Tensor:
    """Convert OKLab (3, N) to sRGB (3, N) in [0, 1].

    A colour that sRGB cannot show keeps its lightness and hue and gets the largest chroma that can
    be shown; clamping the channels to [0, 1] would change the hue.
    """
    linear = _linear(lab)
    outside = ~_shows(linear)
    if outside.any():
        linear[:, outside] = _linear(_with_less_chroma(lab[:, outside]))
    return to_srgb(linear.clamp_(0.0, 1.0))


def lightness(image: Tensor) -> Tensor:
    """Return the lightness L of OKLab (1, 1, H, W) of an image (1, 3, H, W), sRGB in [0, 1]."""
    result = image.new_empty(1, 1, *size_of(image))
    return by_strips(lambda srgb, _: to_oklab(srgb)[:1], image, result)


def mixed(content: Tensor, pastiche: Tensor, lightness: float, color: float) -> Tensor:
    """Return a mix, in OKLab, of content image and pastiche (1, 3, H, W), sRGB in [0, 1].

    `lightness` and `color` are the pastiche's weights in L and in (a, b), 0 to 1; the rest is the
    content's. If both are 0 or both are 1, the content or the pastiche itself is returned.
    """
    if lightness == color and color in (0.0, 1.0):
        return pastiche if color == 1.0 else content

    def mix(below: Tensor, above: Tensor) -> Tensor:
        start, end = to_oklab(below), to_oklab(above)
        shares = start.new_tensor([lightness, color, color])[:, None]
        return from_oklab(torch.lerp(start, end, shares))

    return by_strips(mix, content, pastiche)


def with_chroma_of(pastiche: Tensor, content: Tensor, strength: float) -> Tensor:
    """Return the pastiche with the content's a and b (OKLab) mixed in by `strength`, 0 to 1."""
    return mixed(content, pastiche, 1.0, 1.0 - strength)


def to_grey(image: Tensor) -> Tensor:
    """Make an sRGB image (1, 3, H, W) grey; each pixel keeps its luminance (ITU-R BT.709)."""
    weights = torch.tensor(LUMINANCE)[:, None]
    return by_strips(
        lambda srgb: to_srgb((weights.to(srgb) * to_linear(srgb)).sum(0, keepdim=True)), image
    )


def in_colors(
    pastiche: Tensor, content: Tensor, color: str, strength: float, *, grey: bool
) -> Tensor:
    """Return the pastiche (1, 3, H, W), recoloured if color=content_luminance, or if `grey`.

    For color=content_luminance, `strength` is the weight of the chroma of the content (1, 3, h, w).
    With `grey` (all pictures of the job are grey), the result is grey for every `color`.
    """
    if grey:
        return to_grey(pastiche)
    if color != "content_luminance":
        return pastiche
    content = resize(content, size_of(pastiche))
    return with_chroma_of(pastiche, content.to(pastiche), strength)


def recolored(style: Picture, content: Picture, strength: float) -> Picture:
    """Recolour the style image towards the content's palette; `strength` is as in `in_palette`."""
    if strength == 0.0:
        return style
    start, end = (palette([(1.0, each.rgb, each.alpha)]) for each in (style, content))
    return replace(style, rgb=in_palette(style.rgb, start, end, strength))


def in_palette(
    image: Tensor, start: Palette, end: Palette, strength: float, *, keep_light: bool = False
) -> Tensor:
    """Return `image` (1, 3, H, W), recoloured from the palette `start` towards the palette `end`.

    `strength` is from 0 (no change) to 1 (palette `end`). With `keep_light` each pixel keeps its
    lightness, and only a and b of OKLab change.

    The Monge map between normal distributions is the smallest change that matches mean and
    covariance. With means m and covariances C of `start` (s) and `end` (e), it maps a colour x in
    OKLab to

        x' = A (x - m_s) + m_e
        A = C_s^(-1/2) (C_s^(1/2) C_e C_s^(1/2))^(1/2) C_s^(-1/2)

    (Gatys et al. 2016, arXiv:1606.05897; Olkin and Pukelsheim 1982).
    """
    change = torch.lerp(torch.eye(3, dtype=torch.float64), monge(start[1], end[1]), strength)
    mean = torch.lerp(start[0], end[0], strength)

    def move(srgb: Tensor) -> Tensor:
        before = to_oklab(srgb)
        lab = (change @ (before.cpu().double() - start[0]) + mean).to(srgb)
        if keep_light:
            lab[0] = before[0]
        return from_oklab(lab)

    return by_strips(move, image)


def by_strips(function: Callable[..., Tensor], *images: Tensor) -> Tensor:
    """Apply `function` to images (1, C, H, W), to a strip (C, N) of N pixels at a time.

    The result has the shape of the last image.
    """
    result = torch.empty_like(images[-1], memory_format=torch.contiguous_format)
    for strip, *parts in zip(_split(result), *map(_strips, images), strict=True):
        strip.copy_(function(*parts))
    return result


def _split(image: Tensor) -> tuple[Tensor, ...]:
    """Split the pixels of (1, C, H, W) into strips (C, N): views, if the image is contiguous."""
    size = at_a_time(_STRIP, image.device, _VALUES)
    return torch.split(image.reshape(image.shape[1], -1), size, dim=1)


def _strips(image: Tensor) -> Iterator[Tensor]:
    """Yield the pixels of (1, C, H, W) in strips (C, N) of float32 or float64."""
    for strip in _split(image):
        yield strip if strip.dtype == torch.float64 else strip.float()


def _linear(lab: Tensor) -> Tensor:
    """Convert OKLab to linear light (3, N); sRGB cannot show colours with values outside [0, 1]."""
    return _times(_FROM_CONES, _times(_FROM_LAB, lab).pow(3))


def _shows(linear: Tensor) -> Tensor:
    """Return a bool mask (N,) of the colours that sRGB can show."""
    return ((linear >= -_ROUNDING) & (linear <= 1.0 + _ROUNDING)).all(dim=0)


def _with_less_chroma(lab: Tensor) -> Tensor:
    """Reduce the chroma of OKLab colours (3, N) until sRGB can show them; L and hue stay."""
    lightness, chroma = lab[:1], lab[1:]
    low = torch.zeros_like(lightness)
    high = torch.ones_like(lightness)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = _shows(_linear(torch.cat([lightness, middle * chroma])))
        low, high = torch.where(fits, middle, low), torch.where(fits, high, middle)
    return torch.cat([lightness, low * chroma])


def _times(matrix: Tensor, colors: Tensor) -> Tensor:
    """Return (3, 3) times (3, N) without a matrix product, which a GPU may round to TF32."""
    return (matrix.to(colors)[:, :, None] * colors).sum(dim=1)


def palette(parts: Iterable[tuple[float, Tensor, Tensor | None]]) -> Palette:
    """Return mean (3, 1) and covariance (3, 3) of the colours of pictures, in OKLab, float64.

    Each part is (weight of the picture, above 0; the picture (1, 3, H, W); weights (1, 1, H, W) of
    its pixels, with a sum above 0, or None for equal weights).
    """
    shares = first = second = torch.zeros((), dtype=torch.float64)
    for share, image, weights in parts:
        weights = torch.ones_like(image[:, :1]) if weights is None else weights
        part = share / weights.cpu().double().sum()
        for srgb, seen in zip(_strips(image), _strips(weights), strict=True):
            lab, weight = to_oklab(srgb.cpu().double()), part * seen.cpu().double()
            first = first + (weight * lab).sum(dim=1, keepdim=True)
            second = second + (weight * lab) @ lab.T
        shares = shares + share
    mean = first / shares
    return mean, second / shares - mean @ mean.T


def monochrome(colors: Palette) -> float:
    """Return how nearly a palette has one hue, as in a sepia print: 1 for one, 0 for several.

    The result depends on the root mean square distance, in (a, b) of OKLab, between the colours and
    the best linear function of their lightness. It is 1 for distances up to ONE_HUE, 0 from HUES
    on, and linear in between.
    """
    covariance = colors[1] + LEAST_VARIANCE**2 * torch.eye(3, dtype=torch.float64)
    with_light = covariance[1:, 0]
    rest = covariance[1:, 1:].trace() - with_light @ with_light / covariance[0, 0]
    distance = math.sqrt(max(0.0, float(rest)))
    return min(1.0, max(0.0, (HUES - distance) / (HUES - ONE_HUE)))


def monge(start: Tensor, end: Tensor) -> Tensor:
    """Return the symmetric matrix A (3, 3) with A start A = end, for covariances start and end.

    LEAST_VARIANCE times the identity matrix is first added to both covariances.
    """
    least = LEAST_VARIANCE * torch.eye(3, dtype=torch.float64)
    root, inverse = _power(start + least, 0.5), _power(start + least, -0.5)
    return inverse @ _power(root @ (end + least) @ root, 0.5) @ inverse


def _power(matrix: Tensor, exponent: float) -> Tensor:
    """Return a power of a symmetric positive definite matrix."""
    values, vectors = torch.linalg.eigh(matrix)
    power: Tensor = (vectors * values.pow(exponent)) @ vectors.T
    return power
