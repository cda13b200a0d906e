"""The judge of feature networks and style networks: its figures and files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import picture, write_pictures
from networks.nets import style_network

from benchmarks.judge.command import main
from benchmarks.judge.config import JudgeConfig, PairConfig
from styletransfer.networks import file
from styletransfer.networks.johnson import Architecture
from styletransfer.pictures import images
from styletransfer.settings import FeaturesConfig

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


def test_every_pair_is_painted_judged_and_shown(config, capsys):
    main(config, Path("run"))
    printed, written = capsys.readouterr().out, json.loads(Path("run/judge.json").read_text())
    pair = written["pairs"]["a x oil"]
    assert list(pair) == ["content", "random", "bundled", "vgg19"]
    unchanged, tested, best = (pair[name]["J"] for name in ("content", "bundled", "vgg19"))
    gap = pair["bundled"]["gap_closed"]
    assert gap == pytest.approx((unchanged - tested) / (unchanged - best))
    assert images.read("run/contact_sheet.png").size == (20, 80)
    assert f"a x oil: gap closed {gap:.3f}\n" in printed


@pytest.mark.slow
def test_each_content_is_judged_in_each_style_of_a_network(config):
    network = style_network(Architecture((3, 4, 5), 1), 2)
    file.write(Path("net.safetensors"), network, ["wash", "oil"])
    sources = {"networks": "net.safetensors", "contents": "photos", "styles": "styles"}
    main(replace(config, pairs=[], **sources), Path("run"))
    written = json.loads(Path("run/judge.json").read_text())
    assert list(written["pairs"]) == ["a x oil", "a x wash", "b x oil", "b x wash"]
    for row in written["pairs"].values():
        assert list(row) == ["content", "network", "bundled", "vgg19"]
        assert images.read(Path("run") / row["network"]["image"]).size == (32, 40)
