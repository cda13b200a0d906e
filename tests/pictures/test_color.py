"""OKLab, the gamut, mixtures of two pictures, and a style in the content's palette."""

import numpy as np
import pytest
import torch
from helpers import picture

from styletransfer.pictures.color import (
    from_oklab,
    mixed,
    recolored,
    to_grey,
    to_linear,
    to_oklab,
    to_srgb,
    with_chroma_of,
)
from styletransfer.pictures.images import Picture, is_grey


def lab_of(image):
    return to_oklab(image[0].flatten(1).double())


def unclipped(lab):
    """Return OKLab (3, N) as linear sRGB (3, N), by the inverse matrices of Ottosson's code."""
    m2 = [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728]]
    m2 += [[1, -0.0894841775, -1.2914855480]]
    m1 = [[4.0767416621, -3.3077115913, 0.2309699292], [-1.2684380046, 2.6097574011, -0.3413193965]]
    m1 += [[-0.0041960863, -0.7034186147, 1.7076147010]]
    return np.array(m1) @ (np.array(m2) @ lab.double().numpy()) ** 3


def test_known_colors():
    """The values are those of CSS Color Module Level 4 for named colours."""
    known = {
        (1.0, 1.0, 1.0): (1.0, 0.0, 0.0),
        (1.0, 0.0, 0.0): (0.62796, 0.22486, 0.12585),
        (0.0, 1.0, 0.0): (0.86644, -0.23389, 0.17950),
        (0.0, 0.0, 1.0): (0.45201, -0.03246, -0.31153),
    }
    lab = to_oklab(torch.tensor(list(known), dtype=torch.float64).T)
    assert (lab.T - torch.tensor(list(known.values()))).abs().max() < 2e-5
    greys = torch.tensor([0.0, 0.04045, 0.5, 1.0], dtype=torch.float64)
    expected = [0.0, 0.04045 / 12.92, (0.555 / 1.055) ** 2.4, 1.0]
    assert to_linear(greys).tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-8), (torch.float32, 3e-5)])
def test_there_and_back(dtype, error):
    steps = torch.arange(0, 256, 17, dtype=dtype) / 255
    colors = torch.cartesian_prod(steps, steps, steps).T.contiguous()
    assert (to_srgb(to_linear(colors)) - colors).abs().max() < error
    back = from_oklab(to_oklab(colors))
    assert (back - colors).abs().max() < error
    assert torch.equal((back * 255).round(), (colors * 255).round())
    assert to_oklab(colors).dtype == back.dtype == dtype
    # A resampled image may have values a little below 0, whose power would be NaN.
    dark = (0.04 * picture()[0].flatten(1)).to(dtype)
    assert torch.allclose(to_oklab(-dark), -to_oklab(dark))


