"""Time to pastiche: the judge of the leaderboard, on a tiny network."""

import math

import pytest
from helpers import VGG19, write_pictures
from safetensors.torch import save_file
from torch.nn.functional import mse_loss

from benchmarks import plain
from benchmarks.leaderboard import Entry, LeaderboardConfig, judged, leaderboard, row
from styletransfer.features import vgg

COPY = "{python} -c 'import shutil, sys; shutil.copy(*sys.argv[1:])' "


@pytest.fixture
def weights(tmp_path):
    """Return the path of a weights file: a seeded VGG-19 of few channels."""
    network = vgg.build(VGG19)
    vgg.randomize(network, 0)
    keys = vgg.state_keys(VGG19)
    save_file(
        {
            f"{keys[layer]}.{kind}": tensor.float()
            for layer, module in network.layers.items()
            if layer in keys
            for kind, tensor in module.named_parameters()
        },
        tmp_path / "vgg19.safetensors",
    )
    return str(tmp_path / "vgg19.safetensors")


def test_the_judge_computes_gatys_objective_of_a_file(desk, weights):
    write_pictures("content.png", "style.png", "pastiche.png", height=32, width=40)
    judge = plain.loop_on(plain.read_state(weights), "content.png", "style.png")
    content, style, pastiche = (
        judge.features(plain.read_picture(f"{name}.png"))
        for name in ("content", "style", "pastiche")
    )
    expected = 5 * mse_loss(pastiche["relu4_2"], content["relu4_2"])
    for block in range(1, 6):
        ours, theirs = (each[f"relu{block}_1"][0].flatten(1) for each in (pastiche, style))
        grams = (ours @ ours.T / ours.numel(), theirs @ theirs.T / theirs.numel())
        expected = expected + 100 * mse_loss(*grams)
    assert judged(judge, desk / "pastiche.png") == pytest.approx(expected.item(), rel=1e-5)


def test_entries_are_judged_by_their_files_alone(desk, weights, capsys):
    entries = {
        "plain": Entry(COPY + "{content} {output}", "1"),
        "style": Entry(COPY + "{style} {output}"),
        "liar": Entry("{python} -c 'print(\"objective 0.0\")' {output}"),
        "failed": Entry(COPY + "{content} {output}/nowhere"),
        "absent": Entry("$NO_SUCH_VARIABLE {output}"),
    }
    pairs = [["rocket", "oil"], ["coffee", "mosaic"]]
    config = LeaderboardConfig(weights, 32, "board", pairs, entries)
    write_pictures("board/rocket_x_oil/by_liar.png", height=21, width=32)  # of an earlier run
    results = leaderboard(config)
    printed = capsys.readouterr().out
    assert [list(each) for each in results] == [["plain", "style", "liar", "failed"]] * 2
    judge = plain.loop_on(
        plain.read_state(weights), "board/rocket_x_oil/content.png", "board/rocket_x_oil/style.png"
    )
    own = judge.objective(judge.start).item()
    assert results[0]["plain"][0] == pytest.approx(own, rel=1e-5)
    assert results[0]["liar"][0] == math.inf
    assert results[0]["failed"] == (math.inf, math.inf)
    assert row("plain", entries["plain"], results)[:4] == ["plain", "1", "1.00", "1.00"]
    assert row("liar", entries["liar"], results)[-1] == "0 of 2"
    assert "not set: absent\n" in printed
