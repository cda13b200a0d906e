"""The Python API: inputs, results, and the caller's state, which stays unchanged."""

import io
import os
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import hydra
import numpy as np
import pytest
import torch
from helpers import call, check_error, picture, process, write_pictures
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.version import VersionBase
from PIL import Image
from torch.utils._device import DeviceContext
from tqdm import tqdm

import styletransfer
from styletransfer import api
from styletransfer.api import iterate, stylize
from styletransfer.pictures import images
from styletransfer.pictures.convert import as_picture
from styletransfer.runs.recipe import carried
from styletransfer.settings.compose import compose
from styletransfer.system.files import sha256

pytestmark = pytest.mark.usefixtures("tiny_vgg")

CONTENT, STYLE = picture(1, 24, 32).float(), picture(2, 24, 32).float()


def tiny(content=CONTENT, style=STYLE, **settings):
    return stylize(content, style, **({"experiment": "tiny"} | settings))


def as_bytes(image):
    return (image[0].permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)


def test_a_shape_takes_the_place_of_the_content():
    made = stylize("2:1", STYLE, experiment="texture", size=64, steps=2, scales=1)
    assert (made.image.shape, made.steps) == ((1, 3, 32, 64), 2)


def test_every_form_of_a_picture_is_the_same_picture(tmp_path):
    samples = as_bytes(CONTENT)
    Image.fromarray(samples).save(tmp_path / "photo.png")
    unit = torch.from_numpy(samples).permute(2, 0, 1) / 255
    grey = samples[..., 0]
    forms = [
        *(tmp_path / "photo.png", str(tmp_path / "photo.png"), Image.fromarray(samples), samples),
        *(samples / 255.0, (samples / 255.0).astype(np.float32), unit, unit[None].double()),
        np.dstack([samples, np.full((24, 32), 255, np.uint8)]),
    ]
    pictures = [as_picture(form, "content") for form in forms]
    for form, one in zip(forms, pictures, strict=True):
        # The tolerance is the float32 rounding of n / 255.
        torch.testing.assert_close(one.rgb.double(), pictures[0].rgb.double(), rtol=0, atol=1e-6)
        assert one.alpha is None or one.alpha.min() == 1, type(form)
    turned = Image.fromarray(samples)
    turned.getexif()[0x0112] = 6
    assert as_picture(turned, "content").rgb.shape == (1, 3, 32, 24)
    for form in (grey, Image.fromarray(grey)):
        expected = as_picture(np.dstack([grey] * 3), "content").rgb
        assert torch.equal(as_picture(form, "content").rgb, expected)


def test_python_says_the_same_with_arrays(desk, capsys):
    labels = np.zeros((24, 32, 3), np.uint8)
    labels[:, :16, 0] = labels[:, 16:, 2] = 255
    Image.fromarray(labels).save("labels.png")
    words = ["content=content.png", "style=[style.png,content.png]", "content_regions=labels.png"]
    words += ["region_styles.red=1", "region_styles.blue=2", "style_detail=style.png"]
    words += ["objective.detail_layers=[relu1_1]", "output=out.png"]
    assert call(capsys, "train", "experiment=tiny", *words)[0] == 0
    given = {"content_regions": labels, "region_styles": {"red": np.int64(1), "blue": 2}}
    given |= {"style_detail": np.asarray(Image.open("style.png"))}
    given |= {"objective.detail_layers": ["relu1_1"]}
    made = tiny("content.png", ["style.png", Image.open("content.png")], **given)
    assert np.array_equal(np.asarray(made.to_pil()), np.asarray(Image.open("out.png")))


def test_transparency_is_kept():
    alpha = np.full((24, 32), 128, np.uint8)
    result = tiny(content=np.dstack([as_bytes(CONTENT), alpha]))
    assert result.numpy().shape == (24, 32, 4)
    assert result.to_pil().mode == "RGBA"
    assert np.asarray(result.to_pil())[..., 3] == pytest.approx(128)


