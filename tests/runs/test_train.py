"""Complete runs of `train`, by the script and by the function `paint`."""

import os
import re

import pytest
from helpers import ROOT, composed, files_in, metrics_of
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from styletransfer.cli.hydrated import run_command
from styletransfer.job import groups
from styletransfer.pictures import images
from styletransfer.train import paint, train

PRESETS = sorted(path.stem for path in (ROOT / "configs" / "experiment").glob("*.yaml"))

pytestmark = pytest.mark.usefixtures("tiny_vgg")


def configured(photos, *overrides):
    """Return the tiny preset's TrainConfig for two pictures."""
    content, style = photos
    words = ["experiment=tiny", f"content={content}", f"style={style}"]
    return composed("train", *words, *overrides)


def test_run_folder(photos, tmp_path, capsys):
    run = paint(configured(photos), tmp_path / "run")
    made = {"pastiche.png", "content_resized.png", "metrics.jsonl", "run.json"}
    assert files_in(tmp_path / "run").keys() == made
    assert run.picture == tmp_path / "run" / "pastiche.png"
    assert (str(run.run.job.device), run.run.job.precision) == ("cpu", "float32")
    saved = images.read(run.picture).rgb
    assert saved.shape == (1, 3, 24, 32)
    assert (saved - run.outcome.image).abs().max() <= 0.5 / 255 + 1e-6
    assert (run.outcome.steps, run.outcome.problem) == (6, None)
    assert capsys.readouterr().out == ""  # the library prints nothing

    lines = metrics_of(tmp_path / "run")
    losses = ["total", "style/relu1_1", "content/relu2_1", "style/relu2_1", "total_variation"]
    assert [list(line) for line in lines] == [["step", "scale", "width", "height", *losses]] * 6
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [line["scale"] for line in lines] == [1, 1, 1, 2, 2, 2]
    assert [(line["width"], line["height"]) for line in lines] == [(16, 12)] * 3 + [(32, 24)] * 3
    for line in lines:
        assert line["total"] == pytest.approx(sum(line[name] for name in losses[1:]), rel=1e-5)


def test_regions_that_are_found_can_be_given_again(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(groups, "SIDE", 96)
    found = tmp_path / "found"
    paint(configured(photos, "content_regions=auto", "steps=1"), found)
    labels = {"content_regions.png", "style_regions/1.png"}
    assert labels < files_in(found).keys()
    words = [f"content_regions={found}/content_regions.png", f"style_regions={found}/style_regions"]
    run = paint(configured(photos, *words, "steps=1"), tmp_path / "given")
    assert {region.name for region in run.run.job.pictures.regions} <= {"red", "green", "blue"}
    assert not labels & files_in(tmp_path / "given").keys()


@pytest.mark.slow
def test_presets_run_shrunk(photos, tmp_path):
    for preset in PRESETS:
        words = ["features.weights=random", "size=32", "steps=2", "device=cpu"]
        if preset == "texture":
            words += ["content='1:1'"]
        run = paint(configured(photos, f"experiment={preset}", *words), tmp_path / preset)
        assert (run.outcome.steps, run.outcome.problem) == (2, None)
        assert run.picture.exists()


def test_the_script_prints_losses_time_and_folder(tmp_path, photos, capsys):
    words = [f"content={photos[0]}", f"style={photos[1]}", "loss_mode=fake_backward", "scales=1"]
    run_command(train, ["experiment=tiny", *words, "steps=2", "output=out.jpg"])
    losses, how, where = capsys.readouterr().out.splitlines()
    assert re.match(r"total \S+  style/relu1_1 \S+  content/relu2_1 \S+", losses)
    assert re.fullmatch(r"done in \d+\.\d s, 2 steps, cpu, float32", how)
    assert where == "out.jpg"
    assert images.read(tmp_path / "out.jpg").size == (24, 32)
    (run,) = (tmp_path / "outputs").glob("*/*")
    assert (run / "pastiche.png").exists()
    assert len(metrics_of(run)) == 2
    record = ["config.yaml", "hydra.yaml", "overrides.yaml"]
    assert sorted(os.listdir(run / ".hydra")) == record
    config, hydra, _ = (OmegaConf.load(run / ".hydra" / name) for name in record)
    assert (config.steps, config.features.name, config.output) == (2, "vgg19", "out.jpg")
    assert hydra.hydra.job.name == "train"
    assert not GlobalHydra.instance().is_initialized()
