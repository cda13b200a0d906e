"""The judge of feature networks: its figures, its files, its bad input."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from styletransfer.commands.judge.command import main
from styletransfer.commands.judge.pairs import pair_names
from styletransfer.commands.judge.probes import PROBES, probe
from styletransfer.commands.judge.run import contact_sheet, judge
from styletransfer.commands.judge.verdict import Verdict, errors_under, gap_closed
from styletransfer.config import FeaturesConfig, JudgeConfig, ObjectiveConfig, PairConfig
from styletransfer.errors import UserError
from styletransfer.features import build_features, vgg
from styletransfer.functions import gram_matrix
from styletransfer.modes import LOSS_MODES, Term
from styletransfer.pictures import images

pytestmark = pytest.mark.usefixtures("tiny_vgg")
# Who paints where a feature network is judged.
NETWORKS = ("content", "random", "bundled", "vgg19")
RANDOM = FeaturesConfig(name="vgg19", weights="random", padding="zeros")


@pytest.fixture
def config(tmp_path: Path) -> JudgeConfig:
    generator = torch.Generator().manual_seed(0)
    for name, light in (("content", 1.0), ("style", 0.2)):
        noise = torch.rand(1, 3, 32, 40, generator=generator)
        images.write(tmp_path / f"{name}.png", light * noise)
    pair = PairConfig(str(tmp_path / "content.png"), str(tmp_path / "style.png"))
    return JudgeConfig(
        pairs=[pair],
        bundled=replace(RANDOM, padding="replicate"),
        vgg19=RANDOM,
        size=40,
        steps=6,
        device="cpu",
        precision="float32",
    )


def test_the_judge_finds_no_fault_with_the_originals() -> None:
    vgg19 = build_features(RANDOM)
    image = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    assert errors_under(vgg19, image, image, image) == dict.fromkeys(
        ["relu1_1", "relu2_1", "relu3_1", "relu4_1", "relu5_1", "content relu4_2"], 0.0
    )


def test_the_gap_runs_from_the_content_to_vgg19() -> None:
    row = {
        name: Verdict({"relu1_1": error}, "")
        for name, error in zip(NETWORKS, (3.0, 2.5, 1.5, 1.0), strict=True)
    }
    assert [gap_closed(row, name) for name in NETWORKS] == [0.0, 0.25, 0.75, 1.0]


def test_every_pair_is_stylised_judged_and_shown(config: JudgeConfig, tmp_path: Path) -> None:
    said: list[str] = []
    judgement = judge(config, tmp_path / "run", said.append)
    verdicts = judgement.verdicts
    assert list(verdicts) == ["content x style"]
    assert list(verdicts["content x style"]) == list(NETWORKS)
    assert len(said) == 1
    written = json.loads((tmp_path / "run" / "judge.json").read_text())
    pair = written["pairs"]["content x style"]
    for name in NETWORKS:
        assert pair[name]["J"] == pytest.approx(sum(pair[name]["errors"].values()))
        image = tmp_path / "run" / pair[name]["image"]
        assert pair[name]["probes"] == pytest.approx(probe(images.read(image).rgb), abs=3e-3)
    style = images.read(tmp_path / "style.png").rgb
    assert pair["style"]["probes"] == judgement.probes["content x style"]["style"] == probe(style)
    assert written["gap_closed"]["vgg19"] == {"mean": 1.0, "smallest": 1.0}
    assert images.read(tmp_path / "run" / "contact_sheet.png").size == (20, 80)


def test_a_contact_sheet_has_a_row_per_pair() -> None:
    rows = [[torch.zeros(1, 3, 8, 4), torch.zeros(1, 3, 4, 8)]] * 3
    assert contact_sheet(rows, 16).shape == (1, 3, 48, 32)


def test_errors_are_relative_to_the_target() -> None:
    vgg19 = build_features(RANDOM)
    generator = torch.Generator().manual_seed(1)
    image, content, style = (torch.rand(1, 3, 32, 32, generator=generator) for _ in range(3))
    found = errors_under(vgg19, image, content, style)
    ours, theirs = (gram_matrix(vgg19(x, ["relu2_1"])["relu2_1"]) for x in (image, style))
    expected = (ours - theirs).norm() ** 2 / theirs.norm() ** 2
    assert found["relu2_1"] == pytest.approx(expected.item(), rel=1e-4)
    ours, theirs = (vgg19(x, ["relu4_2"])["relu4_2"] for x in (image, content))
    expected = (ours - theirs).norm() ** 2 / theirs.norm() ** 2
    assert found["content relu4_2"] == pytest.approx(expected.item(), rel=1e-4)


def test_the_command_prints_its_tables(
    config: JudgeConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(config, tmp_path / "run")
    printed = capsys.readouterr().out
    assert "| content relu4_2 |  0.0000 |" in printed
    assert "| content x style |   0.000 |" in printed
    light, dark = (
        probe(images.read(tmp_path / f"{name}.png").rgb) for name in ("content", "style")
    )
    for name in PROBES:
        row = next(line for line in printed.splitlines() if line.startswith(f"| {name}"))
        shown = [float(cell) for cell in row.split("|")[2:-1]]
        assert shown[:2] == pytest.approx([dark[name], light[name]], abs=1e-4)
        assert len(shown) == 1 + len(NETWORKS)
    assert f"{tmp_path}/run/judge.json" in printed


def test_pairs_of_equal_names_stay_apart(config: JudgeConfig, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "content.png").rename(tmp_path / "more" / "content.png")
    images.write(tmp_path / "content.png", torch.full((1, 3, 32, 40), 0.8))
    first = config.pairs[0]
    second = replace(first, content=str(tmp_path / "more" / "content.png"))
    verdicts = judge(replace(config, pairs=[first, second]), tmp_path / "run", print).verdicts
    assert list(verdicts) == ["content x style", "content x style 2"]
    files = [verdict.image for row in verdicts.values() for verdict in row.values()]
    assert len(set(files)) == 2 * len(NETWORKS)
    for row, pair in zip(verdicts.values(), (first, second), strict=True):
        written = images.read(tmp_path / "run" / row["content"].image).rgb
        assert torch.equal(written, images.read(pair.content).rgb)


def test_names_of_pairs_differ_as_file_names_do() -> None:
    pairs = [
        PairConfig(f"{folder}/{content}.jpg", f"{folder}/{style}.jpg")
        for folder, content, style in (
            ("1", "a", "b"),
            ("2", "A", "b"),
            ("3", "a x", "b"),
            ("4", "a_x", "b"),
            ("5", "a", "b 2"),
        )
    ]
    assert pair_names(pairs) == ["a x b", "A x b 2", "a x x b", "a_x x b 2", "a x b 2 2"]


def drive(monkeypatch: pytest.MonkeyPatch, factor: float | None) -> None:
    """Let the job's losses be multiplied by `factor`, or Ctrl-C be pressed if that is None."""
    mode = LOSS_MODES["autograd_function"]

    def differentiate(terms: Sequence[Term], prior: Tensor | None) -> list[Tensor]:
        if factor is None:
            raise KeyboardInterrupt
        return [factor * loss for loss in mode.differentiate(terms, prior)]

    changed = replace(mode, differentiate=differentiate)
    monkeypatch.setitem(LOSS_MODES, "autograd_function", changed)


