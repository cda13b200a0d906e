"""The plan of a run, and that it leaves nothing behind."""

import re
from dataclasses import replace

import pytest
from helpers import run_script

from styletransfer.config import FeaturesConfig, LossModeConfig, OptimizerConfig, TrainConfig
from styletransfer.job.prepare import prepare
from styletransfer.optimize import dry_run
from styletransfer.optimize.run import Run


def job(photos, **settings):
    content, style = photos
    defaults = {
        "content": content,
        "style": style,
        "size": 64,
        "steps": 7,
        "scales": 2,
        "device": "cpu",
        "precision": "float32",
        "features": FeaturesConfig(name="vgg19", weights="random"),
    }
    return prepare(TrainConfig(**(defaults | settings)))


def test_the_plan_is_what_a_run_does(tiny_vgg, photos, monkeypatch):
    monkeypatch.setattr(dry_run, "free_bytes", lambda device: 2.0**33)
    todo = job(photos, tile="32")
    said, iterates = dry_run.plan(todo).splitlines(), []
    Run(todo).complete([iterates.append])
    assert [max(iterate.image.shape[2:]) for iterate in iterates] == [32] * 3 + [64] * 4
    assert said[0] == "cpu, float32, autograd_function, lbfgs"
    assert re.fullmatch(r"32 x 24: 3 steps, whole, history 20, about \d+ MiB, \d+\.\d s", said[1])
    assert said[2].startswith("64 x 48: 4 steps, tiles of 32 px, history 20, about ")
    assert re.fullmatch(r"in all about \d+\.\d s and \d+ MiB of 8.0 GiB free", said[3])
    assert len(said) == 4


def test_time_grows_with_the_steps_and_the_pixels(tiny_vgg, photos, monkeypatch):
    """Of a second for each pixel, and one evaluation more where each scale ends."""
    monkeypatch.setattr(dry_run, "_seconds_per_pixel", lambda job: 1.0)
    said = dry_run.plan(job(photos)).splitlines()
    times = [float(line.split()[-2]) for line in said[1:3]]
    assert times == [32 * 24 * 4, 64 * 48 * 5]
    assert f"in all about {sum(times):.1f} s" in said[3]


@pytest.mark.parametrize("mode", ["fake_backward", "loss_attribute"])
def test_other_modes_are_planned_whole(tiny_vgg, photos, mode):
    settings = {"loss_mode": LossModeConfig(mode), "optimizer": OptimizerConfig("adam", 0.02)}
    said = dry_run.plan(job(photos, size=22, scales=1, **settings))
    assert "22 x 16: 7 steps, whole, about " in said


def test_a_plan_enlarges_no_picture(tiny_vgg, photos):
    settings = {"size": 3000, "scales": 1, "tile": "off"}
    planned, whole = (prepare(replace(job(photos).config, **settings), enlarge=e) for e in (0, 1))
    assert planned.pictures.content.shape == planned.pictures.styles[0].shape == (1, 3, 24, 32)
    assert planned.scales == whole.scales
    assert planned.scales[0].size == (2250, 3000)


@pytest.mark.slow
def test_a_dry_run_writes_nothing(photos, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    content, style = photos
    arguments = [f"content={content}", f"style={style}", "size=32", "steps=4", "scales=1"]
    arguments += ["dry_run=true", "device=cpu", "features=vgg19", "features.weights=random"]
    arguments += ["objective.content_layers=[relu2_1]", "objective.style_layers=[relu1_1]"]
    done = run_script("train", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "32 x 24: 4 steps, whole" in done.stdout
    assert list(folder.iterdir()) == []
