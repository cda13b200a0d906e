"""Distillation: it starts well, learns, resumes exactly, and its result is a feature network."""

import json
import math
import os
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import picture, relative_error, tiny_network
from torch import Tensor

from styletransfer.config import STYLE_LAYERS, FeaturesConfig
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor, build_features
from styletransfer.networks.training import generator_at
from styletransfer.pictures.crops import Crops
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.signals import Stopped
from tools.distill import trainer
from tools.distill.command import distill
from tools.distill.config import DistillConfig, conv_widths
from tools.distill.errors import errors, gram
from tools.distill.inherit import choose_channels, inherit
from tools.distill.replay_buffer import ReplayBuffer
from tools.distill.trainer import Distillation

# VGG-19 has four channels everywhere here.
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


@pytest.fixture(autouse=True)
def _short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "HELD_OUT_BATCHES", 1)


LAYERS = ["relu1_1", "relu1_2", "relu2_1", "relu2_2"]


def run_of(config: DistillConfig, start: FeatureExtractor | None = None) -> Distillation:
    return Distillation(build_features(config.teacher), [], config, CPU, start=start)


def crops(count: int, size: int = 24) -> Tensor:
    return Crops([], 0.0, size)(count, torch.Generator().manual_seed(3))


def small_teacher() -> FeatureExtractor:
    return tiny_network(((6, 6), (8, 8)), padding="zeros").float()


def test_a_student_as_wide_as_its_teacher_inherits_it_whole() -> None:
    teacher, batch = small_teacher(), crops(4)
    student, channels = inherit(teacher, [[6, 6], [8, 8]], [batch])
    ours, theirs = student(batch, LAYERS), teacher(batch, LAYERS)
    for layer in LAYERS:
        assert (ours[layer] - theirs[layer]).norm() < 0.03 * theirs[layer].norm()
    assert channels["conv2_2"].tolist() == list(range(8))


def test_a_student_that_is_taken_over_is_recognized_and_scaled_to_its_teacher() -> None:
    teacher, batch, widths = small_teacher(), crops(4), [[6, 4], [8, 8]]
    first, channels = inherit(teacher, widths, [batch])
    for name, factor in (("conv1_2", 3.0), ("conv2_1", 0.5)):
        for parameter in teacher.layers[name].parameters():
            parameter.mul_(factor)
    second, recognized = inherit(teacher, widths, [batch], first, frozen=1)
    assert list(recognized) == ["conv1_2", "conv2_1", "conv2_2"]
    for name, taken in recognized.items():
        assert taken.tolist() == channels[name].tolist()
    ours, theirs = second(batch, LAYERS), teacher(batch, LAYERS)
    wanted = theirs["relu1_2"][:, channels["conv1_2"]]
    torch.testing.assert_close(ours["relu1_2"], wanted, rtol=0.02, atol=0.02)
    scales = {layer: ours[layer].norm() / theirs[layer].norm() for layer in ("relu2_1", "relu2_2")}
    assert all(0.8 < scale < 1.2 for scale in scales.values())


def test_channels_that_repeat_others_are_not_chosen() -> None:
    signals = torch.randn(3, 1000, generator=torch.Generator().manual_seed(0))
    repeated = torch.cat([signals, 2 * signals[:1], signals[1:2] + signals[2:3]])
    covariance = repeated @ repeated.T / 1000
    chosen = choose_channels(covariance, torch.ones(5), 3)
    assert torch.linalg.matrix_rank(repeated[chosen]) == 3
    assert choose_channels(covariance, torch.tensor([0, 1.0, 0, 0, 0]), 1).tolist() == [1]


def test_errors_are_relative_and_averaged_by_kind() -> None:
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


def test_a_step_goes_down_the_weighted_sum_of_losses() -> None:
    """Adam's first step is the learning rate times the gradient's signs."""
    config = replace(TINY, on_policy=0.0, learning_rate=1e-6, gram_weight=3.0, inner_weight=2.0)
    run = run_of(config)
    generator = generator_at(config.seed, 0)
    torch.randperm(config.replay_buffer, generator=generator)
    images = run.make(config.batch, generator)

    def total() -> Tensor:
        losses = run._losses(images)
        return losses["features"] + 3.0 * losses["gram"] + 2.0 * losses["inner"]

    for parameter in run.trained:
        parameter.requires_grad_(True)
    gradients = torch.autograd.grad(total(), run.trained)
    before = [parameter.detach().clone() for parameter in run.trained]
    run.advance()
    for parameter, old, gradient in zip(run.trained, before, gradients, strict=True):
        clear = gradient.abs() > 1e-3 * gradient.abs().max()
        moved = (parameter.detach() - old)[clear]
        torch.testing.assert_close(moved, -1e-6 * gradient[clear].sign(), rtol=0, atol=2e-7)


def test_convolutions_are_frozen_trained_and_taken_over_as_asked() -> None:
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


