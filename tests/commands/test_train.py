"""Whole runs: files in, a pastiche out, by the script and by the function that it calls."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torchvision
from helpers import MODES, ROOT, Bowl, composed, picture, run_script, with_bowl
from omegaconf import OmegaConf
from safetensors.torch import save_file

from styletransfer.config import TrainConfig
from styletransfer.pictures import images
from styletransfer.runs import recorded_run as work_module
from styletransfer.runs.paint import paint
from styletransfer.runs.watchers import StepPictures
from styletransfer.system.files import atomic

SCRIPT = ROOT / "scripts" / "train.py"
PRESETS = sorted(path.stem for path in (ROOT / "configs" / "experiment").glob("*.yaml"))

pytestmark = pytest.mark.usefixtures("tiny_vgg")


def configured(photos, *overrides):
    """The tiny preset on two pictures."""
    content, style = photos
    config = composed(
        "train",
        "experiment=tiny",
        "snapshot_every=3",
        f"content={content}",
        f"style={style}",
        *overrides,
    )
    assert isinstance(config, TrainConfig)
    return config


def metrics_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def files_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


# A run and what it leaves behind.


def test_run_folder(photos, tmp_path, capsys):
    outcome = paint(configured(photos), tmp_path / "run")
    assert files_in(tmp_path / "run") == {
        "pastiche.png",
        "content_resized.png",
        "metrics.jsonl",
        "run.json",
        "snapshots/step_00003.png",
        "snapshots/step_00006.png",
    }
    assert outcome.picture == tmp_path / "run" / "pastiche.png"
    assert (outcome.device, outcome.precision) == ("cpu", "float32")
    assert images.read(outcome.picture).size == (24, 32)
    assert outcome.result.steps == 6
    assert outcome.result.problem is None
    assert capsys.readouterr().out == ""  # the library prints nothing

    lines = metrics_of(tmp_path / "run")
    losses = ["total", "style/relu1_1", "content/relu2_1", "style/relu2_1", "total_variation"]
    assert [list(line) for line in lines] == [["step", "scale", "width", "height", *losses]] * 6
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [line["scale"] for line in lines] == [1, 1, 1, 2, 2, 2]
    assert [(line["width"], line["height"]) for line in lines] == [(16, 12)] * 3 + [(32, 24)] * 3
    for line in lines:
        assert line["total"] == pytest.approx(sum(line[name] for name in losses[1:]), rel=1e-6)
    assert outcome.result.losses["total"] < lines[3]["total"]


def test_pastiche_file_holds_the_result(photos, tmp_path):
    outcome = paint(configured(photos), tmp_path)
    saved = images.read(outcome.picture).rgb
    assert (saved - outcome.result.image).abs().max() <= 0.5 / 255 + 1e-6


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_every_mode_with_every_optimizer(photos, tmp_path, mode, optimizer):
    config = configured(photos, f"loss_mode={mode}", f"optimizer={optimizer}", "steps=12")
    outcome = paint(config, tmp_path)
    first = next(line for line in metrics_of(tmp_path) if line["scale"] == 2)
    assert outcome.result.losses["total"] < first["total"]


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_every_mode_makes_the_same_picture(photos, tmp_path, optimizer):
    pictures = [
        paint(
            configured(photos, f"loss_mode={mode}", f"optimizer={optimizer}", "precision=float64"),
            tmp_path / mode,
        ).result.image
        for mode in MODES
    ]
    assert torch.allclose(pictures[0], pictures[1], atol=1e-5)
    assert torch.allclose(pictures[0], pictures[2], atol=1e-5)


@pytest.mark.parametrize("precision", ["bfloat16", "float32", "float64"])
def test_every_precision(photos, tmp_path, precision):
    outcome = paint(configured(photos, f"precision={precision}"), tmp_path)
    assert outcome.precision == precision
    assert outcome.result.image.dtype == torch.float32


@pytest.mark.parametrize("extension", ["png", "jpg", "jpeg", "webp", "tif", "tiff", "PNG"])
def test_output_goes_where_it_is_wanted(photos, tmp_path, extension):
    target = tmp_path / "new folder" / f"my pastiche.{extension}"
    outcome = paint(configured(photos, f"output='{target}'"), tmp_path / "run")
    assert outcome.picture == target
    saved = images.read(target).rgb
    assert (saved - outcome.result.image).abs().mean() < (0.05 if "j" in extension else 0.002)
    kept = images.read(tmp_path / "run" / "pastiche.png").rgb
    assert (kept - outcome.result.image).abs().max() <= 0.5 / (65535 if "tif" in extension else 255)


@pytest.mark.parametrize("extension", ["png", "webp", "tiff"])
def test_the_contents_transparency_survives(photos, tmp_path, extension):
    alpha = torch.zeros(1, 1, 24, 32)
    alpha[..., 8:] = 1.0
    content = tmp_path / "transparent.png"
    images.write(content, picture(0, 24, 32), alpha)
    config = configured((content, photos[1]), f"output={tmp_path}/out.{extension}", "size=16")
    outcome = paint(config, tmp_path)
    expected = images.resize_picture(images.read(content), 16).alpha
    assert (images.read(outcome.picture).alpha - expected).abs().max() <= 0.5 / 255 + 1e-6


@pytest.mark.parametrize("color", ["content_luminance", "content_palette"])
def test_colors_of_every_file(photos, tmp_path, color):
    given = [f"color={color}", "snapshot_every=6", f"output={tmp_path}/out.png"]
    outcome = paint(configured(photos, *given), tmp_path / "run")
    files = [tmp_path / "out.png", *(tmp_path / "run").glob("*/*.png")]
    assert len(files) == 2
    for file in [tmp_path / "out.png", tmp_path / "run" / "pastiche.png"]:
        saved = images.read(file).rgb
        assert (saved - outcome.result.picture).abs().max() <= 0.5 / 255 + 1e-6
    plain = paint(configured(photos), tmp_path / "plain").result
    assert (outcome.result.losses == plain.losses) is (color == "content_luminance")


def test_init_from_a_file(photos, tmp_path):
    start = tmp_path / "start.png"
    images.write(start, picture(7, 24, 32))
    config = configured(photos, f"init={start}", "scales=1", "snapshot_every=1")
    paint(config, tmp_path / "run")
    first = images.read(tmp_path / "run" / "snapshots" / "step_00001.png").rgb
    assert torch.equal(first, images.read(start).rgb)


def test_same_seed_same_file(photos, tmp_path):
    def made(folder, seed):
        config = configured(photos, "init=noise", f"seed={seed}")
        return paint(config, tmp_path / folder).picture.read_bytes()

    assert made("a", 1) == made("b", 1)
    assert made("c", 2) != made("a", 1)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_run_shrunk(photos, tmp_path, preset):
    overrides = ["features.weights=random", "size=32", "steps=3", "device=cpu"]
    outcome = paint(configured(photos, f"experiment={preset}", *overrides), tmp_path)
    assert outcome.result.steps == (3 + 84 if preset == "relay" else 3)
    assert outcome.result.problem is None
    assert outcome.picture.exists()


def test_an_existing_pastiche_is_replaced(photos, tmp_path):
    target = tmp_path / "out.png"
    target.write_bytes(b"older")
    paint(configured(photos, f"output={target}"), tmp_path / "run")
    assert images.read(target).size == (24, 32)


# Runs that end early.


def test_ctrl_c_writes_the_best_picture(photos, tmp_path, monkeypatch):
    def interrupted(self, iterate):
        if iterate.step == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(StepPictures, "__call__", interrupted)
    outcome = paint(configured(photos, "snapshot_every=1"), tmp_path)
    assert outcome.result.interrupted
    assert images.read(outcome.picture).size == (24, 32)
    assert [line["step"] for line in metrics_of(tmp_path)] == [1, 2, 3, 4, 5]
    assert files_in(tmp_path) >= {"pastiche.png", "metrics.jsonl"}
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_full_disk_for_snapshots_does_not_cost_the_picture(photos, tmp_path, monkeypatch, caplog):
    real = images.write

    def no_snapshots(path, *args, **kwargs):
        if Path(path).parent.name == "snapshots":
            with atomic(path):
                raise OSError(errno.ENOSPC, "No space left on device")
        real(path, *args, **kwargs)

    monkeypatch.setattr(images, "write", no_snapshots)
    outcome = paint(configured(photos, "snapshot_every=1"), tmp_path)
    assert outcome.result.steps == 6
    assert outcome.picture.exists()
    assert caplog.text.count("No space left on device") == 1


def test_metrics_that_cannot_be_written_do_not_cost_the_picture(photos, tmp_path, caplog):
    if not Path("/dev/full").exists():
        pytest.skip("needs a device that is always full")
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    outcome = paint(configured(photos), tmp_path)
    assert outcome.result.steps == 6
    assert outcome.picture.exists()
    assert caplog.text.count("No space left on device") == 1


def test_the_picture_is_written_before_the_watchers_leave(photos, tmp_path, monkeypatch):
    class Leaving(work_module.Metrics):
        def __exit__(self, *args):
            assert (tmp_path / "pastiche.png").exists()
            super().__exit__(*args)

    monkeypatch.setattr(work_module, "Metrics", Leaving)
    paint(configured(photos), tmp_path)


def test_nan_for_good_still_writes_the_best_picture(photos, tmp_path, monkeypatch):
    with_bowl(monkeypatch, Bowl(picture(5, 24, 32).float(), broken=range(4, 1000)))
    outcome = paint(configured(photos, "scales=1", "steps=100"), tmp_path)
    assert "not finite" in outcome.result.problem
    assert images.read(outcome.picture).size == (24, 32)
    assert metrics_of(tmp_path)[-1]["total"] is None


# The script itself.


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One real run of the script: its folder and the finished process."""
    folder = tmp_path_factory.mktemp("script")
    for seed, name in enumerate(("content.png", "style.png")):
        images.write(folder / name, picture(seed, 24, 32))
    overrides = ["experiment=tiny", "content=content.png", "style=style.png", "output=out.jpg"]
    return folder, run_script("train", *overrides, cwd=folder)


