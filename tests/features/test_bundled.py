"""The feature network that ships with the project."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers import ROOT

from styletransfer.config import FeaturesConfig, TrainConfig
from styletransfer.errors import UserError
from styletransfer.features import build_features, vgg, weights
from styletransfer.pictures import images
from styletransfer.runs.paint import paint

LOSS_LAYERS = ("relu1_1", "relu2_1", "relu3_1", "relu4_1", "relu4_2", "relu5_1")


@pytest.fixture(scope="module")
def network() -> vgg.FeatureExtractor:
    return build_features(FeaturesConfig())


def test_taps_have_vgg19s_strides_and_tell_pictures_apart(network: vgg.FeatureExtractor) -> None:
    """A network with dead layers would map everything to the same activations."""
    pictures = [images.read(path).rgb for path in sorted(ROOT.glob("assets/style/*.jpg"))]
    crops = torch.cat([images.resize(picture, (37, 64)) for picture in pictures])
    features = network(crops, LOSS_LAYERS)
    for layer, channels in zip(LOSS_LAYERS, (64, 128, 256, 512, 192, 512), strict=True):
        feature, stride = features[layer], network.stride(layer)
        assert feature.shape == (len(crops), channels, 37 // stride, 64 // stride)
        spread = (feature - feature.mean(0)).square().mean() / feature.square().mean()
        assert spread > 0.1


def test_it_is_what_its_card_says(network: vgg.FeatureExtractor) -> None:
    """As wide as VGG-19 where styles are compared; its content counts 1.25, as measured."""
    widths = vgg.widths_of(weights.read_bundled(), "the bundled network")
    assert [block[0] for block in widths] == [block[0] for block in vgg.WIDTHS["vgg19"]]
    assert network.content_gains == {"relu4_2": 1.25}
    assert weights.BUNDLED.stat().st_size <= 8_000_000


def test_a_flipped_bit_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytearray(weights.BUNDLED.read_bytes())
    content[len(content) // 2] ^= 1
    damaged = tmp_path / "bundled.safetensors"
    damaged.write_bytes(content)
    monkeypatch.setattr(weights, "BUNDLED", damaged)
    with pytest.raises(UserError, match="missing or damaged; install the project again"):
        build_features(FeaturesConfig())


def test_the_default_job_lowers_its_loss(tmp_path: Path) -> None:
    """To a fraction: the random start of rounding is far from that."""
    outcome = paint(TrainConfig(size=64, steps=12, device="cpu"), tmp_path)
    first = (tmp_path / "metrics.jsonl").read_text().splitlines()[0]
    start = float(first.split('"total": ')[1].split(",")[0].rstrip("}"))
    assert outcome.result.losses["total"] < start / 2
    assert images.read(outcome.picture).size == (43, 64)


@pytest.mark.slow
def test_the_default_command_runs_offline(tmp_path: Path) -> None:
    """Without a network: a proxy that nobody listens at."""
    output = tmp_path / "pastiche.png"
    command = [sys.executable, "scripts/train.py", "size=48", "steps=2", f"output={output}"]
    command.append(f"hydra.run.dir={tmp_path}")
    environment = {"https_proxy": "http://127.0.0.1:9", "PATH": "", "HOME": str(tmp_path)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    assert images.read(output).size == (32, 48)
