"""OKLab, the gamut, and two pictures mixed."""

import numpy as np
import pytest
import torch
from helpers import picture

from styletransfer.pictures.color import (
    from_oklab,
    mixed,
    to_linear,
    to_oklab,
    to_srgb,
    with_chroma_of,
)


def every_17th() -> torch.Tensor:
    """Return 16^3 colours (3, 4096), 8-bit sRGB in float32, among them white and black."""
    steps = torch.arange(0, 256, 17, dtype=torch.float32) / 255
    return torch.cartesian_prod(steps, steps, steps).T.contiguous()


def lab_of(image: torch.Tensor) -> torch.Tensor:
    return to_oklab(image[0].flatten(1).double())


def unclipped(lab: torch.Tensor) -> np.ndarray:
    """Return linear sRGB (3, N), by Ottosson's formulas and NumPy alone."""
    m1 = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    m2 = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.linalg.solve(m1, np.linalg.solve(m2, lab.double().numpy()) ** 3)


# Conversions.


@pytest.mark.parametrize(
    ("srgb", "lab"),
    [  # CSS Color Module Level 4 gives these for its named colours.
        ((1.0, 1.0, 1.0), (1.0, 0.0, 0.0)),
        ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ((1.0, 0.0, 0.0), (0.62796, 0.22486, 0.12585)),
        ((0.0, 1.0, 0.0), (0.86644, -0.23389, 0.17950)),
        ((0.0, 0.0, 1.0), (0.45201, -0.03246, -0.31153)),
    ],
)
def test_known_colors(srgb, lab):
    found = to_oklab(torch.tensor(srgb, dtype=torch.float64)[:, None])
    assert torch.allclose(found[:, 0], torch.tensor(lab, dtype=torch.float64), atol=2e-5)


@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-8), (torch.float32, 3e-5)])
def test_there_and_back(dtype, error):
    colors = every_17th().to(dtype)
    assert (to_srgb(to_linear(colors)) - colors).abs().max() < error
    assert (from_oklab(to_oklab(colors)) - colors).abs().max() < error
    assert to_oklab(colors).dtype == from_oklab(colors).dtype == dtype


def test_the_formulas_are_ottossons():
    colors = every_17th().double()
    error = torch.from_numpy(unclipped(to_oklab(colors))) - to_linear(colors)
    assert error.abs().max() < 1e-12


def test_a_little_less_than_black_is_odd():
    """A resampled picture may hold it, and a power of it would be NaN."""
    dark = 0.04 * picture()[0].flatten(1)
    assert torch.allclose(to_oklab(-dark), -to_oklab(dark))


def test_every_8_bit_color_returns_to_itself():
    colors = every_17th()
    assert torch.equal((from_oklab(to_oklab(colors)) * 255).round(), (colors * 255).round())


def test_linear_light():
    greys = torch.tensor([0.0, 0.04045, 0.5, 1.0], dtype=torch.float64)
    expected = [0.0, 0.04045 / 12.92, (0.555 / 1.055) ** 2.4, 1.0]
    assert to_linear(greys).tolist() == pytest.approx(expected, rel=1e-12)


# The gamut.


def test_what_srgb_cannot_show_keeps_lightness_and_hue():
    generator = torch.Generator().manual_seed(0)
    lab = torch.rand(3, 500, generator=generator, dtype=torch.float64) - 0.5
    lab[0] = 0.55 + 0.9 * lab[0]  # below 0.1, sRGB is black to within rounding
    shown = from_oklab(lab)
    assert shown.min() >= 0
    assert shown.max() <= 1
    found = to_oklab(shown)
    linear = unclipped(lab)
    outside = torch.from_numpy(((linear < 0) | (linear > 1)).any(axis=0))
    assert 100 < outside.sum() < 500
    assert torch.allclose(found[:, ~outside], lab[:, ~outside], atol=1e-6)
    assert torch.allclose(found[0], lab[0], atol=2e-3)
    # The hue: a and b point where they did, and are shorter.
    share = found[1:].norm(dim=0) / lab[1:].norm(dim=0)
    assert torch.allclose(found[1:], share * lab[1:], atol=5e-3)
    assert (share[outside] < 1).all()
    # As long as can be: half a hundredth more chroma could not be shown.
    more = torch.cat([lab[:1], lab[1:] * (share + 0.01)])[:, outside]
    linear = unclipped(more)
    assert ((linear < 0) | (linear > 1)).any(axis=0).all()


