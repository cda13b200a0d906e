"""Runs: scales, starts, protected pixels, and every way in which a run can end."""

import re
from dataclasses import replace

import pytest
import torch
from helpers import (
    MODES,
    Bowl,
    check_error,
    job_with,
    layers,
    loaded,
    make_objective,
    picture,
    run_settings,
    tiny_network,
    with_bowl,
)

from styletransfer.job import memory
from styletransfer.job.job import Start
from styletransfer.job.prepare import prepare
from styletransfer.job.scales import longer_sides
from styletransfer.losses import LOSS_MODES
from styletransfer.objective.inputs import Inputs, Region, StylePart, pair
from styletransfer.optimize.run import Run
from styletransfer.pictures.color import recolored, to_oklab, with_chroma_of
from styletransfer.pictures.images import Picture, resize, scaled_size
from styletransfer.settings import FeaturesConfig, TrainConfig

CURVES = {
    "lbfgs": [1.62340076513, 0.924868779995, 0.302619870115, 0.236890270209, 0.210566576186],
    "adam": [1.62340066125, 0.530692687514, 0.191739802937, 0.161215841711, 0.202180173619],
}
OPTIMIZERS = ["lbfgs", "adam"]
MODE = LOSS_MODES["loss_attribute"]
CONTENT = 0.3 + 0.4 * picture(1)


def run(config, content, style, network=None, mode=MODE, start=None):
    """Run a job; return the result and the iterates."""
    iterates = []
    pictures = replace(pair(content, style), start=start)
    job = job_with(config, network or tiny_network(), mode, pictures)
    work = Run(job)
    iterates.extend(work)
    return work.result(), iterates


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_adams_moments_alone_go_to_the_next_scale(optimizer, content, style):
    settings = run_settings(size=20, steps=4, scales=2, optimizer=optimizer)
    job = job_with(settings, tiny_network(), MODE, pair(content, style))
    work = Run(job)
    steps = iter(work)
    assert [next(steps).scale for _ in range(3)] == [1, 1, 2]
    assert (work.state_dict()["momentum"] is not None) == (optimizer == "adam")


@pytest.mark.parametrize("size", [9, 20, 33])
def test_scales_follow_one_another(size, content, style):
    before = content.clone(), style.clone()
    result, iterates = run(run_settings(size=size, steps=8, scales=3), content, style)
    assert result.steps == 8
    assert [i.step for i in iterates] == list(range(1, 9))
    assert [i.scale for i in iterates] == [1, 1, 2, 2, 2, 3, 3, 3]
    assert {(i.steps, i.scales) for i in iterates} == {(8, 3)}
    shapes = [scaled_size((16, 20), side) for side in longer_sides(size, 3, 8)]
    assert [tuple(i.image.shape[2:]) for i in iterates] == [shapes[i.scale - 1] for i in iterates]
    assert result.image.shape == (1, 3, *scaled_size((16, 20), size))
    assert (result.image.dtype, result.image.device.type) == (torch.float32, "cpu")
    # The caller's images are unchanged.
    assert torch.equal(content, before[0])
    assert torch.equal(style, before[1])


def test_each_scale_starts_from_the_last(content, style):
    _, iterates = run(run_settings(size=20, steps=6, scales=2, init="style"), content, style)
    coarse, _ = run(run_settings(size=10, steps=3, init="style"), content, style)
    expected = Start("style", 0).enlarged(coarse.image, style.float(), (16, 20))
    assert torch.allclose(iterates[3].image.float(), expected, atol=1e-6)


