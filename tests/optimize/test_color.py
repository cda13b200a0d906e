"""`color=`: whose colours a pastiche has, in every loss mode, tiled, stopped and resumed."""

from dataclasses import replace

import pytest
import torch
from helpers import MODES, picture, run_settings, tiny_network

from styletransfer.job.job import Job
from styletransfer.job.load import load
from styletransfer.modes import get_loss_mode
from styletransfer.objective.inputs import pair
from styletransfer.optimize.run import Run, complete_run
from styletransfer.pictures import images
from styletransfer.pictures.color import recolored, to_oklab, with_chroma_of
from styletransfer.pictures.images import Picture, resize
from styletransfer.runs.watchers import StepPictures

CONTENT = 0.3 + 0.4 * picture(1)


def job_of(mode="autograd_function", strength=1.0, **settings):
    settings = {"steps": 4, "scales": 2, "init": "noise", "color_strength": strength} | settings
    pictures = pair(CONTENT, picture(2, 18, 14))
    return Job(run_settings(**settings), tiny_network(), get_loss_mode(mode), pictures)


# content_luminance.


@pytest.mark.parametrize(("mode", "strength"), list(zip(MODES, (0.0, 0.5, 1.0), strict=True)))
def test_the_contents_colors_under_the_pastiches_lightness(mode, strength):
    plain = complete_run(job_of(mode))
    colored = complete_run(job_of(mode, strength, color="content_luminance"))
    # What is optimised stays, and so do its losses.
    assert torch.equal(colored.image, plain.image)
    assert colored.losses == plain.losses
    assert torch.equal(plain.picture, plain.image)
    assert torch.equal(colored.picture, with_chroma_of(plain.image, CONTENT.float(), strength))
    assert torch.equal(colored.picture, plain.picture) == (strength == 0)


def test_every_iterate_snapshot_and_early_result_has_these_colors(tmp_path):
    run, snapshots = Run(job_of(color="content_luminance")), StepPictures(tmp_path, 1)
    for iterate in run:
        content = resize(CONTENT, tuple(iterate.image.shape[2:]))
        expected = with_chroma_of(iterate.image, content, 1.0)
        assert torch.equal(iterate.picture, expected)
        snapshots(iterate)
        saved = images.read(tmp_path / f"step_{iterate.step:05d}.png").rgb
        assert (saved - expected).abs().max() <= 0.5 / 255 + 1e-6
        early = run.result()
        assert torch.equal(early.picture, with_chroma_of(early.image, CONTENT.float(), 1.0))


# content_palette.


def given(**pictures):
    return {name: Picture(rgb.float(), name=name) for name, rgb in pictures.items()}


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_styles_are_recolored_where_they_are_loaded(strength):
    files = given(content=CONTENT, style=picture(2, 18, 14), style_detail=picture(3, 12, 20))
    config = run_settings(size=20)
    plain = load(config, files).pictures
    for color in ("content_luminance", "content_palette"):
        config = replace(config, color=color, color_strength=strength)
        found = load(config, files).pictures
        assert torch.equal(found.content, plain.content)
        for before, after in zip(plain.styles, found.styles, strict=True):
            recoloured = recolored(Picture(before), Picture(plain.content), strength).rgb
            assert torch.equal(after, recoloured if color == "content_palette" else before)
            assert not torch.equal(recoloured, before)


def test_a_palette_is_that_of_visible_pixels():
    """Of the content, and of the style."""
    alpha, files = torch.ones(1, 1, 16, 20), given(content=CONTENT, style=picture(2))
    alpha[..., :10] = 0.0
    half = {name: replace(image, alpha=alpha) for name, image in files.items()}
    shown = {name: replace(image, rgb=image.rgb[..., 10:]) for name, image in files.items()}
    config = run_settings(size=20, color="content_palette")
    found = (load(config, half), load(replace(config, size=16), shown))
    styles = (each.pictures.styles[0][0].flatten(1) for each in found)
    hidden, cropped = (to_oklab(style.double()).mean(dim=1) for style in styles)
    assert (hidden - cropped).abs().max() < 0.01
