"""The command `compare` and its measurements, on tiny pictures and a random network."""

import json
from dataclasses import replace

import pytest
import torch
from helpers import LAYERS, composed
from helpers import picture as noise

from styletransfer.commands.compare import compare, gradient_errors, main
from styletransfer.job.prepare import prepare
from styletransfer.losses import LOSS_MODES, fake_backward, loss_attribute
from styletransfer.pictures import images

STEPS = 5
TINY = [
    *(*LAYERS, "features=vgg19", "features.weights=random", "objective.tv_weight=0.01"),
    *("size=24", "scales=2", f"steps={STEPS}", "rounds=1"),
    *("device=cpu", "precision=float32"),
]
KEYS = "gradient_relative_error seconds_per_evaluation peak_memory_bytes final_loss losses"
PICTURES = {f"{name}.png" for name in LOSS_MODES}
FILES = {"comparison.json", "comparison.png", *PICTURES}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Return the command line of a tiny run on two pictures of different shapes."""
    folder = tmp_path_factory.mktemp("pictures")
    for seed, size in enumerate(((40, 60), (50, 30))):
        images.write(folder / f"{seed}.png", noise(seed, *size))
    return [f"content={folder}/0.png", f"style={folder}/1.png", *TINY]


@pytest.fixture(scope="module")
def done(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return compare(composed("compare", *tiny), folder), folder


def test_every_file_is_there_and_the_json_file_has_its_schema(done):
    assert {path.name for path in done[1].iterdir()} == FILES
    written = json.loads((done[1] / "comparison.json").read_text())
    assert list(written) == ["reference", "modes"]
    assert written["reference"] == "loss_attribute"
    assert list(written["modes"]) == list(LOSS_MODES)
    for name, mode in written["modes"].items():
        assert set(mode) == set(KEYS.split())
        assert len(mode["losses"]) == STEPS
        assert min(mode["seconds_per_evaluation"], mode["peak_memory_bytes"]) > 0
        assert images.read(done[1] / f"{name}.png").size == (16, 24)
    overview = images.read(done[1] / "comparison.png")
    for number, name in enumerate(LOSS_MODES):
        pastiche = images.read(done[1] / f"{name}.png").rgb
        assert torch.equal(overview.rgb[..., 24 * number : 24 * (number + 1)], pastiche)


def test_the_modes_have_one_gradient(done):
    comparison = done[0]
    modes = comparison.modes
    assert modes["loss_attribute"].gradient_relative_error == 0
    assert all(0 <= mode.gradient_relative_error <= 1e-10 for mode in modes.values())
    first = [mode.losses[0] for mode in modes.values()]
    assert first == pytest.approx([first[0]] * len(first), rel=1e-5)


def test_the_command_prints_a_table_and_writes_the_overview(tiny, tmp_path, capsys):
    short = ("steps=1", "scales=1", f"output={tmp_path}/sub/overview.jpg")
    main(composed("compare", *tiny, *short), tmp_path / "run")
    assert f"| fake_backward {' ' * 4}|" in capsys.readouterr().out
    overview = images.read(tmp_path / "sub" / "overview.jpg")
    assert overview.size == images.read(tmp_path / "run" / "comparison.png").size


def test_gradient_errors_are_relative_to_the_reference(tiny, monkeypatch):
    """Check a mode whose gradient is three times that of the others."""

    def tripled(terms, prior, output):
        losses = [3 * term.module.loss for term in terms]
        (sum(losses) + 3 * prior).backward()
        return losses

    tampered = replace(fake_backward.MODE, differentiate=tripled)
    monkeypatch.setattr(fake_backward, "MODE", tampered)
    job = prepare(composed("compare", *tiny, "precision=float64"))
    points = [job.pictures.content, job.pictures.content.flip(3)]
    errors = gradient_errors(job, "loss_attribute", points)
    assert errors["fake_backward"] == pytest.approx(2.0)
    assert errors["tensor_hook"] <= 1e-10


def test_a_run_that_stops_leaves_finished_pictures_only(tiny, tmp_path, monkeypatch):
    def pressed(terms, prior, output):
        raise KeyboardInterrupt

    stopped = replace(loss_attribute.MODE, differentiate=pressed)
    monkeypatch.setattr(loss_attribute, "MODE", stopped)
    with pytest.raises(KeyboardInterrupt):
        compare(composed("compare", *tiny, "steps=1"), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"fake_backward.png"}
