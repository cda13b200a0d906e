"""The plan of a run, and that it leaves nothing behind."""

from dataclasses import replace

import pytest
from helpers import run_script

from styletransfer.config import FeaturesConfig, LossModeConfig, OptimizerConfig, TrainConfig
from styletransfer.job.prepare import prepare
from styletransfer.optimize.dry_run import plan
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


def test_the_plan_is_what_a_run_does(tiny_vgg, photos):
    todo = job(photos, tile="32")
    planned, iterates = plan(todo), []
    Run(todo).complete([iterates.append])
    sizes = [tuple(iterate.image.shape[2:]) for iterate in iterates]
    assert [one.scale.size for one in planned.scales for _ in range(one.scale.steps)] == sizes
    assert 0 < planned.memory < planned.free
    assert 0 < planned.seconds < 100
    lines = str(planned).splitlines()
    assert lines[0] == "cpu, float32, autograd_function, lbfgs"
    assert lines[1].startswith("32 x 24: 3 steps, whole, history 20, about ")
    assert lines[2].startswith("64 x 48: 4 steps, tiles of 32 px, history 20, about ")
    assert lines[3].startswith("in all about ")
    assert len(lines) == 4


@pytest.mark.parametrize("mode", ["fake_backward", "loss_attribute"])
def test_other_modes_are_planned_whole(tiny_vgg, photos, mode):
    settings = {"loss_mode": LossModeConfig(mode), "optimizer": OptimizerConfig("adam", 0.02)}
    planned = plan(job(photos, size=22, scales=1, **settings))
    (layout,) = (one.layout for one in planned.scales)
    assert (layout.tile, layout.memory.history) == (None, 0)
    assert "22 x 16: 7 steps, whole, about " in str(planned)


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
