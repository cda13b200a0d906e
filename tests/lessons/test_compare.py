"""The command `compare` and its measurements, on tiny pictures and a random network."""

import json

import pytest
import torch
from helpers import LAYERS, check_kept, check_one_writer, check_too_large, composed
from helpers import picture as noise

from styletransfer.errors import UserError
from styletransfer.job import choices
from styletransfer.job.prepare import prepare
from styletransfer.lessons.commands.compare import compare
from styletransfer.lessons.compare import gradient_errors
from styletransfer.losses import LOSS_MODES
from styletransfer.losses.fake_backward import FakeBackward
from styletransfer.pictures import images

TINY = [
    *(*LAYERS, "features=vgg19", "features.weights=random", "objective.tv_weight=0.01"),
    *("size=24", "scales=2", "steps=5", "rounds=1"),
    *("device=cpu", "precision=float32"),
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Return the command line of a tiny run on two pictures of different shapes."""
    folder = tmp_path_factory.mktemp("pictures")
    for seed, size in enumerate(((40, 60), (50, 30))):
        images.write(folder / f"{seed}.png", noise(seed, *size))
    return [f"content={folder}/0.png", f"style={folder}/1.png", *TINY]


@pytest.mark.slow
def test_the_modes_are_painted_and_their_ratios_printed(tiny, tmp_path, capsys):
    compare(composed("compare", *tiny, f"output={tmp_path}/sub/overview.jpg"), tmp_path / "run")
    *lines, note, path = capsys.readouterr().out.splitlines()
    assert note == "time, memory and final loss are ratios to loss_attribute's"
    assert path == f"{tmp_path}/run/comparison.png"
    assert lines[0].split() == ["mode", "time", "memory", "final", "loss", "gradient", "error"]
    rows = [line.split() for line in lines[1:]]
    assert [row[0] for row in rows] == list(LOSS_MODES)
    assert dict(zip(LOSS_MODES, rows, strict=True))["loss_attribute"][1:] == [
        *("1.00", "1.00", "1.0000", "0.0e+00")
    ]
    assert all(float(cell) > 0 for row in rows for cell in row[2:4])
    assert all(0 <= float(row[4]) <= 1e-10 for row in rows)
    names = {"comparison.png", *(f"{name}.png" for name in LOSS_MODES)}
    assert {file.name for file in (tmp_path / "run").iterdir()} == names
    overview = images.read(path)
    assert overview.size == images.read(tmp_path / "sub" / "overview.jpg").size
    for number, name in enumerate(LOSS_MODES):
        pastiche = images.read(tmp_path / "run" / f"{name}.png").rgb
        assert torch.equal(overview.rgb[..., 24 * number : 24 * (number + 1)], pastiche)


@pytest.mark.slow
def test_a_device_without_float64_compares_the_modes(tiny, tmp_path, capsys, monkeypatch):
    """Check this with cpu:0 in the place of MPS."""
    mps, precision = torch.device("cpu", 0), choices.choose_precision

    def choose_precision(name, device):
        if name == "float64" and device == mps:
            raise UserError("device=mps has no float64")
        return precision(name, device)

    devices = {"mps": mps, "cpu": torch.device("cpu")}
    monkeypatch.setattr(choices, "choose_device", devices.__getitem__)
    monkeypatch.setattr(choices, "choose_precision", choose_precision)
    compare(composed("compare", *tiny, "device=mps"), tmp_path)
    assert "gradient error" in capsys.readouterr().out


@pytest.mark.slow
def test_the_modes_are_told_as_json(tiny, tmp_path, capsys):
    compare(composed("compare", *tiny, "format=json"), tmp_path)
    told = json.loads(capsys.readouterr().out)
    assert told["picture"] == f"{tmp_path}/comparison.png"
    assert list(told["modes"]) == list(LOSS_MODES)
    reference = told["modes"][told["reference"]]
    for name, mode in told["modes"].items():
        assert mode["picture"] == f"{tmp_path}/{name}.png"
        for key, ratio in (("seconds", "time"), ("losses", "final loss")):
            ours, theirs = (one[key] for one in (mode, reference))
            if key == "losses":
                ours, theirs = ours["total"], theirs["total"]
            assert mode[ratio] == pytest.approx(ours / theirs)


def test_gradient_errors_are_relative_to_the_reference(tiny, monkeypatch):
    """Check a mode whose gradient is three times that of the others."""

    class Tripled(FakeBackward):
        @staticmethod
        def differentiate(terms, prior, output):
            losses = [3 * term.module.loss for term in terms]
            (sum(losses) + 3 * prior).backward()
            return losses

    monkeypatch.setitem(LOSS_MODES, "fake_backward", Tripled)
    job = prepare(composed("compare", *tiny, "precision=float64"))
    errors = gradient_errors(job, "loss_attribute", job.pictures.content)
    assert errors["fake_backward"] == pytest.approx(2.0)
    assert errors["tensor_hook"] <= 1e-10


@pytest.mark.slow
def test_an_output_is_no_input_and_has_one_writer(desk, capsys, monkeypatch):
    words = ["experiment=tiny", "content=content.png", "style=style.png", "size=16", "rounds=1"]
    check_kept(capsys, ["compare", *words], ["content.png", "style.png"], ".png")
    check_one_writer(capsys, ["compare", *words], ".png")
    check_too_large(capsys, monkeypatch, ["compare", *words], ".webp")