def test_bad_pictures():
    for content, message in (
        (3, "content is a int; give a path, a Pillow image, a NumPy array or a tensor"),
        (CONTENT - 1, r"content holds values from -.*floats must be in \[0, 1\]"),
        (CONTENT * torch.nan, "content holds NaN or infinity"),
        (torch.rand(2, 3, 24, 32), r"tensor of shape \(2, 3, 24, 32\)"),
        ((CONTENT[0] * 255).byte(), r"tensor of torch.uint8; give floats"),
        (np.zeros((0, 32, 3)), "content is empty"),
        (["a.png", CONTENT], "content is a list; give a path, a Pillow image"),
        ("no.png", "no.png"),
        (CONTENT.to_sparse(), "content is a nested, sparse or meta tensor; give a plain one"),
        (CONTENT.to("meta"), "content is a nested, sparse or meta tensor"),
    ):
        check_error(message, tiny, content=content)
    mask = CONTENT[0, 0].round()
    check_error("protect is a nested, sparse or meta tensor", tiny, protect=mask.to_sparse())
    assert torch.equal(tiny(protect=mask.bfloat16()).image, tiny(protect=mask).image)


def test_a_pillow_image_that_is_closed_is_told(here):
    images.write("a.png", STYLE)
    with Image.open("a.png") as unread:
        pass
    (loaded := Image.open("a.png")).load()
    loaded.close()
    for closed in (unread, loaded):
        for given in ({"style": closed}, {"content": closed}, {"protect": closed}):
            check_error("is a Pillow image whose file is closed; open it", tiny, **given)


def test_results_are_compared_and_hashed_as_objects():
    one, other = tiny(steps=1), tiny(steps=1)
    assert (one == one, one == other, len({one, other, one})) == (True, False, 2)


@pytest.mark.slow
def test_a_callers_compiler_leaves_a_run_alone():
    code = """
import torch
from styletransfer import iterate, stylize

def painted(image):
    return stylize(image, image, experiment="tiny", steps=2, features="bundled").image

def steered(image):
    run = iterate(image, image, experiment="tiny", steps=2, features="bundled")
    list(run)
    run.steer(steps=1)
    list(run)
    return run.result().image

image = torch.rand(1, 3, 24, 32, generator=torch.Generator().manual_seed(0))
graphs = []
compiled = torch.compile(backend=lambda graph, _: graphs.append(graph) or graph.forward)
for work in (painted, steered):
    assert torch.equal(compiled(work)(image), work(image))
assert not graphs, graphs
"""
    done = process(sys.executable, "-c", code, timeout=600)
    assert done.returncode == 0, done.stderr


def test_bad_keys():
    """Check errors that only Python calls can have; test_bad_input.py has the others."""
    for settings, message in (
        ({"features": 3}, "unknown features 3; there are bundled"),
        ({"output": "a.png"}, "output is a key of the command line; see Res"),
        ({"stop_after": 1}, "stop_after is a key of the command line"),
        ({"objective": {3: 1}}, "unknown key objective.3"),
        ({"stepps": 1}, r"unknown key stepps; did you mean steps\?"),
    ):
        check_error(message, tiny, **settings)


@pytest.mark.slow
def test_a_result_is_saved_and_shown(here, capfd):
    """Check the saved picture; `stylize` itself prints nothing and writes no file."""
    result = tiny()
    assert (capfd.readouterr(), [*here.iterdir()]) == (("", ""), [])
    assert result.steps == 6
    assert result.image.shape == (1, 3, 24, 32)
    result.save(here / "pastiche.png")
    saved = images.read(here / "pastiche.png").rgb
    assert (saved - result.image).abs().max() < 0.6 / 255
    assert np.array_equal(np.asarray(result.to_pil()), as_bytes(saved))
    assert np.array_equal(result.numpy(), result.image[0].permute(1, 2, 0).numpy())
    check_error("unknown extension", result.save, here / "pastiche.gif")
    assert "in memory" in carried(here / "pastiche.png")["command"]
    tiny(style=[here / "pastiche.png", STYLE]).save("mixed.png")
    recipe = carried(here / "mixed.png")
    named = ["content=in memory", "style=[pastiche.png,in memory]"]
    assert shlex.split(recipe["command"])[2:4] == named
    assert recipe["sha256 of style"] == sha256(here / "pastiche.png")
    tiny(here / "pastiche.png", here / "pastiche.png", size=24).save("again.png")
    assert "the same bytes" in call(capfd, "info", "again.png", "verify=true")[1].out
    result.save("bare.png", recipe=False)
    check_error("carries no recipe", carried, here / "bare.png")


