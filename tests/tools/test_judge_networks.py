"""The judge of style networks: one pass beside the optimiser, each picture in its own style."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import composed, picture, style_network

from styletransfer.commands.judge.command import main
from styletransfer.commands.judge.run import judge
from styletransfer.config import FeaturesConfig, JudgeConfig, PairConfig
from styletransfer.errors import UserError
from styletransfer.networks import Architecture, StyleNetwork, file
from styletransfer.pictures import images

pytestmark = pytest.mark.usefixtures("tiny_vgg")
RANDOM = FeaturesConfig(name="vgg19", weights="random", padding="zeros")
SLIM = Architecture((3, 4, 5), 1)
COLUMNS = ["content", "network", "bundled", "vgg19"]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JudgeConfig:
    """Two contents, three styles, and a network that knows two of them."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("photos/a.png", "photos/b.png")):
        images.write(tmp_path / name, picture(seed, 32, 40))
    for seed, name in enumerate(("oil", "wash", "other")):
        images.write(tmp_path / "styles" / f"{name}.png", 0.2 * picture(seed + 3, 32, 40))
    write("net.safetensors", ["wash", "oil"])
    return JudgeConfig(
        networks="net.safetensors",
        contents="photos",
        styles="styles",
        bundled=replace(RANDOM, padding="replicate"),
        vgg19=RANDOM,
        size=40,
        steps=4,
        device="cpu",
        precision="float32",
    )


def write(name: str, styles: list[str]) -> StyleNetwork:
    """Write a network whose styles differ."""
    network = style_network(SLIM, len(styles))
    file.write(Path(name), network, styles)
    return network


def test_each_content_is_judged_in_each_style_that_a_network_knows(
    config: JudgeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    main(config, Path("run"))
    printed = capsys.readouterr().out
    written = json.loads(Path("run/judge.json").read_text())
    pairs = written["pairs"]
    assert list(pairs) == ["a x oil", "a x wash", "b x oil", "b x wash"]
    network = file.read(Path("net.safetensors")).network
    for name, row in pairs.items():
        assert list(row) == [*COLUMNS, "style"]
        content = images.read(Path("photos") / f"{name[0]}.png").rgb
        blend = torch.tensor([[0.0, 1.0] if name.endswith("oil") else [1.0, 0.0]])
        shown = images.read(Path("run") / row["network"]["image"]).rgb
        assert (shown - network(content, blend)).abs().max() < 0.6 / 255
        assert row["content"]["seconds"] == 0
        assert all(row[column]["seconds"] > 0 for column in COLUMNS[1:])
        assert f"{name}: gap closed {row['network']['gap_closed']:.3f}\n" in printed
    assert written["gap_closed"]["vgg19"] == {"mean": 1.0, "smallest": 1.0}
    assert f"| mean     |   0.000 | {written['gap_closed']['network']['mean']:7.3f} |" in printed
    assert re.search(r"\| +\| +network \| +bundled \| +vgg19 \|", printed)
    assert images.read("run/contact_sheet.png").size == (4 * 20, 4 * 20)


def test_layers_count_as_in_the_default_objective(config: JudgeConfig) -> None:
    config = replace(config, contents="photos/a.png", styles="styles/oil.png")
    config = replace(config, networks=[one_style("oil")])
    judge(config, Path("run"), print)
    written = json.loads(Path("run/judge.json").read_text())
    assert written["factors"] == {"relu5_1": 0.1}
    for name in COLUMNS:
        found = written["pairs"]["a x oil"][name]
        expected = sum(found["errors"].values()) - 0.9 * found["errors"]["relu5_1"]
        assert found["J"] == pytest.approx(expected)


def one_style(name: str) -> str:
    write(f"{name}.safetensors", [name])
    return f"{name}.safetensors"


def test_several_networks_share_the_styles(config: JudgeConfig) -> None:
    config = replace(config, networks=[one_style("oil"), one_style("other")], steps=2)
    verdicts = judge(replace(config, contents="photos/b.png"), Path("run"), print).verdicts
    assert list(verdicts) == ["b x oil", "b x other"]


def test_the_preset_pairs_four_contents_with_the_styles_of_a_network(config: JudgeConfig) -> None:
    """So a network of two styles makes eight pairs of the bundled pictures."""
    from styletransfer.commands.judge.style_networks import pairs_of, read_networks

    write("bundled.safetensors", ["oil", "mosaic"])
    preset = composed("judge", "judged=networks", "networks=bundled.safetensors")
    pairs = pairs_of(preset, read_networks(preset, torch.device("cpu"), torch.float32))
    assert len(pairs) == 8
    assert {Path(pair.style).stem for pair in pairs} == {"oil", "mosaic"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"networks": None}, "networks names no file; name one"),
        ({"networks": []}, "networks names no file; name one"),
        ({"networks": "gone.safetensors"}, "no style network at gone.safetensors"),
        ({"networks": "photos/a.png"}, "photos/a.png is no style network"),
        ({"networks": ["net.safetensors", "net.safetensors"]}, "the second that knows the style"),
        ({"pairs": [PairConfig("a", "b")]}, "not on pairs; judged=networks"),
        ({"contents": None}, "contents names no picture"),
        ({"contents": "gone.png"}, "gone.png"),
        ({"styles": None}, "styles names no picture"),
        ({"styles": "styles/oil.png"}, "styles holds no picture called wash"),
        ({"size": 15}, "too small for relu5_1"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    config: JudgeConfig, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        judge(replace(config, **settings), Path("run"), print)
    assert "\n" not in str(caught.value)
    assert not Path("run").exists()