def test_starts(content, style):
    def first(**settings):
        start = settings.pop("start", None)
        return run(run_settings(steps=1, **settings), content, style, start=start)[1][0].image

    assert torch.equal(first(init="content"), content)
    assert torch.equal(first(init="style"), resize(style, (16, 20)))
    given = picture(seed=9, height=8, width=8)
    assert torch.equal(first(init="noise", start=given), resize(given, (16, 20)))
    one, again, other = (first(init="noise", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert abs(one.mean() - 0.5) < 0.05


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_the_losses_of_every_step_are_as_ever(mode, optimizer, content, style):
    """The seeds are fixed; a run has five steps in float64."""
    result, iterates = run(run_settings(optimizer), content, style, mode=LOSS_MODES[mode])
    assert [float(i.losses.total) for i in iterates] == pytest.approx(CURVES[optimizer], rel=1e-6)
    # The result's losses are those at the result's image.
    objective = make_objective(mode, tiny_network(), content, resize(style, (20, 16)))
    again = objective.evaluate(result.image.double().requires_grad_()).as_floats()
    assert result.losses == pytest.approx(again, rel=1e-4)
    assert result.problem is None


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_protected_pixels_stay_and_grey_ones_are_mixtures(optimizer, content, style, monkeypatch):
    """A partly protected pixel is a mixture; its gradient is multiplied by the free share."""
    protected = torch.linspace(0, 1, 20, dtype=torch.float64).expand(1, 1, 16, 20)
    pictures = replace(pair(content, style), protected=protected)
    bowl = with_bowl(monkeypatch, Bowl(1 - content))
    job = job_with(run_settings(optimizer, steps=30, init="noise"), tiny_network(), MODE, pictures)
    result = Run(job).complete()
    for point in (*bowl.points, result.image, Run(job).result().image):
        assert torch.equal(point[..., -1], content[..., -1].to(point))
        assert ((point - content).abs() <= (1 - protected) + 1e-6).all()
    # Pixels with little protection are near the target.
    assert (result.image - bowl.target)[..., :5].abs().mean() < 0.2


def test_a_run_that_is_left_has_a_picture_of_full_size(content, style):
    settings = run_settings(steps=6, scales=2)
    for step in (1, 3, 6):
        work = Run(job_with(settings, tiny_network(), MODE, pair(content, style)))
        for iterate in work:
            if iterate.step == step:
                break
        result = work.result()
        assert (result.problem, result.losses, result.steps) == (None, {}, step)
        assert result.image.shape == (1, 3, 16, 20)  # also from a coarse scale
        assert result.image.isfinite().all()
    done, _ = run(run_settings(), content, style)
    assert done.finished("a run") is done
    check_error(r"^a run: it is late$", replace(done, problem="it is late").finished, "a run")


@pytest.mark.cuda
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_run_on_a_gpu(optimizer, content, style):
    expected, _ = run(run_settings(optimizer), content, style)
    actual, _ = run(run_settings(optimizer), content, style, network=tiny_network().cuda())
    assert actual.image.device.type == "cpu"
    assert torch.allclose(actual.image, expected.image, atol=1e-4)


# Tests of `color=`, which chooses the colours of the pastiche, in every loss mode.
def job_of(mode="autograd_function", strength=1.0, **settings):
    settings = {"steps": 4, "scales": 2, "init": "noise", "color_strength": strength} | settings
    pictures = pair(CONTENT, picture(2, 18, 14))
    return job_with(run_settings(**settings), tiny_network(), LOSS_MODES[mode], pictures)


def test_the_contents_colors_under_the_pastiches_lightness():
    for mode, strength in zip(MODES, (0.0, 0.5, 1.0, 0.25), strict=False):
        plain = Run(job_of(mode)).complete()
        colored = Run(job_of(mode, strength, color="content_luminance")).complete()
        # `color=` changes neither the optimised image nor its losses.
        assert torch.equal(colored.image, plain.image)
        assert colored.losses == plain.losses
        assert torch.equal(plain.picture, plain.image)
        assert torch.equal(colored.picture, with_chroma_of(plain.image, CONTENT.float(), strength))
        assert torch.equal(colored.picture, plain.picture) == (strength == 0)


def test_every_iterate_has_these_colors():
    run = Run(job_of(color="content_luminance"))
    for iterate in run:
        content = resize(CONTENT, tuple(iterate.image.shape[2:]))
        expected = with_chroma_of(iterate.image, content, 1.0)
        assert torch.equal(iterate.picture, expected)
        early = run.result()
        assert torch.equal(early.picture, with_chroma_of(early.image, CONTENT.float(), 1.0))


def test_a_pastiche_of_grey_pictures_is_grey():
    def grey(seed, *size):
        return picture(seed, *size)[:, :1].expand(1, 3, -1, -1) + picture(seed, *size) * 1e-3

    for content, style, is_grey in (
        (grey(1, 16, 20), grey(2, 18, 14), True),
        (grey(1, 16, 20), picture(2, 18, 14), False),
        (picture(1, 16, 20), grey(2, 18, 14), False),
    ):
        made = Run(replace(job_of(), pictures=pair(content / 1.1, style / 1.1))).complete()
        spread = made.picture.amax(1) - made.picture.amin(1)
        assert (spread.max() == 0) == is_grey


def given(**pictures):
    return {name: Picture(rgb.float(), name=name) for name, rgb in pictures.items()}


def test_styles_are_recolored_where_they_are_loaded():
    files = given(content=CONTENT, style=picture(2, 18, 14), style_detail=picture(3, 12, 20))
    seen = files["content"].rgb[:, :1].round()
    files |= {"content": replace(files["content"], alpha=seen), "style": [files["style"]]}
    objective = layers(detail_layers=["relu1_1"])
    config = run_settings(
        size=20, color_strength=0.5, style_detail="in memory", objective=objective
    )
    plain = loaded(config, **files)
    for color in ("content_luminance", "content_palette"):
        found = loaded(replace(config, color=color), **files)
        assert torch.equal(found.content, plain.content)
        for before, after in zip(plain.styles, found.styles, strict=True):
            recoloured = recolored(Picture(before), files["content"], 0.5).rgb
            assert torch.equal(after, recoloured if color == "content_palette" else before)


def test_each_region_gets_the_colors_of_its_styles_and_keeps_light():
    left = (torch.arange(20)[None, None, None] < 8).expand(1, 1, 16, 20).double()
    soft = [0.35 + 0.3 * picture(seed, 18, 14) for seed in (2, 3)]
    part = picture(4, 18, 14)[:, :1]
    regions = (
        Region("left", left, (StylePart(0, weights=part), StylePart(1, 3.0))),
        Region("right", 1 - left, (StylePart(1),)),
    )
    pictures = Inputs(CONTENT, tuple(soft), regions)

    def moments(lab, weights):
        colors, weights = lab[1:], weights.flatten() / weights.sum()
        return (colors * weights).sum(1), (colors * weights) @ colors.T

    lab = [to_oklab(image[0].flatten(1)) for image in soft]
    both = zip(moments(lab[0], part), moments(lab[1], torch.ones_like(part)), strict=True)
    expected = [(one + 3 * two) / 4 for one, two in both], moments(lab[1], torch.ones_like(part))
    config = run_settings(color="style_palette")
    changed = job_with(config, tiny_network(), MODE, pictures).colors.before(pictures)
    found = to_oklab(changed.content[0].flatten(1))
    for region, wanted in zip(regions, expected, strict=True):
        for one, other in zip(moments(found, region.weights), wanted, strict=True):
            assert (one - other).abs().max() < 1e-4
    assert (found[0] - to_oklab(CONTENT[0].flatten(1))[0]).abs().max() < 1e-6
    plain = job_with(run_settings(), tiny_network(), MODE, pictures)
    assert plain.colors.before(pictures) is pictures


def finished(image, *styles, strength=1.0, **inputs):
    """Return an image as a run with color=style_palette finishes it."""
    pictures = Inputs(CONTENT, styles, **inputs)
    config = run_settings(color="style_palette", color_strength=strength)
    return job_with(config, tiny_network(), MODE, pictures).colors.after(pictures)(image)


def spread(image):
    return (image.amax(1) - image.amin(1)).max()


GREY = picture(2, 18, 14)[:, :1].expand(1, 3, -1, -1)
BROWN = torch.tensor([0.3, 0.2, 0.1]).view(1, 3, 1, 1) + 0.6 * GREY
BRIGHT = 0.3 + 0.4 * picture(7, 16, 20)


def test_a_grey_style_gives_a_grey_picture():
    left = (torch.arange(20)[None, None, None] < 8).expand(1, 1, 16, 20).double()
    made = finished(BRIGHT, GREY, protected=left)
    assert spread(made[..., 8:]) == 0
    assert torch.equal(made[..., :8], BRIGHT[..., :8])
    assert spread(finished(BRIGHT, GREY, strength=0.5)) > 0.05
    assert torch.equal(finished(BRIGHT, GREY, strength=0.0), BRIGHT)


def test_a_brown_style_gives_no_color_but_its_own():
    def rest(image):
        """Return the deviation of a, b in OKLab from their best linear function of lightness."""
        lab = to_oklab(image[0].flatten(1))
        basis = torch.stack([torch.ones_like(lab[0]), lab[0]], 1)
        fitted = basis @ torch.linalg.lstsq(basis, lab[1:].mT).solution
        return (lab[1:].mT - fitted).square().mean().sqrt(), lab[1:].mean(1)

    made = finished(BRIGHT, BROWN)
    assert rest(BROWN)[0] < 0.01
    assert rest(BRIGHT)[0] > 0.04
    assert rest(made)[0] < 0.01
    assert (rest(made)[1] - rest(BROWN)[1]).abs().max() < 0.005
    light = [to_oklab(image[0].flatten(1))[0] for image in (made, BRIGHT)]
    assert (light[0] - light[1]).abs().max() < 1e-6


def test_a_region_of_a_style_with_colors_keeps_its_own():
    left = (torch.arange(20)[None, None, None] < 8).expand(1, 1, 16, 20).double()
    regions = Region("left", left, (StylePart(0),)), Region("right", 1 - left, (StylePart(1),))
    made = finished(BRIGHT, BROWN, picture(3, 18, 14), regions=regions)
    assert torch.equal(made[..., 8:], BRIGHT[..., 8:])
    assert (made[..., :8] - BRIGHT[..., :8]).abs().max() > 0.05
    colored = picture(3, 18, 14)
    assert torch.equal(finished(BRIGHT, colored), BRIGHT)


def test_unseen_pixels_and_details_give_no_palette():
    style, detail = (0.35 + 0.3 * picture(seed, 18, 14) for seed in (2, 3))
    parts = StylePart(0, layers=("relu1_1",)), StylePart(1, layers=("relu2_1",))
    cut = CONTENT[..., :8]
    alpha = torch.zeros(1, 1, 16, 20, dtype=torch.float64)
    alpha[..., :8] = 1
    pictures = Inputs(CONTENT, (style, detail), (Region(sources=parts),), alpha=alpha)
    job = job_with(run_settings(color="style_palette"), tiny_network(), MODE, pictures)
    alone = job.colors.before(pair(cut, style)).content
    assert (job.colors.before(pictures).content[..., :8] - alone).abs().max() < 1e-9


def test_a_run_in_the_styles_palette_protects_the_photograph(content, style):
    protected = torch.ones(1, 1, 16, 20, dtype=torch.float64)
    protected[..., 10:] = 0
    settings = {"size": 20, "steps": 4, "scales": 1, "color": "style_palette"}
    pictures = replace(pair(content, style), protected=protected)
    job = job_with(run_settings(**settings), tiny_network(), MODE, pictures)
    recoloured = job.colors.before(pictures).content
    first = next(iter(Run(job))).image
    assert torch.equal(first[..., :10], content[..., :10])
    assert torch.equal(first[..., 10:], recoloured[..., 10:])
    assert not torch.equal(recoloured, content)
    assert torch.equal(Run(job).complete().picture[..., :10], content[..., :10].float())


def settings_of_photos(photos, **settings):
    content, style = photos
    features = FeaturesConfig(name="vgg19", weights="random")
    defaults = {"size": 64, "steps": 7, "scales": 2, "device": "cpu", "precision": "float32"}
    return TrainConfig(content, style, features=features, **(defaults | settings))


def test_the_plan_is_what_a_run_does(tiny_vgg, photos, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2.0**33)
    todo = prepare(settings_of_photos(photos, tile="32"))
    said, iterates = memory.plan(todo).splitlines(), []
    iterates.extend(Run(todo))
    assert [max(iterate.image.shape[2:]) for iterate in iterates] == [32] * 3 + [64] * 4
    assert said[0] == "cpu, float32, autograd_function, lbfgs"
    assert re.fullmatch(r"32 x 24: 3 steps, whole, about \d+ MiB", said[1])
    assert said[2].startswith("64 x 48: 4 steps, tiles of 32 px, about ")
    assert re.fullmatch(r"in all about \d+ MiB of 8.0 GiB free", said[3])
    assert len(said) == 4
    config = settings_of_photos(photos, size=600, scales=1, tile="off")
    planned, whole = (prepare(config, enlarge=enlarged) for enlarged in (False, True))
    assert planned.pictures.content.shape == planned.pictures.styles[0].shape == (1, 3, 24, 32)
    assert planned.scales == whole.scales
    assert planned.scales[0].size == (450, 600)
