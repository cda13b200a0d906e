"""scripts/benchmark.py on tiny pictures."""

import json
from dataclasses import fields

import pytest
from helpers import (
    LAYERS,
    MODES,
    composed,
    gradient,
    layers,
    make_objective,
    picture,
    relative_error,
    tiny_network,
)

from benchmarks import commands
from benchmarks.evaluations.command import benchmark
from benchmarks.evaluations.config import BenchmarkConfig
from benchmarks.evaluations.reference import plain_loop
from benchmarks.evaluations.report import rows_table, sentences
from benchmarks.evaluations.results import Row
from benchmarks.measured import Spread


@pytest.mark.parametrize("mode", MODES)
def test_the_plain_loop_has_the_gradient_of_each_mode(mode):
    network, content, style, image = tiny_network(), picture(1), picture(2, 12, 14), picture(3)
    config = BenchmarkConfig(objective=layers())
    _, plain = plain_loop(config, network, content, style).evaluate(image)
    ours = gradient(make_objective(mode, network, content, style), image)
    assert relative_error(ours, plain) < 1e-12


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_vgg")
def test_a_run_writes_a_row_for_each_kind(photos, tmp_path):
    words = [*LAYERS, "sizes=[32]", "rounds=1", "device=cpu", "precisions=[float32]"]
    words += [f"content={photos[0]}", f"style={photos[1]}", "regions=[2]"]
    measured = benchmark(composed(commands.benchmark, *words), tmp_path / "run")
    closed = "autograd_function float32"
    ways = ("", " tiled", " 2 regions", " 2 regions tiled")
    names = ["plain", "loss_attribute float32", *(f"{closed}{way}" for way in ways)]
    assert [row.name for row in measured.rows] == names
    plain_row = measured.rows[0]
    assert (plain_row.time_ratio, plain_row.memory_ratio) == (Spread(1, 1, 1), 1)
    assert {row.tile for row in measured.rows} == {None, 16}
    text = (tmp_path / "run/benchmark.md").read_text()
    assert all(part in text for part in (rows_table(measured), *sentences(measured)))
    written = json.loads((tmp_path / "run/benchmark.json").read_text())
    assert {*written["rows"][0]} == {field.name for field in fields(Row)}
