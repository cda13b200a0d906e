"""The package's gradient against the plain loop's, and scripts/benchmark.py on tiny pictures."""

import json
from dataclasses import fields

import pytest
from helpers import (
    LAYERS,
    MODES,
    composed,
    layers,
    picture,
    relative_error,
    tiny_network,
)

from styletransfer.features import build_features, vgg
from styletransfer.losses import get_loss_mode
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective
from styletransfer.settings import FeaturesConfig
from tools.benchmark.command import benchmark
from tools.benchmark.config import BenchmarkConfig
from tools.benchmark.reference import plain_loop
from tools.benchmark.report import rows_table, sentences
from tools.benchmark.results import Row, Spread, cost_of_regions

pytestmark = pytest.mark.usefixtures("tiny_vgg")


@pytest.fixture
def tiny(photos):
    """Return the arguments of a tiny benchmark."""
    words = [*LAYERS, "sizes=[32]", "rounds=1", "device=cpu", "precisions=[float32]"]
    return [f"content={photos[0]}", f"style={photos[1]}", *words]


def test_plain_and_the_objective_agree_in_float64(monkeypatch):
    content, style, image = picture(1, 35, 50), picture(2, 35, 34), picture(3, 35, 50)
    widths = tuple((4,) * len(block) for block in vgg.WIDTHS["vgg16"])
    monkeypatch.setitem(vgg.WIDTHS, "vgg16", widths)  # type: ignore[arg-type]
    gatys = BenchmarkConfig(features=FeaturesConfig("vgg16", "random", padding="zeros"))
    cases = [(MODES[0], gatys, build_features(gatys.features).double())]
    for mode in MODES:
        for padding, normalization in (("zeros", "target"), ("replicate", "none")):
            features = FeaturesConfig("vgg19", "random", padding=padding)
            objective = layers(normalization=normalization)
            config = BenchmarkConfig(features=features, objective=objective)
            cases.append((mode, config, tiny_network(padding=padding)))
    for mode, config, network in cases:
        loss, gradient = plain_loop(config, network, content, style, scale=1.0).evaluate(image)
        leaf, criterion = image.clone().requires_grad_(), Criterion.of(config.objective)
        objective = Objective(network, get_loss_mode(mode), criterion, pair(content, style))
        assert relative_error(objective.evaluate(leaf).total, loss) <= 1e-10
        assert relative_error(leaf.grad, gradient) <= 1e-10


def test_a_run_writes_a_row_for_each_kind(tiny, tmp_path):
    measured = benchmark(composed("benchmark", *tiny, "regions=[2]"), tmp_path / "run")
    closed = "autograd_function float32"
    ways = ("", " tiled", " 2 regions", " 2 regions tiled")
    names = ["plain", "loss_attribute float32", *(f"{closed}{way}" for way in ways)]
    assert [row.name for row in measured.rows] == names
    plain_row, whole, tiled = measured.rows[0], measured.rows[2], measured.rows[4]
    assert (plain_row.time_ratio, plain_row.memory_ratio) == (Spread(1, 1, 1), 1)
    assert {row.tile for row in measured.rows} == {None, 16}
    assert cost_of_regions(measured.rows)[0] == (
        *(tiled.name, 32, tiled.seconds.median / whole.seconds.median),
        tiled.peak_memory_bytes / whole.peak_memory_bytes,
    )
    text = (tmp_path / "run/benchmark.md").read_text()
    assert all(part in text for part in (rows_table(measured), *sentences(measured)))
    written = json.loads((tmp_path / "run/benchmark.json").read_text())
    for row in written["rows"]:
        assert set(row) == {field.name for field in fields(Row)}
        assert min(row["seconds"]["median"], row["peak_memory_bytes"]) > 0
        assert row["memory_kind"] == "tensors"
