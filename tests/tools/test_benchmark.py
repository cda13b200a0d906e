"""The plain loop as a second opinion, and scripts/benchmark.py on tiny pictures."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers import (
    LAYERS,
    MODES,
    check_refused,
    composed,
    layers,
    picture,
    relative_error,
    tiny_network,
)

from benchmarks import plain
from styletransfer.errors import UserError
from styletransfer.features import build_features, vgg
from styletransfer.losses import get_loss_mode
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective
from styletransfer.settings import FeaturesConfig, ObjectiveConfig
from tools.benchmark import reference
from tools.benchmark.command import benchmark, measure_default_job
from tools.benchmark.config import BenchmarkConfig
from tools.benchmark.quality import measure_quality
from tools.benchmark.reference import SCALE, plain_loop
from tools.benchmark.report import rows_table, sentences
from tools.benchmark.results import Row, Spread, cost_of_regions, growth, tiles_per_pixel

pytestmark = pytest.mark.usefixtures("tiny_vgg")
CPU = torch.device("cpu")
CLOSED = "autograd_function"


@pytest.fixture
def tiny(photos):
    """The command line of a tiny benchmark."""
    words = [*LAYERS, "sizes=[32]", "rounds=1", "device=cpu", "precisions=[float32]"]
    return [f"content={photos[0]}", f"style={photos[1]}", *words]


def agrees(network, config, mode):
    """Check that the plain loop and the objective agree in float64."""
    content, style, image = picture(1, 35, 50), picture(2, 35, 34), picture(3, 35, 50)
    loss, gradient = plain_loop(config, network, content, style, scale=1.0).evaluate(image)
    leaf = image.clone().requires_grad_()
    criterion = Criterion.of(config.objective)
    losses = Objective(network, get_loss_mode(mode), criterion, pair(content, style)).evaluate(leaf)
    assert relative_error(losses.total, loss) <= 1e-10
    assert relative_error(leaf.grad, gradient) <= 1e-10


def test_plain_and_the_objective_agree_in_float64(monkeypatch):
    for mode in MODES:
        for padding, normalization in (("zeros", "target"), ("replicate", "none")):
            features = FeaturesConfig("vgg19", "random", padding=padding)
            objective = layers(normalization=normalization)
            config = BenchmarkConfig(features=features, objective=objective)
            agrees(tiny_network(padding=padding), config, mode)
    for name in ("vgg16", "vgg19"):  # the whole of Gatys' networks
        widths = tuple((4,) * len(block) for block in vgg.WIDTHS[name])
        monkeypatch.setitem(vgg.WIDTHS, name, widths)  # type: ignore[arg-type]
        config = BenchmarkConfig(features=FeaturesConfig(name, "random", padding="zeros"))
        agrees(build_features(config.features).double(), config, CLOSED)


def test_a_run_has_a_row_for_each_way_and_writes_its_files(tiny, tmp_path):
    measured = benchmark(composed("benchmark", *tiny, "regions=[2]"), tmp_path / "run")
    ways = ("", " tiled", " 2 regions", " 2 regions tiled")
    names = ["plain", "loss_attribute float32", *(f"{CLOSED} float32{way}" for way in ways)]
    assert [row.name for row in measured.rows] == names
    plain_row = measured.rows[0]
    assert (plain_row.time_ratio, plain_row.memory_ratio) == (Spread(1, 1, 1), 1)
    assert {row.tile for row in measured.rows} == {None, 16}
    assert {path.suffix for path in Path("run").iterdir()} == {".json", ".md", ".png"}
    text = Path("run/benchmark.md").read_text()
    assert rows_table(measured) in text
    assert all(sentence in text for sentence in sentences(measured))
    written = json.loads(Path("run/benchmark.json").read_text())
    assert written["settings"]["weights"] == "random"
    for row in written["rows"]:
        assert set(row) == set(Row.__dataclass_fields__)
        assert row["seconds"]["median"] > 0
        assert row["peak_memory_bytes"] > 0
        assert row["memory_kind"] == "tensors"


class Scripted(plain.PlainLoop):
    """A plain loop that says what it is told: losses, and then objectives, in their order."""

    losses: tuple[float, ...] = (3.0, 1.0, math.nan, 2.0)
    objectives: tuple[float, ...] = (5.0, 1.0, 4.0, 0.5, 0.25, 0.125)

    def run(self, evaluations):
        self.told = iter(self.objectives)
        return [SCALE * loss for loss in self.losses]

    def objective(self, image):
        return torch.tensor(SCALE * next(self.told), dtype=torch.float64)


def test_the_target_is_plains_best_and_the_first_picture_to_meet_it_counts(tiny, monkeypatch):
    """Pictures come at steps 5 and 10, and at the end."""
    monkeypatch.setattr(reference, "PlainLoop", Scripted)
    config = composed("benchmark", *tiny, "quality_size=32", "steps=11")
    quality = measure_quality(config)
    assert (quality.target, quality.plain_best_evaluation) == (1.0, 2)
    assert (quality.job_evaluations, quality.job_steps) == (10, 11)
    assert (quality.plain_final, quality.job_final) == (4.0, 0.5)
    assert (quality.float32_final, quality.relay_final) in ((None, 0.25), (0.25, 0.125))
    assert quality.seconds is not None
    assert quality.ratio == quality.seconds / quality.plain_seconds
    assert quality.seconds < quality.job_total_seconds
    monkeypatch.setattr(Scripted, "losses", (math.nan, math.inf))
    with pytest.raises(UserError, match="never finite"):
        measure_quality(config)


def test_the_default_job_is_a_process_of_its_own_warmed_up_once(tmp_path):
    calls = tmp_path / "calls"
    script = f"import sys; print(len(sys.argv), sys.argv[1], file=open({str(calls)!r}, 'a'))"
    one_round = BenchmarkConfig(rounds=1, device="cpu")
    once = measure_default_job(one_round, (sys.executable, "-Sc", script))
    assert 0 < once.lower == once.upper  # the first run is not among the timed
    assert calls.read_text().splitlines() == ["3 device=cpu"] * 2
    job = (sys.executable, "-Sc", "import sys; sys.exit('error: no picture')")
    with pytest.raises(UserError, match="failed: error: no picture"):
        measure_default_job(one_round, job)


def row(name, size, seconds, tile=None):
    return Row(name, size, "float32", True, tile, None, None, Spread.of([seconds]), 1, "tensors")


def test_what_follows_from_rows():
    rows = [row("a", size, (size**2) ** 1.25) for size in (10, 20, 40)] + [row("b", 10, 1.0)]
    assert growth(rows) == {"a": pytest.approx(1.25)}
    rows = [row("a", size, size**2 * 1e-6) for size in (256, 512, 1024)]
    rows += [row("a tiled", size, size**2 * 1.3e-6, tile=64) for size in (512, 4096)]
    assert tiles_per_pixel(rows) == {"a tiled": (512, 4096, pytest.approx(1.3))}
    rows = [row("a", 64, 2.0), row("a 2 regions", 64, 3.0), row("a 2 regions", 128, 9.0)]
    assert cost_of_regions(rows) == [("a 2 regions", 64, 1.5, 1.0)]
    assert Spread.of([3.0, 1.0, 2.0, 5.0, 4.0]) == Spread(3.0, 2.0, 4.0)


def test_bad_input_is_one_line_and_leaves_nothing(tiny, tmp_path):
    bad = [
        ({"sizes": [32, 32]}, "each once"),
        ({"sizes": [1]}, "too small for relu2_1"),
        ({"modes": ["autograd"]}, "unknown loss mode 'autograd'; choose fake_backward,"),
        ({"tile": 1}, "tile=1 must be at least 2"),
        ({"objective": ObjectiveConfig(tv_weight=0.1)}, "not what the plain loop does"),
    ]
    good = composed("benchmark", *tiny)
    check_refused(lambda **given: benchmark(replace(good, **given), tmp_path / "run"), bad)
    assert not Path("run").exists()