def test_a_callback_that_is_no_function_is_told():
    check_error("callback=3 is no function; give one that takes an Iterate", tiny, callback=3)


def test_a_callback_sees_every_step_and_a_bar_shows_them(capsys):
    """Check also that init=CONTENT, as a tensor, equals init="content"."""
    seen = []
    result = tiny(init=CONTENT, callback=seen.append, progress=True)
    assert [step.step for step in seen] == [1, 2, 3, 4, 5, 6]
    assert "6/6" in capsys.readouterr().err
    assert torch.equal(result.image, tiny(init="content").image)
    assert not torch.equal(result.image, tiny(init=STYLE).image)


def test_a_notebook_shows_iterates_and_results_as_pictures():
    run = iterate(CONTENT, STYLE, experiment="tiny")
    step = next(iter(run))
    result = run.result()
    for shown, image in ((step._repr_png_(), step.picture), (result._repr_png_(), result.image)):
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(shown))), as_bytes(image))


@pytest.mark.parametrize("config", [{"IPKernelApp": {}}, {}], ids=["notebook", "terminal"])
def test_a_notebook_shows_the_picture_while_it_is_painted(config, monkeypatch):
    """Check that one place shows each of the first 5 of 6 steps and ends empty."""
    handles = []

    class Handle:
        def __init__(self):
            handles.append(self)
            self.shown = []

        def display(self, made, raw):
            self.shown.append(made)

        def update(self, made, raw=False):
            self.shown.append(made)

    shell = SimpleNamespace(config=config)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(DisplayHandle=Handle))
    monkeypatch.setattr("tqdm.auto.tqdm", tqdm)  # not a notebook's bar
    tiny(progress=True)
    empty = {"text/plain": ""}
    shown = [part for handle in handles for part in handle.shown]
    assert [getattr(part, "step", part) for part in shown] == (
        [empty, 1, 2, 3, 4, 5, empty] if config else []
    )
    tiny()
    assert len(handles) == len(config)


def test_a_run_is_iterated_over_and_paused():
    run = iterate(CONTENT, STYLE, experiment="tiny")
    for step in run:
        if step.step == 2:
            break
    assert run.result().losses == {}
    assert run.result().image.shape == (1, 3, 24, 32)
    assert [step.step for step in run][-1] == 6
    assert run.result().losses["total"] > 0


@pytest.mark.parametrize("color", ["style_palette", "content_palette", "content_luminance"])
def test_each_step_of_each_scale_is_shown_in_its_colors(color):
    shapes = [
        (step.picture.shape, step.image.shape)
        for step in iterate(CONTENT, STYLE, experiment="tiny", color=color)
    ]
    assert len(set(shapes)) == 2
    assert all(shown == painted for shown, painted in shapes)


@pytest.mark.slow
@pytest.mark.parametrize("look", ["classic", "faithful", "painterly", "tutorial_0_3"])
def test_a_picture_in_its_own_style_is_itself(look):
    photo = picture(1, 64, 96).float()
    random = {"features.name": "vgg19", "features.weights": "random", "precision": "float32"}
    made = stylize(photo, photo, experiment=look, size=96, scales=2, steps=6, **random)
    assert torch.equal(made.image, photo)


def matched():
    """Run two steps with matched features, a painted start and a style loss."""
    layers = {"objective.match_weight": 0.5, "objective.match_layers": ["relu3_1"]}
    words = {"features.name": "bundled", "features.weights": "pretrained", "precision": "float32"}
    return tiny(size=64, steps=2, **words, **layers)


def test_a_run_is_steered():
    run = iterate(CONTENT, STYLE, experiment="tiny")
    seen = []
    for step in run:
        seen.append(step.losses.as_floats())
        if len(seen) == 2:
            run.steer(objective={"tv_weight": 1.0}, style=[picture(5), picture(6)])
    assert seen[2]["total_variation"] > 50 * seen[1]["total_variation"]  # the preset has 0.01
    assert not torch.equal(run.result().image, tiny().image)
    assert b"settings changed during the run" in run.result().xmp
    run.steer(size=24, objective={"content_layers": ["relu2_2"]})  # needs more of the network
    assert [step.image.shape[3] for step in run] == [24] * 3
    assert run.result().image.shape == (1, 3, 18, 24)


