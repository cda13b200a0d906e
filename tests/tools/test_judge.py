"""The judge of feature networks and style networks: its figures, files and errors."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers import (
    call,
    check_error,
    picture,
    refusal,
    style_network,
    write_pictures,
)

from styletransfer.networks import Architecture, file
from styletransfer.pictures import images
from styletransfer.settings import FeaturesConfig, ObjectiveConfig
from tools.judge.command import judge, main, run
from tools.judge.config import JudgeConfig, PairConfig

pytestmark = pytest.mark.usefixtures("tiny_vgg")
RANDOM = FeaturesConfig(name="vgg19", weights="random", padding="zeros")


@pytest.fixture
def config(desk):
    """Return settings that judge a feature network on one pair."""
    write_pictures("photos/a.png", "photos/b.png", height=32, width=40)
    for seed, name in enumerate(("oil", "wash", "other")):
        images.write(desk / "styles" / f"{name}.png", 0.2 * picture(seed + 3, 32, 40))
    pairs, bundled = [PairConfig("photos/a.png", "styles/oil.png")], replace(RANDOM)
    settings = {"size": 40, "steps": 4, "device": "cpu", "precision": "float32"}
    return JudgeConfig(pairs=pairs, bundled=bundled, vgg19=RANDOM, **settings)


@pytest.fixture
def of_networks(config):
    """Return settings that judge a network of two styles on two content images."""
    network = style_network(Architecture((3, 4, 5), 1), 2)
    file.write(Path("net.safetensors"), network, ["wash", "oil"])
    sources = {"networks": "net.safetensors", "contents": "photos", "styles": "styles"}
    return replace(config, pairs=[], **sources)


def test_every_pair_is_painted_judged_and_shown(config, capsys):
    run(config, Path("run"))
    printed, written = capsys.readouterr().out, json.loads(Path("run/judge.json").read_text())
    pair = written["pairs"]["a x oil"]
    assert list(pair) == ["content", "random", "bundled", "vgg19"]
    unchanged, tested, best = (pair[name]["J"] for name in ("content", "bundled", "vgg19"))
    gap = pair["bundled"]["gap_closed"]
    assert gap == pytest.approx((unchanged - tested) / (unchanged - best))
    assert images.read("run/contact_sheet.png").size == (20, 80)
    assert f"a x oil: gap closed {gap:.3f}\n" in printed


def test_each_content_is_judged_in_each_style_of_a_network(of_networks):
    run(of_networks, Path("run"))
    written = json.loads(Path("run/judge.json").read_text())
    assert list(written["pairs"]) == ["a x oil", "a x wash", "b x oil", "b x wash"]
    network = file.read(Path("net.safetensors")).network
    for name, row in written["pairs"].items():
        assert list(row) == ["content", "network", "bundled", "vgg19"]
        content = images.read(Path("photos") / f"{name[0]}.png").rgb
        blend = torch.tensor([[0.0, 1.0] if name.endswith("oil") else [1.0, 0.0]])
        shown = images.read(Path("run") / row["network"]["image"]).rgb
        assert (shown - network(content, blend)).abs().max() < 0.6 / 255
        for column in ("content", "network", "bundled", "vgg19"):
            errors = row[column]["errors"]
            assert row[column]["J"] == pytest.approx(sum(errors.values()) - 0.9 * errors["relu5_1"])
            assert (row[column]["seconds"] > 0) == (column != "content")


def test_bad_input_is_one_line_and_leaves_nothing(config, of_networks, capsys):
    images.write(Path("thin.png"), picture(0, 8, 40))
    twice, thin = (PairConfig(name, "photos/a.png") for name in ("photos/a.png", "thin.png"))
    for good, changes, message in (
        (config, {"objective": ObjectiveConfig(content_weight=1e9)}, "no better"),
        (config, {"pairs": [twice]}, "a x a: content and style are one"),
        (config, {"pairs": [thin]}, r"thin\.png comes down to 40 x 8 pixels"),
        (of_networks, {"networks": "photos/a.png"}, r"photos/a\.png is no style network"),
        (of_networks, {"networks": ["net.safetensors"] * 2}, "the second that knows the style"),
        (of_networks, {"styles": "styles/oil.png"}, "styles holds no picture called wash"),
    ):
        check_error(message, judge, replace(good, **changes), Path("run"), print)
    assert not Path("run").exists()
    assert "\nsteps=100 " in call(capsys, "--help", run=main)[1].out
    assert "no weights file at gone" in refusal(capsys, "vgg19.weights=gone.pth", run=main)
