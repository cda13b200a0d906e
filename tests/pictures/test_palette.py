"""A style in the content's palette."""

import pytest
import torch
from helpers import picture
from styletransfer.pictures.palette import recolored

from styletransfer.errors import UserError
from styletransfer.pictures.color import to_oklab
from styletransfer.pictures.images import Picture


def muted(seed: int, stretch: float = 0.3, **size: int) -> Picture:
    """Return noise in colours that no map leads out of the gamut."""
    noise = picture(seed, **size)
    mixture = torch.tensor([[1.0, 0.2, 0.1], [0.0, 0.8, 0.3], [0.4, 0.1, 0.5]], dtype=noise.dtype)
    return Picture(0.3 + stretch * torch.einsum("ij,njhw->nihw", mixture, noise) / 1.5)


def of_color(*srgb: float) -> Picture:
    return Picture(torch.tensor(srgb, dtype=torch.float64)[None, :, None, None].expand(1, 3, 9, 8))


def colors(image: Picture) -> torch.Tensor:
    return to_oklab(image.rgb[0].flatten(1))


def covariance(lab: torch.Tensor) -> torch.Tensor:
    return torch.cov(lab, correction=0)


def test_mean_and_covariance_are_the_contents():
    style, content = muted(1), muted(2, stretch=0.4, height=30, width=17)
    found = colors(recolored(style, content, 1.0))
    assert torch.allclose(found.mean(dim=1), colors(content).mean(dim=1), atol=1e-6)
    assert (covariance(colors(style)) - covariance(colors(content))).abs().max() > 1e-4
    assert torch.allclose(covariance(found), covariance(colors(content)), atol=1e-5)


def test_the_map_is_symmetric():
    """Of all maps that match both, only the Monge map is; it turns no hue more than it must."""
    style, content = muted(1), muted(2, stretch=0.5)
    before, after = (colors(each) for each in (style, recolored(style, content, 1.0)))
    centred = [each - each.mean(dim=1, keepdim=True) for each in (before, after)]
    matrix = torch.linalg.lstsq(centred[0].T, centred[1].T).solution
    assert torch.allclose(matrix, matrix.T, atol=1e-4)
    assert (torch.linalg.eigvalsh(matrix) > 0).all()


def test_strength():
    style, content = muted(1), muted(2, stretch=0.4)
    assert recolored(style, content, 0.0) is style
    ends = colors(style), colors(recolored(style, content, 1.0))
    half = colors(recolored(style, content, 0.5))
    assert torch.allclose(half, (ends[0] + ends[1]) / 2, atol=1e-6)


def test_its_own_palette_changes_nothing():
    style = Picture(picture(1))
    assert torch.allclose(recolored(style, style, 1.0).rgb, style.rgb, atol=1e-6)


def test_a_grey_style_stays_grey_around_the_contents_mean():
    grey = Picture(muted(1).rgb[:, :1].expand(1, 3, -1, -1))
    content = muted(2)
    found = colors(recolored(grey, content, 1.0))
    wanted = colors(content)
    assert torch.allclose(found.mean(dim=1), wanted.mean(dim=1), atol=1e-4)
    # All on one line, since a grey picture has no second direction.
    assert torch.linalg.matrix_rank(covariance(found), atol=1e-8) == 1


def test_pictures_of_one_color():
    teal = of_color(0.2, 0.5, 0.5)
    content = muted(2)
    flat = colors(recolored(teal, content, 1.0))
    assert torch.allclose(flat, colors(content).mean(dim=1, keepdim=True), atol=1e-6)
    found = colors(recolored(content, teal, 1.0))
    assert (found - colors(teal)[:, :1]).norm(dim=0).max() < 0.02


def test_only_visible_pixels_count():
    style, content = muted(1), muted(2, stretch=0.4)
    alpha = torch.ones_like(content.rgb[:, :1])
    alpha[..., :5] = 0.0
    hidden = content.rgb.clone()
    hidden[..., :5] = 1.0
    masked = recolored(style, Picture(hidden, alpha), 1.0)
    cropped = recolored(style, Picture(content.rgb[..., 5:]), 1.0)
    assert torch.allclose(masked.rgb, cropped.rgb, atol=1e-12)

    translucent = Picture(style.rgb, alpha)
    found = recolored(translucent, content, 1.0)
    assert found.alpha is alpha
    seen = to_oklab(found.rgb[0, :, :, 5:].flatten(1))
    assert torch.allclose(seen.mean(dim=1), colors(content).mean(dim=1), atol=1e-6)


def test_nothing_visible():
    invisible = Picture(picture(1), torch.zeros(1, 1, 16, 20), "ghost.png")
    with pytest.raises(UserError, match=r"^ghost\.png is fully transparent"):
        recolored(muted(1), invisible, 1.0)


def test_colors_stay_within_srgb():
    vivid, dark = Picture(picture(1).round()), Picture(0.2 * picture(2))
    found = recolored(dark, vivid, 1.0)
    assert found.rgb.isfinite().all()
    assert found.rgb.min() >= 0
    assert found.rgb.max() <= 1


def test_float32_pictures():
    style, content = (Picture(muted(seed).rgb.float()) for seed in (1, 2))
    found = recolored(style, content, 1.0)
    assert found.rgb.dtype == torch.float32
    exact = recolored(muted(1), muted(2), 1.0)
    assert torch.allclose(found.rgb.double(), exact.rgb, atol=1e-5)