def test_a_steered_detail_acts_at_its_layers_alone():
    def steered(**settings):
        run = iterate(CONTENT, STYLE, experiment="tiny", scales=1)
        next(iter(run))
        run.steer(size=24, **settings)
        return next(iter(run)).losses.as_floats()

    plain = steered()
    made = steered(style_detail=picture(7), objective={"detail_layers": ["relu1_1"]})
    assert made["style/relu2_1"] == plain["style/relu2_1"]
    assert made["style/relu1_1"] != plain["style/relu1_1"]


def test_a_callers_own_hydra_is_left_alone(tmp_path):
    (tmp_path / "mine.yaml").write_text("size: 7\n")
    ConfigStore.instance().store(name="train_schema", node={"theirs": True})
    try:
        with hydra.initialize_config_dir(str(tmp_path), version_base="1.2"):
            before, base = GlobalHydra.instance().hydra, VersionBase.instance().getbase()
            tiny(experiment="bold", size=32, steps=1)  # no earlier test has composed this
            assert GlobalHydra.instance().hydra is before
            assert VersionBase.instance().getbase() == base
            assert hydra.compose("mine").size == 7
            assert hydra.compose("train_schema").theirs
    finally:
        ConfigStore.instance().repo.pop("train_schema.yaml")
    assert not GlobalHydra.instance().is_initialized()


def test_equal_settings_are_composed_once(monkeypatch, tmp_path):
    """Hydra takes longer than a small picture; a file that has changed is read again."""
    (tmp_path / "any.yaml").touch()
    composed = []
    monkeypatch.setattr(api, "CONFIGS", tmp_path)
    monkeypatch.setattr(api, "compose", lambda *words: composed.append(words) or compose(*words))
    for number, size in enumerate((24, 32, 24)):
        os.utime(tmp_path / "any.yaml", (number // 2, number // 2))
        step = next(iter(iterate(CONTENT, STYLE, experiment="tiny", size=size, scales=1)))
        assert step.image.shape[3] == size
    assert len(composed) == 2


def test_settings_of_one_picture_do_not_reach_the_next():
    first = iterate(CONTENT, STYLE, experiment="tiny", objective={"style_layers": ["relu1_1"]})
    assert "style/relu2_1" not in next(iter(first)).losses.terms
    next_one = iterate(CONTENT, STYLE, experiment="tiny")
    assert "style/relu2_1" in next(iter(next_one)).losses.terms


def test_torch_is_called_without_a_detour(monkeypatch):
    """A default device that is set would send each call of torch through Python."""
    monkeypatch.setattr(DeviceContext, "__torch_function__", pytest.fail)
    assert tiny(steps=3, scales=1).steps == 3


def test_the_callers_state_of_torch_changes_nothing_and_stays():
    expected = matched().image
    with ExitStack() as stack:
        stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
        stack.enter_context(torch.device("meta"))
        stack.enter_context(torch.inference_mode())
        stack.callback(torch.set_default_dtype, torch.float32)
        torch.set_default_dtype(torch.float16)
        image = matched().image
        assert torch.is_autocast_enabled("cpu")
        assert torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()
        assert torch.empty(0).is_meta
        assert torch.get_default_dtype() == torch.float16
    assert torch.equal(image, expected)


@pytest.mark.slow
def test_several_threads_at_once():
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: tiny(steps=1, scales=1), range(4)))
    assert all(torch.equal(run.image, runs[0].image) for run in runs)


def test_the_face_is_whole_and_light():
    assert all(hasattr(styletransfer, name) for name in styletransfer.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = styletransfer.nonsense
    code = "import sys, styletransfer as s; s.UserError, s.__version__; print(*sys.modules)"
    loaded = set(process(sys.executable, "-c", code).stdout.split())
    assert "styletransfer" in loaded
    assert not {"torch", "hydra", "numpy"} & loaded


def test_the_recipe_names_the_files_that_were_read(here, tiny_vgg):
    write_pictures("content.png", "styles/a.png", "later.png")
    run = iterate("content.png", "styles", experiment="tiny", size=16, steps=1)
    Path("later.png").rename("styles/b.png")
    run.result().save("pastiche.png")
    assert carried(Path("pastiche.png"))["sha256 of style"] == sha256("styles/a.png")
