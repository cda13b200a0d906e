"""Distillation: it starts well, learns, resumes exactly, and its result is a feature network."""

import copy
import json
import math
import os
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from styletransfer.commands.distill import trainer
from styletransfer.commands.distill.inherit import balance, choose_channels, inherit
from styletransfer.commands.distill.lesson import content_gradient, cut
from styletransfer.commands.distill.replay_buffer import ReplayBuffer, gram
from styletransfer.commands.distill.run import distill
from styletransfer.commands.distill.trainer import Distillation
from styletransfer.config import DistillConfig, FeaturesConfig
from styletransfer.errors import UserError
from styletransfer.features import build_features, vgg
from styletransfer.features.weights import read
from styletransfer.pictures.crops import Crops
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.lock import locked
from styletransfer.system.signals import STOPPING, Stopped

CPU = torch.device("cpu")
TINY = DistillConfig(
    teacher=FeaturesConfig(name="vgg19", weights="random", padding="zeros"),
    widths=[[16, 8], [16, 8], [16, 8, 8, 8], [16, 8, 8, 8], [16]],
    steps=6,
    batch=3,
    crop=32,
    replay_buffer=3,
    fit_batches=1,
    learning_rate=1e-3,
    device="cpu",
    look_every=2,
    checkpoint_every=1e-9,
)

