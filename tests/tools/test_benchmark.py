"""The package's gradient against the plain loop's, and scripts/benchmark.py on tiny pictures."""

import json
from dataclasses import fields

import pytest
from helpers import (
    LAYERS,
    composed,
)

from tools.benchmark.command import benchmark
from tools.benchmark.report import rows_table, sentences
from tools.benchmark.results import Row, Spread, cost_of_regions

pytestmark = pytest.mark.usefixtures("tiny_vgg")


@pytest.fixture
def tiny(photos):
    """Return the arguments of a tiny benchmark."""
    words = [*LAYERS, "sizes=[32]", "rounds=1", "device=cpu", "precisions=[float32]"]
    return [f"content={photos[0]}", f"style={photos[1]}", *words]


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
