"""The judge of feature networks: its figures, its files, its bad input."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from styletransfer.commands.judge.run import (
    NETWORKS,
    Verdict,
    contact_sheet,
    evaluate,
    gap_closed,
    judge,
)
from styletransfer.config import FeaturesConfig, JudgeConfig, PairConfig
from styletransfer.errors import UserError
from styletransfer.features import build_features
from styletransfer.pictures import images

RANDOM = FeaturesConfig(name="vgg19", weights="random", padding="zeros")


@pytest.fixture
def config(tmp_path: Path) -> JudgeConfig:
    generator = torch.Generator().manual_seed(0)
    for name in ("content", "style"):
        images.write(tmp_path / f"{name}.png", torch.rand(1, 3, 32, 40, generator=generator))
    pair = PairConfig(str(tmp_path / "content.png"), str(tmp_path / "style.png"))
    return JudgeConfig(
        pairs=[pair],
        bundled=replace(RANDOM, padding="replicate"),
        vgg19=RANDOM,
        size=40,
        steps=2,
        device="cpu",
        precision="float32",
    )


def test_the_judge_finds_no_fault_with_the_originals() -> None:
    vgg19 = build_features(RANDOM)
    image = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    assert judge(vgg19, image, image, image) == dict.fromkeys(
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
    verdicts = evaluate(config, tmp_path / "run", said.append)
    assert list(verdicts) == ["content x style"]
    assert list(verdicts["content x style"]) == list(NETWORKS)
    assert len(said) == 1
    written = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    pair = written["pairs"]["content x style"]
    for name in NETWORKS:
        assert pair[name]["J"] == pytest.approx(sum(pair[name]["errors"].values()))
        assert (tmp_path / "run" / pair[name]["image"]).exists()
    assert written["gap_closed"]["vgg19"] == {"mean": 1.0, "smallest": 1.0}
    assert images.read(tmp_path / "run" / "contact_sheet.png").size == (20, 80)


def test_a_contact_sheet_has_a_row_per_pair() -> None:
    rows = [[torch.zeros(1, 3, 8, 4), torch.zeros(1, 3, 4, 8)]] * 3
    assert contact_sheet(rows, 16).shape == (1, 3, 48, 32)


def test_no_pairs_is_an_error(config: JudgeConfig, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="pairs is empty"):
        evaluate(replace(config, pairs=[]), tmp_path, print)