def metrics_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.usefixtures("signals")
def test_the_result_is_a_feature_network_also_of_a_run_stopped_and_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    student = distill(TINY, tmp_path / "whole")
    network = build_features(FeaturesConfig(name="bundled", weights=str(student)))
    features = network(crops(1, 48), ["relu1_1", "relu4_2", "relu5_1"])
    assert [tuple(x.shape[1:]) for x in features.values()] == [(4, 48, 48), (2, 6, 6), (4, 3, 3)]
    metrics = metrics_of(tmp_path / "whole")
    assert [line["step"] for line in metrics if "held_out" in line] == [0, 2, 4]
    advance = Distillation.advance

    def ended(self: Distillation) -> dict[str, Tensor]:
        if self.step == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        if self.step == 3:
            raise SystemExit(9)  # killed: nothing is written any more
        return advance(self)

    monkeypatch.setattr(Distillation, "advance", ended)
    for end in (Stopped, SystemExit):
        with pytest.raises(end):
            distill(TINY, tmp_path / "halves")
    monkeypatch.setattr(Distillation, "advance", advance)
    assert distill(TINY, tmp_path / "halves").read_bytes() == student.read_bytes()
    assert metrics_of(tmp_path / "halves") == metrics


def test_a_training_that_diverges_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    """A checkpoint of something else is refused by name."""
    with pytest.raises(UserError, match="left the finite numbers at step 0"):
        distill(replace(TINY, gram_weight=1e300), tmp_path)
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt")
    assert checkpoint.load()["step"] == 0
    run = run_of(TINY)
    for value in (1e6, math.nan):  # neither of which a file can hold in float16
        run.trained[0].fill_(value)
        for hand_out in (run.weights, run.state_dict):
            with pytest.raises(UserError, match="the last checkpoint stands"):
                hand_out()
    with pytest.raises(UserError, match="another recipe"):
        distill(TINY, tmp_path)
    checkpoint.save({"run": 1})
    with pytest.raises(UserError, match="not a checkpoint of a distil"):
        distill(TINY, tmp_path)


BAD = [
    ({"steps": 0}, "steps=0 must be 1 or more"),
    ({"crop": 40}, "multiple of 16"),
    ({"on_policy": 1.5}, "on_policy=1.5 must be between 0 and 1"),
    ({"batch": 9}, "must hold the 4 on-policy pictures"),
    ({"gram_weight": math.nan}, "gram_weight=nan must be a finite number"),
    ({"widths": [[4, 4]]}, "2, 2, 4, 4 and 1 to 4"),
    ({"widths": [*TINY.widths[:4], [5]]}, "conv5_1 5 channels; the teacher has 4 there"),
    ({"teacher": FeaturesConfig(name="vgg16")}, "teacher.name=vgg16 must be vgg19"),
    ({"pictures": "no such folder"}, "not a folder"),
    ({"trained": 0}, "trained=0 must reach, after the 1 frozen ones, the convolution of a"),
]


def test_bad_settings_are_named_before_anything_is_written(tmp_path: Path) -> None:
    for settings, message in BAD:
        with pytest.raises(UserError, match=re.escape(message)) as caught:
            distill(replace(TINY, **settings), tmp_path / "run")
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "run").exists()


def test_the_replay_buffer_follows_its_loss_by_adams_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its gradients against autograd's of the loss; its steps against torch's own."""
    student, make = build_features(RANDOM), Crops([], 0.0, 32)
    buffer = ReplayBuffer.start(2, make, torch.Generator().manual_seed(1), CPU)
    first, row = buffer.image.clone(), slice(1, 2)
    image = first[row].clone().requires_grad_()
    features = student(image, [*STYLE_LAYERS, "relu4_2"])
    targets = student(buffer.style[row], STYLE_LAYERS)
    content = student(buffer.content[row], ["relu4_2"])["relu4_2"]
    loss = buffer.weight[1] * ((features["relu4_2"] - content).norm() / content.norm()) ** 2
    for layer in STYLE_LAYERS:
        target = gram(targets[layer])
        loss = loss + ((gram(features[layer]) - target).norm() / target.norm()) ** 2 / 5
    loss.backward()
    gradients: list[Tensor] = []
    step = buffer._adam

    def noted(index: Tensor, image: Tensor, gradient: Tensor) -> Tensor:
        gradients.append(gradient)
        return step(index, image, gradient)

    monkeypatch.setattr(buffer, "_adam", noted)
    after = buffer.advance(student, [1], make, torch.Generator().manual_seed(2))
    assert image.grad is not None
    assert (gradients[0] - image.grad).norm() < 1e-3 * image.grad.norm()
    leaf = first[row].clone()
    adam = torch.optim.Adam([leaf], lr=buffer.rate[1].item(), betas=(0.9, 0.99), eps=1e-12)
    for leaf.grad in gradients:
        adam.step()
        leaf.clamp_(0, 1)
    torch.testing.assert_close(after, leaf, rtol=0, atol=1e-5)
    assert buffer.age.tolist() == [0, 2]
    assert torch.equal(buffer.image, torch.cat([first[:1], after]))
