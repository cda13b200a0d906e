"""The darks of a photograph stay dark, and no place is lighter than both style and photograph."""

import pytest
import torch
from helpers import job_with, picture, run_settings, tiny_network

from styletransfer.job.light import BLACK
from styletransfer.losses import LOSS_MODES
from styletransfer.objective.inputs import Inputs, Region, StylePart
from styletransfer.pictures.color import from_oklab, to_oklab

LEFT = (torch.arange(20)[None, None, None] < 10).expand(1, 1, 16, 20).double()
STROKES = 0.5 + 0.1 * picture(3, 16, 20)  # lightness from 0.6 to 0.7


def grey(light):
    """Return a plain grey image (1, 3, 16, 20) of that lightness in OKLab."""
    lab = torch.tensor([light, 0.0, 0.0], dtype=torch.float64)[:, None]
    return from_oklab(lab).view(1, 3, 1, 1).expand(1, 3, 16, 20).contiguous()


def finished(image, content, *styles, color="style_palette", strength=1.0, **inputs):
    """Return an image as a run finishes it."""
    config = run_settings(color=color, color_strength=strength)
    job = job_with(config, tiny_network(), LOSS_MODES["loss_attribute"], Inputs(content, styles))
    return job.colors.after(Inputs(content, styles, **inputs))(image)


def lab(image):
    return to_oklab(image[0].flatten(1))


def assert_scaled(made, image, factor):
    """Assert that each colour was multiplied by `factor` in OKLab."""
    torch.testing.assert_close(lab(made), factor * lab(image), rtol=1e-6, atol=1e-6)


def hues(darkest, lightest):
    """Return a style of several hues, so that no colour moves, of these lightnesses."""
    colors = to_oklab(picture(7, 16, 20)[0].flatten(1)) * torch.tensor([[0], [0.4], [0.4]])
    colors[0] = torch.linspace(darkest, lightest, 320)
    return from_oklab(colors).view(1, 3, 16, 20)


@pytest.fixture
def colored():
    return hues(0.5, 0.8)


@pytest.mark.parametrize(("light", "seen"), [(0.4, 0.4), (0.2, 0.2), (0.0, BLACK)])
@pytest.mark.parametrize("painted", [0.7, 0.45])
def test_a_dark_place_is_as_much_darker_as_the_photograph(light, seen, painted, colored):
    """A pastiche that is lighter than the style's darkest paint gets a smaller factor."""
    darkest, image = lab(colored)[0].sort().values[16], grey(painted)
    lighter, share = max(painted / darkest, 1), 1 - light / darkest
    made = finished(image, grey(light), colored)
    assert_scaled(made, image, seen / darkest / lighter**share)
    half = finished(image, grey(light), colored, strength=0.5)
    assert_scaled(half, image, (0.5 + 0.5 * seen / darkest) / lighter ** (share / 2))


def test_strokes_in_a_black_place_keep_their_contrast(colored):
    strokes = 0.5 + 0.3 * picture(3, 128, 160)
    made = finished(strokes, torch.zeros_like(strokes), colored)
    before, after = (lab(image)[0] for image in (strokes, made))
    assert after.mean().item() == pytest.approx(BLACK, rel=0.01)
    assert (after.std() / after.mean()).item() == pytest.approx(
        (before.std() / before.mean()).item(), rel=0.05
    )


def test_a_black_place_beside_a_light_one_has_no_seam(colored):
    """Only dark places count in the mean of the pastiche's lightness."""
    image = torch.where(LEFT > 0, grey(0.7), grey(0.9))
    made = finished(image, torch.where(LEFT > 0, grey(0.0), grey(0.6)), colored)
    torch.testing.assert_close(made[..., 1, :10], grey(BLACK)[..., 1, :10], rtol=0, atol=1e-3)


def test_places_for_which_the_style_has_paint_are_unchanged(colored):
    assert torch.equal(finished(STROKES, grey(0.6), colored), STROKES)


@pytest.mark.parametrize("color", ["style", "content_palette"])
def test_only_the_palette_of_the_style_brings_the_darks_back(color, colored):
    assert torch.equal(finished(STROKES, grey(0.0), colored, color=color), STROKES)


def tones(*lightnesses, tint=0.0):
    """Return a style (1, 3, 16, 20) of one hue, with equal areas of these lightnesses in OKLab."""
    light = torch.tensor(lightnesses, dtype=torch.float64).repeat_interleave(
        320 // len(lightnesses)
    )
    return from_oklab(torch.stack([light, tint * light, tint * light])).view(1, 3, 16, 20)


@pytest.mark.parametrize("tint", [0.0, 0.05])
def test_a_drawing_on_paper_shows_dark_places_in_its_own_lines(tint):
    for middle in (0.6, 0.7, 0.9):
        style = tones(0.5, 0.5, middle, middle, 0.9, tint=tint)
        made = finished(tones(0.5, tint=tint), grey(0.4), style)
        paper = min(max((middle / 0.9 - 0.7) / 0.15, 0), 1)
        assert lab(made)[0].mean().item() == pytest.approx(0.4 + 0.1 * paper, abs=1e-3)
    lighter = tones(0.6, tint=tint)
    assert lab(finished(lighter, grey(0.4), style))[0].mean() == pytest.approx(0.6, abs=1e-3)


@pytest.mark.parametrize("style", [hues(0.7, 0.7), tones(0.55)])
def test_a_plain_style_of_several_hues_or_without_pale_paper_is_no_drawing(style):
    darkest = lab(style)[0].mean().item()
    made = finished(grey(darkest), grey(0.4), style)
    assert lab(made)[0].mean().item() == pytest.approx(0.4, abs=1e-3)


@pytest.mark.parametrize("strength", [1.0, 0.5])
def test_a_drawing_beside_a_dark_print_stays_light(strength):
    regions = Region("a", LEFT, (StylePart(0),)), Region("b", 1 - LEFT, (StylePart(1),))
    styles = tones(0.5, 0.9, 0.9, 0.9), tones(0.5, 0.5, 0.5, 0.9)
    made = finished(grey(0.5), grey(0.4), *styles, regions=regions, strength=strength)
    light = lab(made)[0].view(16, 20)
    assert light[:, :10].mean().item() == pytest.approx(0.5, abs=1e-3)
    assert light[:, 10:].mean().item() == pytest.approx(0.5 - 0.1 * strength, abs=1e-3)


def test_paint_is_no_lighter_than_style_and_photograph(colored):
    for light, most in ((0.6, 0.8), (0.9, 0.9)):
        made = lab(finished(grey(1.0), grey(light), colored))[0]
        assert (made - most).abs().max() < 0.01


def test_each_region_has_its_own_paint_and_protection_holds(colored):
    regions = Region("a", LEFT, (StylePart(0),)), Region("b", 1 - LEFT, (StylePart(1),))
    made = finished(STROKES, grey(0.4), colored, hues(0.1, 0.9), regions=regions)
    assert torch.equal(made[..., 10:], STROKES[..., 10:])
    assert (made[..., :10] < STROKES[..., :10] - 0.05).all()
    kept = finished(STROKES, grey(0.4), colored, protected=LEFT)
    assert torch.equal(kept[..., :10], STROKES[..., :10])
    assert (kept[..., 10:] < STROKES[..., 10:] - 0.05).all()


def test_the_pastiche_of_a_coarser_scale_is_finished_too(colored):
    image = grey(0.7)
    made, half = (finished(one, grey(0.3), colored) for one in (image, image[..., ::2, ::2]))
    torch.testing.assert_close(half, made[..., ::2, ::2])