def test_what_srgb_cannot_show_keeps_lightness_and_hue():
    lab = torch.rand(3, 500, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.5
    lab[0] = 0.55 + 0.9 * lab[0]  # below 0.1, sRGB is black to within rounding
    shown = from_oklab(lab)
    assert 0 <= shown.min() <= shown.max() <= 1
    found = to_oklab(shown)
    linear = unclipped(lab)
    outside = torch.from_numpy(((linear < 0) | (linear > 1)).any(axis=0))
    assert 100 < outside.sum() < 500
    assert (found - lab)[:, ~outside].abs().max() < 1e-6
    assert (found - lab)[0].abs().max() < 2e-3
    # The hue is kept: (a, b) has the same direction and is shorter.
    share = found[1:].norm(dim=0) / lab[1:].norm(dim=0)
    assert (found[1:] - share * lab[1:]).abs().max() < 5e-3
    assert (share[outside] < 1).all()
    # The chroma is the largest possible: with a share 0.01 larger, sRGB cannot show the colour.
    linear = unclipped(torch.cat([lab[:1], lab[1:] * (share + 0.01)])[:, outside])
    assert ((linear < 0) | (linear > 1)).any(axis=0).all()
    beyond = torch.tensor([[1.2, -0.2], [0.1, 0.1], [0.0, 0.0]], dtype=torch.float64)
    assert (from_oklab(beyond) - torch.tensor([[1.0, 0.0]] * 3)).abs().max() < 1e-3


def test_mixtures_and_their_ends(device):
    content, pastiche = (0.4 + 0.2 * picture(seed) for seed in (1, 2))
    start, end = lab_of(content), lab_of(pastiche)
    shares = ((0.3, 0.3), (1, 0.25), (0, 1))
    mixtures = {share: mixed(content, pastiche, *share) for share in shares}
    mixtures[1, 0.6] = with_chroma_of(pastiche, content, 0.4)
    for (lightness, color), mixture in mixtures.items():
        expected = torch.lerp(start, end, start.new_tensor([[lightness], [color], [color]]))
        assert (lab_of(mixture) - expected).abs().max() < 1e-6
    assert mixed(content, pastiche, 0.0, 0.0) is content
    assert mixed(content, pastiche, 1.0, 1.0) is pastiche
    assert with_chroma_of(pastiche, content, 0.0) is pastiche
    for dtype, error in ((torch.bfloat16, 0.01), (torch.float32, 1e-4)):
        mixture = mixed(content.to(device, dtype), pastiche.to(device, dtype), 0.3, 0.3)
        assert (mixture.dtype, mixture.device.type) == (dtype, torch.device(device).type)
        assert (mixture.cpu().double() - mixtures[0.3, 0.3]).abs().max() < error


def test_pictures_larger_than_a_strip_and_laid_out_otherwise(monkeypatch):
    content, pastiche = (0.4 + 0.2 * picture(seed, 30, 41).double() for seed in (1, 2))
    whole = mixed(content, pastiche, 0.2, 0.7)
    monkeypatch.setattr("styletransfer.pictures.color._STRIP", 700)
    last = [image.contiguous(memory_format=torch.channels_last) for image in (content, pastiche)]
    for layout in ((content, pastiche), last):
        assert (mixed(*layout, 0.2, 0.7) - whole).abs().max() < 1e-12
    assert (mixed(content.mT, pastiche.mT, 0.2, 0.7).mT - whole).abs().max() < 1e-12
    strips = recolored(Picture(pastiche), Picture(content), 1.0).rgb
    monkeypatch.undo()
    assert (recolored(Picture(pastiche), Picture(content), 1.0).rgb - strips).abs().max() < 1e-9


def muted(seed, stretch=0.3, **size):
    """Return noise in colours that stay in the gamut when mapped to another palette."""
    noise = picture(seed, **size).double()
    mixture = torch.tensor([[1.0, 0.2, 0.1], [0.0, 0.8, 0.3], [0.4, 0.1, 0.5]]).double()
    return Picture(0.3 + stretch * torch.einsum("ij,njhw->nihw", mixture, noise) / 1.5)


def moments(image):
    """Return the mean (3,) and covariance (3, 3) of an image's colours in OKLab."""
    lab = lab_of(image.rgb)
    return lab.mean(dim=1), torch.cov(lab, correction=0)


def test_mean_and_covariance_are_the_contents_by_the_monge_map():
    style, content = muted(1), muted(2, stretch=0.4, height=30, width=17)
    found = recolored(style, content, 1.0)
    torch.testing.assert_close(moments(found), moments(content), rtol=0, atol=1e-5)
    # Among all linear maps that match both moments, only the Monge map is symmetric and positive.
    before, after = (lab_of(image.rgb) for image in (style, found))
    centred = [lab - lab.mean(dim=1, keepdim=True) for lab in (before, after)]
    matrix = torch.linalg.lstsq(centred[0].T, centred[1].T).solution
    assert (matrix - matrix.T).abs().max() < 1e-4
    assert (torch.linalg.eigvalsh(matrix) > 0).all()
    # A strength between 0 and 1 interpolates linearly.
    assert recolored(style, content, 0.0) is style
    assert (lab_of(recolored(style, content, 0.5).rgb) - (before + after) / 2).abs().max() < 1e-6
    assert (recolored(style, style, 1.0).rgb - style.rgb).abs().max() < 1e-6
    exact = recolored(Picture(style.rgb.float()), content, 1.0).rgb
    assert exact.dtype == torch.float32
    assert (exact.double() - found.rgb).abs().max() < 1e-5


def test_pictures_of_one_color_and_in_grey():
    content, grey = muted(2), Picture(muted(1).rgb[:, :1].expand(1, 3, -1, -1))
    teal = Picture(torch.tensor([0.2, 0.5, 0.5]).double()[None, :, None, None].expand(1, 3, 9, 8))
    mean, _ = moments(content)
    flat = lab_of(recolored(teal, content, 1.0).rgb)
    assert (flat - mean[:, None]).abs().max() < 1e-6
    towards_teal = lab_of(recolored(content, teal, 1.0).rgb)
    assert (towards_teal - lab_of(teal.rgb)[:, :1]).norm(dim=0).max() < 0.02
    found = moments(recolored(grey, content, 1.0))
    assert (found[0] - mean).abs().max() < 1e-4
    assert torch.linalg.matrix_rank(found[1], atol=1e-8) == 1  # the colours lie on one line


def test_only_visible_pixels_count():
    style, content = muted(1), muted(2, stretch=0.4)
    alpha = torch.ones_like(content.rgb[:, :1])
    alpha[..., :5] = 0.0
    hidden = content.rgb.clone()
    hidden[..., :5] = 1.0
    masked = recolored(style, Picture(hidden, alpha), 1.0)
    cropped = recolored(style, Picture(content.rgb[..., 5:]), 1.0)
    assert (masked.rgb - cropped.rgb).abs().max() < 1e-12
    found = recolored(Picture(style.rgb, alpha), content, 1.0)
    assert found.alpha is alpha
    visible = moments(Picture(found.rgb[..., 5:]))[0]
    assert (visible - moments(content)[0]).abs().max() < 1e-6
    vivid = recolored(Picture(0.2 * picture(2)), Picture(picture(1).round()), 1.0).rgb
    assert 0 <= vivid.min() <= vivid.max() <= 1  # and none is NaN


def test_grey_keeps_luminance_and_is_told_from_colour():
    """The luminance of sRGB red is 0.2126; sRGB grey of this luminance is 0.4984."""
    red, grey = (
        torch.tensor(x).view(1, 3, 1, 1).expand(1, 3, 4, 5) for x in ((1.0, 0, 0), (0.3,) * 3)
    )
    assert (to_grey(red) - 0.4984).abs().max() < 1e-4
    assert (to_grey(grey) - grey).abs().max() < 1e-6
    assert torch.equal(*to_grey(red)[:, :2].unbind(1))  # all channels are equal
    assert is_grey([grey, grey + torch.tensor([0, 2 / 255, 0]).view(1, 3, 1, 1)])
    assert not is_grey([grey, red])