def test_lightness_beyond_white_and_black():
    beyond = torch.tensor([[1.2, -0.2], [0.1, 0.1], [0.0, 0.0]], dtype=torch.float64)
    shown = from_oklab(beyond)
    assert torch.allclose(shown[:, 0], torch.ones(3, dtype=torch.float64), atol=1e-4)
    assert torch.allclose(shown[:, 1], torch.zeros(3, dtype=torch.float64), atol=1e-3)


# The content's chroma, the pastiche's lightness.


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_contents_chroma_is_kept_wherever_it_is_in_gamut(dtype):
    content, pastiche = (0.2 + 0.6 * picture(seed, 40, 50).to(dtype) for seed in (1, 2))
    kept = with_chroma_of(pastiche, content, 1.0)
    assert (kept.dtype, kept.shape) == (dtype, pastiche.shape)
    wanted = torch.cat([lab_of(pastiche)[:1], lab_of(content)[1:]])
    linear = unclipped(wanted)
    inside = torch.from_numpy(((linear >= 0) & (linear <= 1)).all(axis=0))
    assert 0.3 < inside.double().mean() < 0.99
    error = (lab_of(kept) - wanted).abs()
    assert error[1:, inside].max() < 1 / 255
    assert error[0].max() < 1 / 255


def test_strength_of_the_contents_chroma():
    content, pastiche = (0.4 + 0.2 * picture(seed) for seed in (1, 2))
    assert torch.equal(with_chroma_of(pastiche, content, 0.0), pastiche)
    half = lab_of(with_chroma_of(pastiche, content, 0.5))
    ends = torch.stack([lab_of(pastiche), lab_of(content)])
    assert torch.allclose(half[1:], ends.mean(dim=0)[1:], atol=1e-6)
    assert torch.allclose(half[0], ends[0, 0], atol=1e-6)


# Mixtures.


@pytest.mark.parametrize(("lightness", "color"), [(0.3, 0.3), (1.0, 0.25), (0.0, 1.0)])
def test_mixture(lightness, color):
    content, pastiche = (0.4 + 0.2 * picture(seed) for seed in (1, 2))
    found = lab_of(mixed(content, pastiche, lightness, color))
    start, end = lab_of(content), lab_of(pastiche)
    assert torch.allclose(found[0], start[0] + lightness * (end - start)[0], atol=1e-6)
    assert torch.allclose(found[1:], start[1:] + color * (end - start)[1:], atol=1e-6)


def test_the_ends_are_the_pictures_themselves():
    content, pastiche = picture(1), picture(2)
    assert mixed(content, pastiche, 0.0, 0.0) is content
    assert mixed(content, pastiche, 1.0, 1.0) is pastiche


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype, device):
    content, pastiche = (picture(seed).to(device, dtype) for seed in (1, 2))
    found = mixed(content, pastiche, 0.5, 0.5)
    assert (found.dtype, found.device.type) == (dtype, torch.device(device).type)
    exact = mixed(content.double(), pastiche.double(), 0.5, 0.5)
    assert (found.double() - exact).abs().max() < 0.01


def test_pictures_larger_than_a_strip_and_laid_out_otherwise():
    content, pastiche = (picture(seed, 600, 700) for seed in (1, 2))
    whole = mixed(content, pastiche, 0.2, 0.7)
    top = mixed(content[:, :, :300], pastiche[:, :, :300], 0.2, 0.7)
    assert torch.equal(whole[:, :, :300], top)
    turned = mixed(content.mT, pastiche.mT, 0.2, 0.7)
    assert torch.equal(turned.mT, whole)
    last = [each.contiguous(memory_format=torch.channels_last) for each in (content, pastiche)]
    assert torch.equal(mixed(*last, 0.2, 0.7), whole)