def test_script_prints_picture_losses_and_time(finished):
    _, done = finished
    assert done.returncode == 0, done.stderr
    losses, how, where = done.stdout.splitlines()
    assert re.match(r"total \S+  style/relu1_1 \S+  content/relu2_1 \S+", losses)
    assert re.fullmatch(r"done in \d+\.\d s, 6 steps, cpu, float32", how)
    assert where == "out.jpg"
    assert "Traceback" not in done.stderr


def test_script_leaves_a_run_folder_with_config_and_metrics(finished):
    folder, _ = finished
    assert images.read(folder / "out.jpg").size == (24, 32)
    (run,) = (folder / "outputs").glob("*/*")
    assert len(metrics_of(run)) == 6
    config = OmegaConf.load(run / ".hydra" / "config.yaml")
    assert (config.size, config.features.name, config.output) == (32, "vgg19", "out.jpg")


def test_script_runs_on_weights_given_by_path(tmp_path, photos):
    """As the acceptance command does, here with random weights in torchvision's layout."""
    model = torchvision.models.vgg19(weights=None).features[:6]  # to relu2_1
    state = {f"features.{name}": tensor for name, tensor in model.state_dict().items()}
    save_file(state, tmp_path / "weights.safetensors")
    done = run_script(
        "train",
        f"content={photos[0]}",
        f"style={photos[1]}",
        "output=out.png",
        "size=32",
        "features=bundled",
        "features.weights=weights.safetensors",
        "loss_mode=fake_backward",
        "optimizer=lbfgs",
        "objective.content_layers=[relu2_1]",
        "objective.style_layers=[relu1_1]",
        "steps=2",
        "device=cpu",
        "seed=0",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert images.read(tmp_path / "out.png").size == (24, 32)


@pytest.mark.usefixtures("signals")
def test_ctrl_c_on_the_script(tmp_path, photos):
    content, style = photos
    overrides = ["experiment=tiny", f"content={content}", f"style={style}", "output=out.png"]
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *overrides, "steps=1000000", "snapshot_every=1"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 300
        while not list(tmp_path.glob("outputs/*/*/snapshots/*.png")):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, err
    how = r"stopped early after \d+\.\d s, \d+ steps, cpu, float32"
    assert re.search(how + r"\ngo on with resume=\S+\nout\.png\n$", out)
    assert "Traceback" not in err
    assert images.read(tmp_path / "out.png").size == (24, 32)
    (run,) = (tmp_path / "outputs").glob("*/*")
    steps = [line["step"] for line in metrics_of(run)]
    assert steps == list(range(1, len(steps) + 1))
    assert not list(tmp_path.rglob("*.tmp"))
