"""scripts/compare.py and what it measures with, on tiny pictures and a random shallow network."""

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from helpers import ROOT, composed

from styletransfer.commands.compare.evaluations import (
    gradient_errors,
    objective_at,
    relative_errors,
)
from styletransfer.commands.compare.report import as_json, modes_table, sentences
from styletransfer.commands.compare.run import compare
from styletransfer.errors import UserError
from styletransfer.job.prepare import prepare
from styletransfer.modes import LOSS_MODES, fake_backward
from styletransfer.pictures import images

STEPS = 5
TINY = (
    "features=vgg19",
    "features.weights=random",
    "objective.content_layers=[relu2_1]",
    "objective.style_layers=[relu1_1,relu2_1]",
    "objective.tv_weight=0.01",
    "size=48",
    "scales=2",
    f"steps={STEPS}",
    "points=3",
    "rounds=2",
    "device=cpu",
    "precision=float32",
)
FILES = {
    "comparison.json",
    "comparison.md",
    "comparison.png",
    *(f"{name}.png" for name in LOSS_MODES),
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The command line of a tiny job on two pictures of different shapes."""
    folder = tmp_path_factory.mktemp("pictures")
    generator = torch.Generator().manual_seed(0)
    for name, size in (("content", (40, 60)), ("style", (50, 30))):
        images.write(folder / f"{name}.png", torch.rand(1, 3, *size, generator=generator))
    return [f"content={folder}/content.png", f"style={folder}/style.png", *TINY]


@pytest.fixture(scope="module")
def done(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return compare(composed("compare", *tiny), folder), folder


def test_it_writes_every_file_and_nothing_else(done):
    assert {path.name for path in done[1].iterdir()} == FILES


def test_the_json_file_has_its_schema(done):
    found = json.loads((done[1] / "comparison.json").read_text())
    assert found["reference"] == "loss_attribute"
    assert list(found["modes"]) == list(LOSS_MODES)
    for name, mode in found["modes"].items():
        assert {key: type(value) for key, value in mode.items()} == {
            "gradient_relative_error": float,
            "backward_calls_per_evaluation": int,
            "seconds_per_evaluation": float,
            "peak_memory_bytes": int,
            "final_loss": float,
            "losses": list,
            "image": str,
        }
        assert len(mode["losses"]) == STEPS
        assert mode["image"] == f"{name}.png"
        assert mode["seconds_per_evaluation"] > 0
        assert mode["peak_memory_bytes"] > 0
    assert found["job"]["scales"] == 2
    assert found["job"]["gradient_points"] == 3


def test_the_modes_have_one_gradient(done):
    modes = done[0].modes
    assert modes["loss_attribute"].gradient_relative_error == 0
    assert all(mode.gradient_relative_error <= 1e-10 for mode in modes.values())


def test_from_one_start_the_first_losses_agree(done):
    first = [mode.losses[0] for mode in done[0].modes.values()]
    assert first == pytest.approx([first[0]] * 3, rel=1e-5)


def test_fake_backward_calls_backward_once_per_loss_and_for_the_prior(done):
    calls = {name: mode.backward_calls_per_evaluation for name, mode in done[0].modes.items()}
    assert calls == {"fake_backward": 4, "loss_attribute": 1, "autograd_function": 1}


def test_autograd_never_enters_a_fake_backward_but_the_driver_does(done):
    entries = done[0].fake_backward_entries
    assert (entries.by_autograd, entries.by_driver) == (0, 3)


def test_pictures_have_the_size_and_the_overview_shows_three(done):
    for name in LOSS_MODES:
        assert images.read(done[1] / f"{name}.png").size == (32, 48)
    height, width = images.read(done[1] / "comparison.png").size
    assert width > 3 * 200
    assert height > 400


def test_the_markdown_file_holds_the_table_and_every_sentence(done):
    comparison, folder = done
    text = (folder / "comparison.md").read_text()
    assert modes_table(comparison) in text
    assert all(sentence in text for sentence in sentences(comparison))


def test_sentences_follow_from_the_numbers(done):
    comparison, _ = done
    assert "rounding alone" in sentences(comparison)[0]
    for error in (1e-3, math.nan):
        wrong = replace(comparison.modes["fake_backward"], gradient_relative_error=error)
        changed = replace(comparison, modes=comparison.modes | {"fake_backward": wrong})
        assert f"{error:.1e} under fake_backward" in sentences(changed)[0]
        assert "rounding alone" not in sentences(changed)[0]


def test_json_has_null_where_a_loss_was_not_finite(done):
    comparison, _ = done
    broken = replace(comparison.modes["fake_backward"], losses=[math.nan, math.inf, 1.0])
    changed = replace(comparison, modes=comparison.modes | {"fake_backward": broken})
    assert json.loads(as_json(changed))["modes"]["fake_backward"]["losses"] == [None, None, 1.0]


def test_another_run_has_the_same_losses_and_pictures(done, tiny, tmp_path):
    again = compare(
        composed("compare", *tiny, f"output={tmp_path}/sub/overview.jpg"), tmp_path / "run"
    )
    for name, mode in again.modes.items():
        first = done[0].modes[name]
        assert (mode.losses, mode.final_loss) == (first.losses, first.final_loss)
        assert mode.peak_memory_bytes == first.peak_memory_bytes
        picture = (tmp_path / "run" / mode.image).read_bytes()
        assert picture == (done[1] / mode.image).read_bytes()
    overview = images.read(tmp_path / "sub" / "overview.jpg")
    assert overview.size == images.read(tmp_path / "run" / "comparison.png").size


def test_loss_mode_names_the_reference(tiny, tmp_path):
    config = composed(
        "compare", *tiny, "loss_mode=fake_backward", "optimizer=adam", "steps=1", "scales=1"
    )
    comparison = compare(config, tmp_path)
    assert comparison.reference == "fake_backward"
    assert comparison.modes["fake_backward"].gradient_relative_error == 0
    assert 0 < comparison.modes["loss_attribute"].gradient_relative_error <= 1e-10


def test_gradient_errors_find_a_weight_that_is_not_squared(tiny, monkeypatch):
    job = prepare(composed("compare", *tiny, "precision=float64"))
    wrong = replace(fake_backward.MODE, style=fake_backward.StyleLoss)
    monkeypatch.setitem(LOSS_MODES, "fake_backward", wrong)
    errors = gradient_errors(job, "loss_attribute", [job.pictures.content])
    assert errors["fake_backward"] > 0.01
    assert errors["autograd_function"] <= 1e-10


def test_relative_errors_by_hand():
    gradients = {"a": torch.tensor([3.0, 4.0]), "b": torch.tensor([3.0, 3.0])}
    assert relative_errors(gradients, "a") == {"a": 0.0, "b": pytest.approx(0.2)}
    zero = {"a": torch.zeros(2), "b": torch.tensor([3.0, 4.0])}
    assert relative_errors(zero, "a") == {"a": 0.0, "b": 5.0}


def test_the_objective_is_the_one_that_stylize_reports(done, tiny):
    comparison, folder = done
    job = prepare(composed("compare", *tiny))
    picture = images.read(folder / "loss_attribute.png").rgb.requires_grad_()
    losses = objective_at(job, LOSS_MODES["loss_attribute"], 48).evaluate(picture).as_floats()
    # The file has 8 bits per sample.
    assert losses["total"] == pytest.approx(comparison.modes["loss_attribute"].final_loss, rel=0.02)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("rounds=0", "rounds=0 must be 1 or more"),
        ("points=1", "points=1 must be 2 (the start and the end) to 1000"),
        ("points=1001", "points=1001 must be 2"),
        ("points=99999999999999999999", "points=99999999999999999999 is too large"),
        ("seed=-1", "seed=-1 must be 0 or more"),
        ("seed=9223372036854775808", "must be below 2^63"),
        ("loss_mode.name=none", "unknown loss mode 'none'"),
        ("steps=0", "steps=0"),
        ("output=picture.txt", "unknown extension '.txt'"),
        ("content=nowhere.jpg", "nowhere.jpg"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(override, message, tiny, tmp_path):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        compare(composed("compare", *tiny, override), tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_the_folder_should_be_is_an_error(tiny, tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        compare(composed("compare", *tiny), tmp_path / "run")


def drive(monkeypatch, name, differentiate):
    """Let a loss mode be driven by another function."""
    monkeypatch.setitem(LOSS_MODES, name, replace(LOSS_MODES[name], differentiate=differentiate))


def test_ctrl_c_leaves_finished_pictures_only(tiny, tmp_path, monkeypatch):
    def pressed(terms, prior):
        raise KeyboardInterrupt

    drive(monkeypatch, list(LOSS_MODES)[1], pressed)
    with pytest.raises(KeyboardInterrupt):
        compare(composed("compare", *tiny, "steps=1"), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"{next(iter(LOSS_MODES))}.png"}


def test_a_run_that_gives_up_names_its_mode(tiny, tmp_path, monkeypatch):
    def broken(terms, prior):
        return [each * math.nan for each in fake_backward.MODE.differentiate(terms, prior)]

    drive(monkeypatch, "fake_backward", broken)
    with pytest.raises(UserError, match="under fake_backward: the loss"):
        compare(composed("compare", *tiny), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_script_runs(tiny, tmp_path):
    command = [sys.executable, "-W", "error", str(ROOT / "scripts" / "compare.py"), *tiny]
    command += [f"hydra.run.dir={tmp_path}/run", "steps=2", "rounds=1", "points=2"]
    finished = subprocess.run(
        command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert "| fake_backward" in finished.stdout
    assert f"{tmp_path}/run/comparison.md" in finished.stdout
    assert {path.name for path in (tmp_path / "run").iterdir()} >= FILES
    json.loads((tmp_path / "run" / "comparison.json").read_text())


@pytest.mark.cuda
def test_on_a_gpu(tiny, tmp_path):
    comparison = compare(composed("compare", *tiny, "device=cuda"), tmp_path)
    for mode in comparison.modes.values():
        assert mode.gradient_relative_error <= 1e-10
        assert mode.peak_memory_bytes > 0
    assert {path.name for path in tmp_path.iterdir()} == FILES
