"""Whole runs: files in, a pastiche out, by the script and by the function that it calls."""

import errno
import re
from pathlib import Path

import pytest
import torch
from helpers import ROOT, composed, metrics_of, picture
from omegaconf import OmegaConf
from safetensors.torch import save_file

from styletransfer import cli
from styletransfer.pictures import images
from styletransfer.runs import recorded_run
from styletransfer.runs.paint import paint
from styletransfer.system.files import atomic

PRESETS = sorted(path.stem for path in (ROOT / "configs" / "experiment").glob("*.yaml"))
PRESETS.remove("relay")  # which changes on its way: see test_steering.py

pytestmark = pytest.mark.usefixtures("tiny_vgg")


def configured(photos, *overrides):
    """The tiny preset on two pictures."""
    content, style = photos
    words = ["experiment=tiny", "snapshot_every=3", f"content={content}", f"style={style}"]
    return composed("train", *words, *overrides)


def files_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_run_folder(photos, tmp_path, capsys):
    run = paint(configured(photos), tmp_path / "run")
    assert files_in(tmp_path / "run") == {
        "pastiche.png",
        "content_resized.png",
        "metrics.jsonl",
        "run.json",
        "snapshots/step_00003.png",
        "snapshots/step_00006.png",
    }
    assert run.picture == tmp_path / "run" / "pastiche.png"
    assert (run.device, run.precision) == ("cpu", "float32")
    saved = images.read(run.picture).rgb
    assert saved.shape == (1, 3, 24, 32)
    assert (saved - run.result.image).abs().max() <= 0.5 / 255 + 1e-6
    assert (run.result.steps, run.result.problem) == (6, None)
    assert capsys.readouterr().out == ""  # the library prints nothing

    lines = metrics_of(tmp_path / "run")
    losses = ["total", "style/relu1_1", "content/relu2_1", "style/relu2_1", "total_variation"]
    assert [list(line) for line in lines] == [["step", "scale", "width", "height", *losses]] * 6
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [line["scale"] for line in lines] == [1, 1, 1, 2, 2, 2]
    assert [(line["width"], line["height"]) for line in lines] == [(16, 12)] * 3 + [(32, 24)] * 3
    for line in lines:
        assert line["total"] == pytest.approx(sum(line[name] for name in losses[1:]), rel=1e-5)


@pytest.mark.parametrize(
    ("extension", "color"),
    [("JPG", "style"), ("tif", "content_luminance")],
)
def test_output_has_the_colors_the_depth_and_the_transparency(photos, tmp_path, extension, color):
    alpha = torch.zeros(1, 1, 24, 32)
    alpha[..., 8:] = 1.0
    content, target = tmp_path / "content.png", tmp_path / "new folder" / f"my picture.{extension}"
    if extension != "JPG":
        images.write(content, picture(0, 24, 32), alpha)
    run = paint(configured((content, photos[1]), f"output='{target}'", f"color={color}"), tmp_path)
    assert run.picture == target
    saved, kept = images.read(target), images.read(tmp_path / "pastiche.png")
    lossy, depth = extension == "JPG", 65535 if extension == "tif" else 255
    errors = [(file.rgb - run.result.picture)[..., 8:].abs() for file in (saved, kept)]
    assert errors[0].mean() < (0.05 if lossy else 0.002)
    assert errors[1].max() <= 0.5 / depth + 1e-6
    for file in (saved, kept):
        assert (file.alpha is None) is lossy
        assert file.alpha is None or torch.equal(file.alpha, alpha)


def test_presets_run_shrunk(photos, tmp_path):
    for preset in PRESETS:
        words = ["features.weights=random", "size=32", "steps=2", "device=cpu"]
        run = paint(configured(photos, f"experiment={preset}", *words), tmp_path / preset)
        assert (run.result.steps, run.result.problem) == (2, None)
        assert run.picture.exists()


def test_a_full_disk_costs_snapshots_and_metrics_but_no_picture(
    photos, tmp_path, monkeypatch, caplog
):
    real = images.write

    def no_snapshots(path, *args, **kwargs):
        if Path(path).parent.name == "snapshots":
            with atomic(path):
                raise OSError(errno.ENOSPC, "No space left on device")
        real(path, *args, **kwargs)

    class Leaving(recorded_run.Metrics):
        def __exit__(self, *args):
            assert (tmp_path / "pastiche.png").exists()  # before the watchers leave
            super().__exit__(*args)

    monkeypatch.setattr(images, "write", no_snapshots)
    monkeypatch.setattr(recorded_run, "Metrics", Leaving)
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    run = paint(configured(photos, "snapshot_every=1"), tmp_path)
    assert run.result.steps == 6
    assert run.picture.exists()
    assert caplog.text.count("No space left on device") == 1 + Path("/dev/full").exists()


def test_script_on_weights_given_by_path(tmp_path, photos, seeded, monkeypatch, capsys):
    """As the acceptance command does, here with random weights in torchvision's layout."""
    state = {}
    for number, inputs, outputs in ((0, 3, 64), (2, 64, 64), (5, 64, 128)):  # to relu2_1
        state[f"features.{number}.weight"] = torch.randn(outputs, inputs, 3, 3) / 3 / inputs**0.5
        state[f"features.{number}.bias"] = torch.zeros(outputs)
    save_file(state, tmp_path / "weights.safetensors")
    words = [
        *(f"content={photos[0]}", f"style={photos[1]}", "output=out.jpg", "size=32", "steps=2"),
        *("features=bundled", "features.weights=weights.safetensors", "loss_mode=fake_backward"),
        *("objective.content_layers=[relu2_1]", "objective.style_layers=[relu1_1]", "device=cpu"),
        *("precision=float32", "seed=0"),
    ]
    monkeypatch.chdir(tmp_path)
    cli.script("train")(words)
    losses, how, where = capsys.readouterr().out.splitlines()
    assert re.match(r"total \S+  style/relu1_1 \S+  content/relu2_1 \S+", losses)
    assert re.fullmatch(r"done in \d+\.\d s, 2 steps, cpu, float32", how)
    assert where == "out.jpg"
    assert images.read(tmp_path / "out.jpg").size == (24, 32)
    (run,) = (tmp_path / "outputs").glob("*/*")
    assert len(metrics_of(run)) == 2
    config = OmegaConf.load(run / ".hydra" / "config.yaml")
    assert (config.size, config.features.name, config.output) == (32, "bundled", "out.jpg")