def test_ctrl_c_leaves_no_judgement(
    config: JudgeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive(monkeypatch, None)
    with pytest.raises(KeyboardInterrupt):
        judge(config, tmp_path / "run", print)
    assert not (tmp_path / "run").exists()


def test_a_run_that_gives_up_is_not_judged(
    config: JudgeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive(monkeypatch, math.nan)
    with pytest.raises(UserError, match="content x style under random: the loss"):
        judge(config, tmp_path / "run", print)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pairs": []}, "pairs is empty"),
        ({"objective": ObjectiveConfig(style_layers=[])}, "no style loss, so no gap"),
        ({"objective": ObjectiveConfig(style_weight=0.0)}, "no style loss, so no gap"),
        ({"objective": ObjectiveConfig(style_layers=["relu9_1"])}, "relu9_1"),
        ({"size": 15}, "too small for relu5_1"),
        ({"steps": 0}, "steps=0"),
        ({"seed": -1}, "seed=-1 must be 0 or more"),
        ({"seed": 2**63}, "must be below 2^63"),
        ({"device": "tpu"}, "unknown device"),
    ],
)
def test_bad_settings_are_one_line_and_leave_nothing(
    config: JudgeConfig, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        judge(replace(config, **settings), tmp_path / "run", print)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_missing_picture_is_found_before_anything_is_painted(
    config: JudgeConfig, tmp_path: Path
) -> None:
    pairs = [*config.pairs, replace(config.pairs[0], style=str(tmp_path / "nowhere.jpg"))]
    with pytest.raises(UserError, match=r"nowhere\.jpg"):
        judge(replace(config, pairs=pairs), tmp_path / "run", print)
    assert not (tmp_path / "run").exists()


def test_a_picture_too_small_is_found_before_anything_is_painted(
    config: JudgeConfig, tmp_path: Path
) -> None:
    images.write(tmp_path / "thin.png", torch.rand(1, 3, 8, 40))
    pairs = [*config.pairs, replace(config.pairs[0], content=str(tmp_path / "thin.png"))]
    with pytest.raises(UserError, match=r"thin\.png comes down to 40 x 8 pixels, too small"):
        judge(replace(config, pairs=pairs), tmp_path / "run", print)
    assert not (tmp_path / "run").exists()


def test_the_seed_is_of_the_random_network_alone(config: JudgeConfig, tmp_path: Path) -> None:
    network = build_features(RANDOM, seed=5)
    state = {
        f"{key}.{kind}": getattr(network.layers[name], kind)
        for name, key in vgg.state_keys(vgg.WIDTHS["vgg19"]).items()
        for kind in ("weight", "bias")
    }
    save_file(state, tmp_path / "vgg19.safetensors")
    known = replace(RANDOM, weights=str(tmp_path / "vgg19.safetensors"))
    config = replace(config, vgg19=known, bundled=replace(known, padding="replicate"))
    first, second = (
        judge(replace(config, seed=seed), tmp_path / str(seed), print).verdicts["content x style"]
        for seed in (0, 1)
    )
    assert first["vgg19"].errors == second["vgg19"].errors == first["bundled"].errors
    assert first["random"].errors != second["random"].errors


def test_one_picture_twice_is_no_pair(config: JudgeConfig, tmp_path: Path) -> None:
    pair = config.pairs[0]
    config = replace(config, pairs=[replace(pair, style=pair.content)])
    with pytest.raises(UserError, match="content x content: content and style are one picture"):
        judge(config, tmp_path / "run", print)


def test_a_gap_of_nothing_is_said(config: JudgeConfig, tmp_path: Path) -> None:
    objective = ObjectiveConfig(content_weight=1e9)  # the picture stays as it is
    with pytest.raises(UserError, match="no better"):
        judge(replace(config, objective=objective), tmp_path / "run", print)
    assert not (tmp_path / "run").exists()