# With the content loss's gradient, at a layer as wide as the teacher's.
ALL_LOSSES = replace(
    TINY,
    widths=[[64, 8], *TINY.widths[1:]],
    batches=2,
    passes=2,
    content_gradient_weight=0.5,
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


def test_a_student_that_is_taken_over_is_recognized_and_scaled_to_its_teacher() -> None:
    teacher, batch, widths = small_teacher(), pictures(4), [[6, 4], [8, 8]]
    first, channels = inherit(teacher, widths, iter([batch]), 1)
    for name, factor in (("conv1_2", 3.0), ("conv2_1", 0.5)):
        for parameter in teacher.layers[name].parameters():
            parameter.mul_(factor)
    second, recognized = inherit(teacher, widths, iter([batch]), 1, first, frozen=1)
    assert list(recognized) == ["conv1_2", "conv2_1", "conv2_2"]
    for name, taken in recognized.items():
        assert taken.tolist() == channels[name].tolist()
    ours, theirs = second(batch, ["relu1_2"]), teacher(batch, ["relu1_2"])
    wanted = theirs["relu1_2"][:, channels["conv1_2"]]
    torch.testing.assert_close(ours["relu1_2"], wanted, rtol=0.02, atol=0.02)


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
    assert run.optimizer.param_groups[0]["lr"] == 0
    after = run.held_out(2)
    assert after["features"] < before["features"]
    assert after["gram"] < before["gram"]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a student to go on from."""
    return str(distill(replace(TINY, steps=1), tmp_path_factory.mktemp("start")))


def test_frozen_convolutions_are_those_of_the_start(start: str, tmp_path: Path) -> None:
    widths = [*TINY.widths[:3], [16, 8, 10, 12], [16]]
    config = replace(TINY, widths=widths, start=start, frozen=9, batches=2, passes=2, steps=2)
    begun = distill(replace(config, steps=1, learning_rate=1e-9), tmp_path / "begun")
    kept, began, trained = (read(f) for f in (Path(start), begun, distill(config, tmp_path / "t")))
    for name, key in vgg.state_keys(widths).items():
        kernel = trained[f"{key}.weight"]
        if name < "conv4_2":
            assert torch.equal(kernel, kept[f"{key}.weight"])
        else:
            assert not torch.equal(kernel, began[f"{key}.weight"])


def test_only_as_many_convolutions_are_trained_as_asked_for(tmp_path: Path) -> None:
    """Below a layer with all channels the widths change: those learn, those above are kept."""
    upper = [[256, 8, 8, 8], *TINY.widths[3:]]
    start = distill(replace(TINY, widths=[*TINY.widths[:2], *upper], steps=1), tmp_path / "start")
    widths = [[16, 6], [16, 7], *upper]
    config = replace(TINY, widths=widths, start=str(start), trained=4, steps=2)
    begun = distill(replace(config, steps=1, learning_rate=1e-9), tmp_path / "begun")
    kept, began, trained = (read(f) for f in (start, begun, distill(config, tmp_path / "run")))
    for name, key in vgg.state_keys(widths).items():
        kernel = trained[f"{key}.weight"]
        assert torch.equal(kernel, began[f"{key}.weight"]) == (name not in {
            "conv1_2", "conv2_1", "conv2_2", "conv3_1"
        })  # fmt: skip
        if name > "conv3_2":
            cosine = torch.cosine_similarity(kernel.flatten(), kept[f"{key}.weight"].flatten(), 0)
            assert cosine > 0.999  # taken over and scaled


def test_a_start_of_the_same_widths_is_trained_further() -> None:
    """Other pictures have scaled the teacher otherwise, and the start follows."""
    first = Distillation(build_features(TINY.teacher), [], TINY, CPU)
    start, config = copy.deepcopy(first.student), replace(TINY, seed=1)
    second = Distillation(build_features(TINY.teacher), [], config, CPU, start=start)
    images = pictures(2, 32)
    before, after = (each(images, ["relu1_1", "relu5_1"]) for each in (start, second.student))
    assert torch.equal(before["relu1_1"], after["relu1_1"])
    scale = after["relu5_1"].norm() / before["relu5_1"].norm()
    torch.testing.assert_close(after["relu5_1"], scale * before["relu5_1"], rtol=1e-4, atol=1e-4)
    kernel = second.student.layers["conv5_1"].weight.detach().clone()
    second.advance()
    assert not torch.equal(second.student.layers["conv5_1"].weight, kernel)


def test_a_step_goes_over_its_batches_as_often_as_asked() -> None:
    updates = []
    for batches, passes in ((1, 1), (2, 3)):
        config = replace(TINY, batches=batches, passes=passes)
        run = Distillation(build_features(config.teacher), [], config, CPU)
        run.advance()
        updates.append(run.optimizer.state[run.trained[0]]["step"].item())
    assert updates == [1, 6]


def test_a_run_of_all_losses_goes_on_with_equal_bits() -> None:
    whole = Distillation(build_features(ALL_LOSSES.teacher), [], ALL_LOSSES, CPU)
    whole.advance()
    state = copy.deepcopy(whole.state_dict())
    rest = Distillation(build_features(ALL_LOSSES.teacher), [], ALL_LOSSES, CPU, state)
    assert whole.advance() == rest.advance()


def test_training_lowers_the_error_of_the_content_gradient() -> None:
    run = Distillation(build_features(ALL_LOSSES.teacher), [], replace(ALL_LOSSES, steps=20), CPU)
    found = [run.advance()["content_gradient"].item() for _ in range(20)]
    assert sum(found[-5:]) < 0.8 * sum(found[:5])


def test_the_content_gradient_is_the_slope_of_the_content_loss() -> None:
    """Along a random direction, against a difference of two losses."""
    network = vgg.build(TINY.widths).double()
    vgg.randomize(network, 0)
    head, rest = cut(network, "relu2_1")
    seen, contents = (
        head(pictures(1).double() + shift, ["relu2_1"])["relu2_1"] for shift in (0, 0.3)
    )

    def loss(at: torch.Tensor) -> torch.Tensor:
        ours, theirs = (rest(x, ["relu4_2"])["relu4_2"] for x in (at, contents))
        return (ours - theirs).square().sum() / theirs.square().sum()

    towards = torch.randn(seen.shape, generator=torch.Generator().manual_seed(1)).double() * 1e-6
    slope = (content_gradient(rest, seen, contents) * towards).sum()
    torch.testing.assert_close(
        slope, (loss(seen + towards) - loss(seen - towards)) / 2, rtol=1e-4, atol=0
    )


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("number", STOPPING)
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


def test_a_signal_while_the_optimizer_is_made_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = trainer.Adam

    def pressed(*args: object, **options: object) -> torch.optim.Optimizer:
        os.kill(os.getpid(), signal.SIGTERM)
        return made(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(trainer, "Adam", pressed)
    with pytest.raises(Stopped):
        distill(TINY, tmp_path)
    assert Checkpoint(tmp_path / "checkpoint.pt").load()["step"] == 0


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


def test_the_state_holds_all_that_the_rest_of_a_run_depends_on() -> None:
    config = replace(TINY, steps=20)  # long enough for a rise of the learning rate
    whole = Distillation(build_features(config.teacher), [], config, CPU)
    for _ in range(2):
        whole.advance()
    state = copy.deepcopy(whole.state_dict())
    rest = Distillation(build_features(config.teacher), [], config, CPU, state)
    assert rest.step == 2
    for _ in range(3):
        assert whole.advance() == rest.advance()
    ours, theirs = rest.weights(), whole.weights()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


@pytest.mark.parametrize("key", ["gram_weight", "inner_weight"])
def test_each_loss_has_its_weight(key: str) -> None:
    found = []
    for weight in (0.0, 5.0):
        run = Distillation(
            build_features(TINY.teacher), [], replace(TINY, **{key: weight}, seed=2**63 - 1), CPU
        )
        run.advance()
        found.append(run.weights())
    assert any(not torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_a_training_that_diverges_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="left the finite numbers at step 0") as caught:
        distill(replace(TINY, gram_weight=3e38, inner_weight=3e38), tmp_path)
    assert "\n" not in str(caught.value)
    start = Distillation(build_features(TINY.teacher), [], TINY, CPU).weights()
    kept = load_file(tmp_path / "student.safetensors")
    assert all(torch.equal(kept[key], start[key]) for key in start)


def test_a_held_out_loss_that_is_not_finite_is_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Distillation, "held_out", lambda self: {"features": math.nan, "gram": 1.0})
    distill(replace(TINY, steps=1), tmp_path)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    first = json.loads(lines[0], parse_constant=pytest.fail)
    assert first == {"step": 0, "held_out": {"features": None, "gram": 1.0}}


@pytest.mark.parametrize("value", [1e6, math.inf, math.nan])
def test_a_student_that_float16_cannot_hold_is_never_handed_out(value: float) -> None:
    run = Distillation(build_features(TINY.teacher), [], TINY, CPU)
    run.trained[0].fill_(value)
    for hand_out in (run.weights, run.state_dict):
        with pytest.raises(UserError, match="the last checkpoint stands"):
            hand_out()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("steps", 0, "steps=0"),
        ("batches", 0, "batches=0"),
        ("passes", 0, "passes=0"),
        ("crop", 40, "multiple of 16"),
        ("crop", 2**40, "at most 1048576"),
        ("on_policy", 1.5, "between 0 and 1"),
        ("replay_buffer", 0, "replay_buffer=0"),
        ("fit_batches", 0, "fit_batches=0"),
        ("look_every", 0, "look_every=0"),
        ("checkpoint_every", -1.0, "checkpoint_every=-1.0"),
        ("learning_rate", math.nan, "above 0"),
        ("learning_rate", 0.0, "above 0"),
        ("learning_rate", 1e30, "at most 1"),
        ("gram_weight", math.nan, "gram_weight=nan must be a finite number"),
        ("inner_weight", math.inf, "inner_weight=inf must be a finite number"),
        ("inner_weight", -1.0, "inner_weight=-1.0 must be a finite number"),
        ("photo_share", math.nan, "between 0 and 1"),
        ("on_policy", 1.0, "on_policy=1.0 leaves no other picture"),
        ("batch", 9, "must hold the 4 on-policy pictures"),
        ("seed", -1, "seed=-1"),
        ("seed", 2**63, "below 2^63"),
        ("widths", [], "2, 2, 4, 4 and 1 to 4"),
        ("widths", [[4, 4]], "2, 2, 4, 4 and 1 to 4"),
        ("widths", [*TINY.widths[:4], []], "2, 2, 4, 4 and 1 to 4"),
        ("widths", [*TINY.widths[:4], [16, 8, 8, 8, 8]], "2, 2, 4, 4 and 1 to 4"),
        ("widths", [*TINY.widths[:4], [0]], "1 channel or more each"),
        ("widths", [*TINY.widths[:4], [-3]], "1 channel or more each"),
        ("widths", [*TINY.widths[:4], [513]], "conv5_1 513 channels; the teacher has 512 there"),
        ("teacher", FeaturesConfig(name="vgg16"), "teacher.name=vgg16 must be vgg19"),
        ("teacher", FeaturesConfig(name="vgg19", pooling="average"), "teacher.pooling=average"),
        ("pictures", "no such folder", "not a folder"),
        ("teacher", FeaturesConfig(name="vgg19", weights="none.pth"), "no weights file"),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, key: str, value: object, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        distill(replace(TINY, **{key: value}), tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_the_content_gradient_needs_the_content_layer_among_the_trained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs conv4_2 among the trained=4 convolutions"):
        distill(replace(ALL_LOSSES, trained=4), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("frozen", 0, "frozen=0 must be 1 to 11"),
        ("frozen", 12, "frozen=12 must be 1 to 11"),
        ("start", None, "frozen=9 needs"),
        ("start", "none.safetensors", "no weights file"),
        ("widths", [[16, 9], *TINY.widths[1:]], "conv1_2 9 channels; "),
        ("content_gradient_weight", 0.5, "that is as wide as VGG-19's"),
        ("trained", 0, "trained=0 must reach, after the 9 frozen ones, the convolution of a"),
        ("trained", 3, "trained=3 must reach, after the 9 frozen ones, the convolution of a"),
        ("replay_buffer", 1, "must hold the 2 on-policy pictures of a step"),
    ],
)
def test_a_start_that_does_not_fit_is_named(
    start: str, tmp_path: Path, key: str, value: object, message: str
) -> None:
    config = replace(TINY, start=start, frozen=9, batches=2)
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        distill(replace(config, **{key: value}), tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_the_replay_buffer_makes_adams_steps() -> None:
    """Two steps of torch's own, from the same picture on the same loss."""
    student, make = build_features(TINY.teacher), Crops([], 0.0, 32)
    buffer = ReplayBuffer.start(1, make, torch.Generator().manual_seed(1), CPU)
    buffer.image.mul_(0.5)  # far from the content as well
    buffer.weight.fill_(1.0)
    image = buffer.image.clone().requires_grad_()
    layers = ["relu1_1", "relu2_1", "relu3_1", "relu4_1", "relu5_1"]
    targets, content = student(buffer.style, layers), student(buffer.content, ["relu4_2"])

    def relative(ours: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
        return (ours - theirs).square().sum() / theirs.square().sum()

    adam = torch.optim.Adam([image], lr=buffer.rate.item(), betas=(0.9, 0.99), eps=1e-12)
    for _ in range(2):
        features = student(image, [*layers, "relu4_2"])
        loss = buffer.weight[0] * relative(features["relu4_2"], content["relu4_2"])
        for layer in layers:
            loss = loss + relative(gram(features[layer]), gram(targets[layer])) / len(layers)
        adam.zero_grad()
        loss.backward()
        adam.step()
        with torch.no_grad():
            image.clamp_(0, 1)
    after = buffer.advance(student, [0], make, torch.Generator().manual_seed(2))
    assert buffer.age.tolist() == [2]
    assert (after - buffer.content).abs().mean() > 0.01
    assert (after - image).abs().mean() < 1e-4


def test_the_replay_buffer_optimises_its_pictures_under_the_student() -> None:
    torch.manual_seed(0)
    teacher = build_features(TINY.teacher)
    make = Crops([], 0.0, 32)
    buffer = ReplayBuffer.start(2, make, torch.Generator().manual_seed(1), CPU)
    before = buffer.image.clone()
    generator = torch.Generator().manual_seed(2)
    after = buffer.advance(teacher, [1], make, generator)
    assert torch.equal(buffer.image[0], before[0])
    assert not torch.equal(buffer.image[1], before[1])
    torch.testing.assert_close(after[0], buffer.image[1])
    assert buffer.image.min() >= 0
    assert buffer.image.max() <= 1
    assert isinstance(teacher.layers["conv1_1"], nn.Conv2d)
    assert teacher.layers["conv1_1"].weight.grad is None
