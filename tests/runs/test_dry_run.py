"""The plan of a run, and that it leaves nothing behind."""

import re
from dataclasses import replace

from styletransfer.config import FeaturesConfig, TrainConfig
from styletransfer.job.prepare import prepare
from styletransfer.optimize.run import Run
from styletransfer.runs import paint


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
    monkeypatch.setattr(paint, "free_bytes", lambda device: 2.0**33)
    todo = job(photos, tile="32")
    said, iterates = paint.plan(todo).splitlines(), []
    Run(todo).complete([iterates.append])
    assert [max(iterate.image.shape[2:]) for iterate in iterates] == [32] * 3 + [64] * 4
    assert said[0] == "cpu, float32, autograd_function, lbfgs"
    assert re.fullmatch(r"32 x 24: 3 steps, whole, history 20, about \d+ MiB, \d+\.\d s", said[1])
    assert said[2].startswith("64 x 48: 4 steps, tiles of 32 px, history 20, about ")
    assert re.fullmatch(r"in all about \d+\.\d s and \d+ MiB of 8.0 GiB free", said[3])
    assert len(said) == 4


def test_time_grows_with_the_steps_and_the_pixels(tiny_vgg, photos, monkeypatch):
    """Of a second for each pixel, and one evaluation more where each scale ends."""
    monkeypatch.setattr(paint, "_seconds_per_pixel", lambda job: 1.0)
    said = paint.plan(job(photos)).splitlines()
    times = [float(line.split()[-2]) for line in said[1:3]]
    assert times == [32 * 24 * 4, 64 * 48 * 5]
    assert f"in all about {sum(times):.1f} s" in said[3]


def test_a_plan_enlarges_no_picture(tiny_vgg, photos):
    settings = {"size": 600, "scales": 1, "tile": "off"}
    planned, whole = (prepare(replace(job(photos).config, **settings), enlarge=e) for e in (0, 1))
    assert planned.pictures.content.shape == planned.pictures.styles[0].shape == (1, 3, 24, 32)
    assert planned.scales == whole.scales
    assert planned.scales[0].size == (450, 600)
