"""Distillation: it starts well, learns, resumes exactly, and its result is a feature network."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from styletransfer.commands.distill.inherit import balance, choose_channels, inherit
from styletransfer.commands.distill.replay_buffer import Pool
from styletransfer.commands.distill.run import distill
from styletransfer.commands.distill.trainer import Distillation
from styletransfer.config import DistillConfig, FeaturesConfig
from styletransfer.errors import UserError
from styletransfer.features import build_features, vgg
from styletransfer.pictures import images
from styletransfer.pictures.crops import Crops, load_photos
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.lock import locked
from styletransfer.system.signals import Stopped

CPU = torch.device("cpu")
TINY = DistillConfig(
    teacher=FeaturesConfig(name="vgg19", weights="random", padding="zeros"),
    widths=[[16, 8], [16, 8], [16, 8, 8, 8], [16, 8, 8, 8], [16]],
    steps=6,
    batch=3,
    crop=32,
    pool=3,
    fit_batches=1,
    learning_rate=1e-3,
    device="cpu",
    look_every=2,
    checkpoint_every=1e-9,
)


def small_teacher(seed: int = 0) -> vgg.FeatureExtractor:
    network = vgg.build([[6, 6], [8, 8]])
    vgg.randomize(network, seed)
    return network


def pictures(count: int, size: int = 24) -> torch.Tensor:
    return Crops([], 0.0, size)(count, torch.Generator().manual_seed(3))


def test_balance_gives_every_relu_unit_energy_and_changes_no_direction() -> None:
    teacher, original = small_teacher(), small_teacher()
    batch = pictures(2)
    balance(teacher, batch)
    layers = ["relu1_1", "relu1_2", "relu2_1", "relu2_2"]
    before, after = original(batch, layers), teacher(batch, layers)
    for layer in layers:
        assert after[layer].square().mean() == pytest.approx(1.0, rel=1e-4)
        ratio = before[layer].norm() / after[layer].norm()
        torch.testing.assert_close(after[layer] * ratio, before[layer], rtol=1e-3, atol=1e-4)


def test_a_student_as_wide_as_its_teacher_inherits_it_whole() -> None:
    teacher = small_teacher()
    batch = pictures(4)
    student, channels = inherit(teacher, [[6, 6], [8, 8]], iter([batch]), 1)
    layers = ["relu1_2", "relu2_2"]
    ours, theirs = student(batch, layers), teacher(batch, layers)
    for layer in layers:
        error = (ours[layer] - theirs[layer]).square().mean() / theirs[layer].square().mean()
        assert error < 1e-3
    assert channels["conv2_2"].tolist() == list(range(8))


def test_channels_that_repeat_others_are_not_chosen() -> None:
    generator = torch.Generator().manual_seed(0)
    signal = torch.randn(3, 1000, generator=generator)
    repeated = torch.cat([signal, 2 * signal[:1], signal[1:2] + signal[2:3]])
    chosen = choose_channels(repeated @ repeated.T / 1000, torch.ones(5), 3)
    assert torch.linalg.matrix_rank(repeated[chosen]) == 3


def test_training_lowers_the_held_out_loss() -> None:
    config = replace(TINY, steps=30)
    run = Distillation(build_features(config.teacher), [], config, CPU)
    before = run.held_out(2)
    for _ in range(config.steps):
        run.advance()
    after = run.held_out(2)
    assert after["features"] < before["features"]
    assert after["gram"] < before["gram"]


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stop_at", [1, 3])
def test_a_stopped_run_ends_with_equal_bits(
    stop_at: int, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = distill(TINY, tmp_path / "whole").read_bytes()
    advance = Distillation.advance

    def interrupted(self: Distillation) -> dict[str, torch.Tensor]:
        if self.step == stop_at:
            os.kill(os.getpid(), number)
        return advance(self)

    monkeypatch.setattr(Distillation, "advance", interrupted)
    with pytest.raises(Stopped) as stopped:
        distill(TINY, tmp_path / "halves")
    assert stopped.value.status == 128 + number
    assert (tmp_path / "halves" / "student.safetensors").read_bytes() != whole
    monkeypatch.setattr(Distillation, "advance", advance)
    assert distill(TINY, tmp_path / "halves").read_bytes() == whole
    assert metrics_of(tmp_path / "halves") == metrics_of(tmp_path / "whole")


def metrics_of(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_killed_run_goes_on_from_its_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = distill(TINY, tmp_path / "whole").read_bytes()
    advance = Distillation.advance

    def killed(self: Distillation) -> dict[str, torch.Tensor]:
        if self.step == 4:
            raise SystemExit(9)
        return advance(self)

    monkeypatch.setattr(Distillation, "advance", killed)
    with pytest.raises(SystemExit):
        distill(TINY, tmp_path / "halves")
    monkeypatch.setattr(Distillation, "advance", advance)
    assert distill(TINY, tmp_path / "halves").read_bytes() == whole
    assert metrics_of(tmp_path / "halves") == metrics_of(tmp_path / "whole")


def test_the_result_loads_as_a_feature_network(tmp_path: Path) -> None:
    student = distill(TINY, tmp_path)
    network = build_features(FeaturesConfig(name="bundled", weights=str(student)))
    features = network(pictures(1, 48), ["relu1_1", "relu4_2", "relu5_1"])
    assert [tuple(feature.shape[1:]) for feature in features.values()] == [
        (16, 48, 48),
        (8, 6, 6),
        (16, 3, 3),
    ]
    assert all(feature.isfinite().all() for feature in features.values())
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "held_out" in line] == [0, 2, 4, 6]


def test_a_checkpoint_of_another_recipe_is_refused(tmp_path: Path) -> None:
    distill(replace(TINY, steps=2), tmp_path)
    with pytest.raises(UserError, match="another recipe"):
        distill(replace(TINY, steps=4), tmp_path)


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    Checkpoint(tmp_path / "checkpoint.pt").save({"run": 1})
    with pytest.raises(UserError, match="not a checkpoint of a distillation"):
        distill(TINY, tmp_path)


def test_two_distillations_do_not_share_a_folder(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(UserError, match="another run is at work"):
        distill(TINY, tmp_path)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(UserError, match="is not a checkpoint"):
        distill(TINY, tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("steps", 0, "steps=0"),
        ("crop", 40, "multiple of 16"),
        ("on_policy", 1.5, "between 0 and 1"),
        ("pool", 0, "pool=0"),
        ("learning_rate", float("nan"), "above 0"),
        ("look_every", 0, "look_every=0"),
        ("checkpoint_every", -1.0, "checkpoint_every=-1.0"),
        ("pictures", "no such folder", "not a folder"),
        ("teacher", FeaturesConfig(name="vgg19", weights="none.pth"), "no weights file"),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, key: str, value: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        distill(replace(TINY, **{key: value}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_broken_pictures_are_skipped_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    images.write(tmp_path / "good.png", pictures(1))
    (tmp_path / "bad.png").write_text("no picture")
    assert len(load_photos(tmp_path)) == 1
    assert "skipped 1 unreadable" in caplog.text


def test_a_folder_without_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no readable picture"):
        load_photos(tmp_path)


def test_crops_come_from_photos_at_the_given_share() -> None:
    photo = torch.ones(3, 20, 30)
    photo[0] = 0.25
    generator = torch.Generator().manual_seed(0)
    crops = Crops([photo], 1.0, 16)(5, generator)
    assert crops.shape == (5, 3, 16, 16)
    torch.testing.assert_close(crops.mean((0, 2, 3)), torch.tensor([0.25, 1.0, 1.0]))


def test_the_pool_optimises_its_pictures_under_the_student() -> None:
    torch.manual_seed(0)
    teacher = build_features(TINY.teacher)
    make = Crops([], 0.0, 32)
    pool = Pool.start(2, make, torch.Generator().manual_seed(1), CPU)
    before = pool.image.clone()
    generator = torch.Generator().manual_seed(2)
    after = pool.advance(teacher, [1], make, generator)
    assert torch.equal(pool.image[0], before[0])
    assert not torch.equal(pool.image[1], before[1])
    torch.testing.assert_close(after[0], pool.image[1])
    assert pool.image.min() >= 0
    assert pool.image.max() <= 1
    assert isinstance(teacher.layers["conv1_1"], nn.Conv2d)
    assert teacher.layers["conv1_1"].weight.grad is None
