"""Distillation: it starts well, learns, resumes exactly, and its result is a feature network."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from helpers import (
    check_error,
    check_refused,
    ended_early,
    metrics_of,
    picture,
    relative_error,
    tiny_network,
)

from styletransfer.features import build_features
from styletransfer.networks.crops import Crops
from styletransfer.settings import FeaturesConfig
from styletransfer.system.checkpoint import Checkpoint
from tools.distill import trainer
from tools.distill.command import distill
from tools.distill.config import DistillConfig, conv_widths
from tools.distill.errors import errors, gram
from tools.distill.inherit import inherit
from tools.distill.trainer import Distillation

pytestmark = pytest.mark.usefixtures("tiny_vgg")
CPU = torch.device("cpu")
RANDOM = FeaturesConfig(name="vgg19", weights="random", padding="zeros")
TINY = DistillConfig(
    teacher=RANDOM,
    widths=[[4, 2], [4, 2], [4, 2, 2, 2], [4, 2, 2, 2], [4]],
    steps=4,
    batch=3,
    crop=16,
    replay_buffer=3,
    fit_batches=1,
    learning_rate=1e-3,
    device="cpu",
    look_every=2,
    checkpoint_every=1e-9,
)
LAYERS = ["relu1_1", "relu1_2", "relu2_1", "relu2_2"]


@pytest.fixture(autouse=True)
def _short_looks(monkeypatch):
    monkeypatch.setattr(trainer, "HELD_OUT_BATCHES", 1)


def run_of(config, start=None):
    return Distillation(build_features(config.teacher), [], config, CPU, start=start)


def crops(count, size=24):
    return Crops([], 0.0, size)(count, torch.Generator().manual_seed(3))


def test_a_student_as_wide_as_its_teacher_inherits_it_whole():
    teacher, batch = tiny_network(((6, 6), (8, 8)), padding="zeros").float(), crops(4)
    student, channels = inherit(teacher, [[6, 6], [8, 8]], [batch])
    ours, theirs = student(batch, LAYERS), teacher(batch, LAYERS)
    for layer in LAYERS:
        assert (ours[layer] - theirs[layer]).norm() < 0.03 * theirs[layer].norm()
    assert channels["conv2_2"].tolist() == list(range(8))


def test_errors_are_relative_and_averaged_by_kind():
    """At two layers of the losses and two between them; Gram matrices at one."""
    names = ("relu1_1", "relu4_2", "relu1_2", "relu2_2")
    ours, wanted = ({name: picture(seed + i) for i, name in enumerate(names)} for seed in (0, 10))
    style, content, *inner = (relative_error(ours[name], wanted[name]) ** 2 for name in names)
    grams = relative_error(gram(ours["relu1_1"]), gram(wanted["relu1_1"])) ** 2
    measured = {name: error.item() for name, error in errors(ours, wanted).items()}
    assert measured["features"] == pytest.approx((style + content) / 2)
    assert measured["inner"] == pytest.approx(sum(inner) / 2)
    assert measured["gram"] == pytest.approx(grams)
    assert measured["relu4_2"] == pytest.approx(content)


def test_convolutions_are_frozen_trained_and_taken_over_as_asked():
    """One is the start's, four wider or behind wider ones are trained, and those above stay."""
    start = run_of(TINY).student
    config = replace(TINY, widths=[[4, 3], [4, 3], *TINY.widths[2:]], trained=4)
    run = run_of(config, start)
    before = {name: run.student.layers[name].weight.detach().clone() for name in run.channels}
    run.advance()
    for name in conv_widths(config.widths):
        kernel, old = run.student.layers[name].weight, start.layers[name].weight
        if name in ("conv1_2", "conv2_1", "conv2_2", "conv3_1"):
            assert not torch.equal(kernel, before[name])
        elif name == "conv1_1":
            assert torch.equal(kernel, old)
        else:
            assert torch.equal(kernel, before[name])
            assert torch.cosine_similarity(kernel.flatten(), old.flatten(), dim=0) > 0.999


@pytest.mark.usefixtures("signals")
def test_the_result_is_a_feature_network_also_of_a_run_stopped_and_killed(tmp_path, monkeypatch):
    student = distill(TINY, tmp_path / "whole")
    network = build_features(FeaturesConfig(name="bundled", weights=str(student)))
    features = network(crops(1, 48), ["relu1_1", "relu4_2", "relu5_1"])
    assert [tuple(x.shape[1:]) for x in features.values()] == [(4, 48, 48), (2, 6, 6), (4, 3, 3)]
    metrics = metrics_of(tmp_path / "whole")
    assert [line["step"] for line in metrics if "held_out" in line] == [0, 2, 4]
    again = partial(distill, TINY, tmp_path / "halves")
    assert len([*ended_early(monkeypatch, Distillation, again)]) == 2
    assert again().read_bytes() == student.read_bytes()
    assert metrics_of(tmp_path / "halves") == metrics


def test_a_training_that_diverges_keeps_the_last_checkpoint(tmp_path):
    """A checkpoint of something else is refused by name."""
    diverging, checkpoint = replace(TINY, gram_weight=1e300), Checkpoint(tmp_path / "checkpoint.pt")
    check_error("left the finite numbers at step 0", distill, diverging, tmp_path)
    assert checkpoint.load()["step"] == 0
    check_error("another recipe", distill, TINY, tmp_path)
    checkpoint.save({"run": 1})
    check_error("not a checkpoint of a distil", distill, TINY, tmp_path)


def test_bad_settings_are_named_before_anything_is_written(tmp_path):
    bad = [
        ({"crop": 40}, "multiple of 16"),
        ({"batch": 9}, "must hold the 4 on-policy pictures"),
        ({"gram_weight": math.nan}, "gram_weight=nan must be a finite number"),
        ({"widths": [*TINY.widths[:4], [5]]}, "conv5_1 5 channels; the teacher has 4 there"),
        ({"trained": 0}, "trained=0 must reach, after the 1 frozen ones, the convolution of a"),
    ]
    check_refused(lambda **given: distill(replace(TINY, **given), tmp_path / "run"), bad)
    assert not (tmp_path / "run").exists()
