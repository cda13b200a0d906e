"""The plain loop as a second opinion, and scripts/benchmark.py on tiny pictures."""

import io
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import MODES, ROOT, composed, layers, picture, relative_error, tiny_network
from torch import Tensor

from benchmarks import plain
from styletransfer.config import FeaturesConfig, ObjectiveConfig
from styletransfer.errors import UserError
from styletransfer.features import build_features, vgg
from styletransfer.modes import get_loss_mode
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective
from styletransfer.pictures import images
from styletransfer.system import devices
from styletransfer.system.measure import Spread
from tools.benchmark import command, reference
from tools.benchmark.command import benchmark, measure_default_job
from tools.benchmark.config import BenchmarkConfig
from tools.benchmark.quality import RELAY, PlainRun, measure_quality
from tools.benchmark.reference import SCALE, plain_loop, torchvision_state
from tools.benchmark.report import as_json, markdown, rows_table, sentences
from tools.benchmark.results import (
    Benchmark,
    Quality,
    Row,
    cost_of_regions,
    growth,
    tiles_per_pixel,
)
from tools.benchmark.rows import Candidate, candidates, middle, striped, tile_at

FILES = {"benchmark.json", "benchmark.md", "benchmark.png"}
CPU = torch.device("cpu")
CLOSED = "autograd_function"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command line of a tiny benchmark on two pictures of different shapes."""
    folder = tmp_path_factory.mktemp("pictures")
    for seed, size in enumerate(((40, 60), (50, 34))):
        images.write(folder / f"{seed}.png", picture(seed, *size).float())
    words = ["objective.content_layers=[relu2_1]", "objective.style_layers=[relu1_1,relu2_1]"]
    words += ["sizes=[32,48]", "rounds=1", "device=cpu", "precisions=[float32]"]
    return [f"content={folder}/0.png", f"style={folder}/1.png", *words]


@pytest.fixture(scope="module")
def results(
    tiny: list[str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Benchmark, Path, str]:
    """A benchmark, its folder, and its progress."""
    folder, shown, patch = tmp_path_factory.mktemp("run"), io.StringIO(), pytest.MonkeyPatch()
    with patch.context() as patched:
        patched.setattr(sys, "stderr", shown)
        found = benchmark(composed("benchmark", *tiny, "regions=[2]"), folder)
    return found, folder, shown.getvalue()


# The plain loop.


def agrees(network: Any, config: BenchmarkConfig, mode: str, size: tuple[int, int]) -> None:
    """Check that the plain loop and the objective agree in float64."""
    content, style, image = picture(1, *size), picture(2, 35, 34), picture(3, *size)
    loss, gradient = plain_loop(config, network, content, style, scale=1.0).evaluate(image)
    leaf = image.clone().requires_grad_()
    objective = Objective(
        network, get_loss_mode(mode), Criterion.of(config.objective), pair(content, style)
    )
    losses = objective.evaluate(leaf)
    assert leaf.grad is not None
    assert relative_error(losses.total, loss) <= 1e-10
    assert relative_error(leaf.grad, gradient) <= 1e-10


@pytest.mark.parametrize("mode", MODES)
def test_plain_and_the_objective_agree_in_float64(mode: str) -> None:
    for padding, normalization in (("zeros", "target"), ("replicate", "none")):
        config = BenchmarkConfig(
            features=FeaturesConfig("vgg19", "random", padding=padding),
            objective=layers(normalization=normalization),
        )
        agrees(tiny_network(padding=padding), config, mode, (17, 23))


@pytest.mark.parametrize("name", ["vgg16", "vgg19"])
def test_plain_agrees_on_the_whole_of_gatys_network(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    widths = tuple((4,) * len(block) for block in vgg.WIDTHS[name])
    monkeypatch.setitem(vgg.WIDTHS, name, widths)  # type: ignore[arg-type]
    config = BenchmarkConfig(features=FeaturesConfig(name, "random", padding="zeros"))
    agrees(build_features(config.features).double(), config, CLOSED, (35, 50))


def test_plain_has_the_layers_of_the_network_and_ignores_a_classifier() -> None:
    network = tiny_network()
    state = torchvision_state(network, "vgg19") | {"classifier.0.weight": torch.zeros(2, 2)}
    copied = plain.build_network(state)
    assert [name for name, _ in copied.named_children()] == list(network.layers)
    assert not any(parameter.requires_grad for parameter in copied.parameters())


def test_plain_makes_twenty_evaluations_a_step_and_repeats_itself() -> None:
    config = BenchmarkConfig(objective=layers())
    loop = plain_loop(config, tiny_network(), picture(1), picture(2))
    objective, seen = loop.objective, []
    loop.objective = lambda image: (seen.append(image.detach().clone()), objective(image))[1]
    losses = loop.run(21)
    assert len(losses) == len(seen) == 40
    assert all(0 <= image.min() <= image.max() <= 1 for image in seen)
    assert min(losses) < losses[0] / 2
    assert losses[0] == loop.objective(picture(1)).item()
    small = plain_loop(config, tiny_network(), picture(1), picture(2), scale=1.0)
    assert losses[0] == pytest.approx(SCALE * small.objective(picture(1)).item())
    assert 0 <= loop.picture.min() <= loop.picture.max() <= 1
    assert loop.run(20) == losses[:20]


# A run.


def test_a_run_writes_its_files_and_shows_its_progress(
    results: tuple[Benchmark, Path, str],
) -> None:
    found, folder, bar = results
    assert {path.name for path in folder.iterdir()} == FILES
    assert images.read(folder / "benchmark.png").size == (600, 1440)
    text = (folder / "benchmark.md").read_text()
    assert rows_table(found) in text
    assert all(sentence in text for sentence in sentences(found))
    written = json.loads((folder / "benchmark.json").read_text())
    assert written["settings"]["sizes"] == [32, 48]
    assert written["settings"]["weights"] == "random"
    assert set(written["growth"]) == {row["name"] for row in written["rows"]}
    for row in written["rows"]:
        assert set(row) == set(Row.__dataclass_fields__)
        assert row["seconds"]["median"] > 0
        assert row["peak_memory_bytes"] > 0
        assert row["memory_kind"] == "tensors"
    assert re.search(r"32 x 32 pixels: +\d+%\|.*\d\d:\d\d, \d\d:\d\d left", bar)
    assert re.search(r"48 x 48 pixels: 100%\|", bar)
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json(replace(found, growth={"plain": math.nan}))


def test_plain_comes_first_and_modes_tiles_and_regions_follow(
    results: tuple[Benchmark, Path, str],
) -> None:
    for size in (32, 48):
        rows = [row for row in results[0].rows if row.size == size]
        assert [row.name for row in rows] == [
            "plain",
            "loss_attribute float32",
            f"{CLOSED} float32",
            f"{CLOSED} float32 tiled",
            f"{CLOSED} float32 2 regions",
            f"{CLOSED} float32 2 regions tiled",
        ]
        assert (rows[0].time_ratio, rows[0].memory_ratio) == (Spread(1, 1, 1), 1)
        assert {row.tile for row in rows if "tiled" in row.name} == {size // 2}


def test_sentences_follow_from_the_numbers(results: tuple[Benchmark, Path, str]) -> None:
    made = Quality(32, 21, None, None, 8.0, 2.0, 20, 2, 1.0, 10, 11, 4.0, 3.0, None, "float32")

    def said(**values: Any) -> str:
        return "\n".join(sentences(replace(results[0], quality=replace(made, **values))))

    assert "did not reach" in said()
    assert "1.500 times that, in 0.500 times the time" in said()
    assert "reached the plain loop's" in said(ratio=0.125)
    assert "in 0.125 times its time (1/8.0), after 10 evaluations" in said(ratio=0.125)
    assert "ended at 0.900 times" in said(relay_final=1.8, relay_seconds=1.0)
    assert "1.100 times that of the same job" in said(job_final=1.1, float32_final=1.0)
    timed = replace(results[0], default_job=Spread(13.0, 12.0, 14.0), skipped=["this"])
    assert "takes 13 (12 to 14) s" in "\n".join(sentences(timed))
    assert sentences(timed)[-1] == "Left out: this."
    emulated = replace(results[0], rows=[replace(results[0].rows[0], native=False)])
    assert "plain (emulated)" in rows_table(emulated)
    assert "Rows called emulated" in markdown(emulated)


def test_what_the_device_only_emulates_is_left_out_and_named(
    tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a processor without bfloat16 units; and where there are units nothing is."""
    both = composed("benchmark", "precisions=[float32,bfloat16]")
    assert composed("benchmark").precisions == both.precisions
    monkeypatch.setattr(devices, "cpu_bfloat16_units", lambda: ["AMX"])
    assert command.without_emulated(both, CPU) == (both, [])
    monkeypatch.setattr(devices, "cpu_bfloat16_units", list)
    config, (skipped,) = command.without_emulated(both, CPU)
    assert config.precisions == ["float32"]
    assert skipped.startswith("bfloat16, which this device only emulates")
    assert command.without_emulated(replace(both, emulated=True), CPU)[1] == []
    words = ("sizes=[32]", "precisions=[bfloat16]", "modes=[fake_backward]")
    with pytest.raises(UserError, match=r"nothing to measure but bfloat16.*add emulated=true"):
        benchmark(composed("benchmark", *tiny, *words), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    config = composed("benchmark", *tiny, *words, "emulated=true")
    rows = benchmark(config, tmp_path).rows
    assert [(row.name, row.native) for row in rows] == [
        ("plain", True),
        ("fake_backward bfloat16", False),
    ]


def test_a_limit_on_instructions_takes_the_units_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    for limit, is_emulated in (("AVX2", True), ("avx512_core_bf16", False)):
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
        assert devices.is_emulated(torch.bfloat16, CPU) == is_emulated
        assert not devices.is_emulated(torch.float32, CPU)


# Quality, and the default job.


class Scripted(plain.PlainLoop):
    """A plain loop that says what it is told: losses, and then objectives, in their order."""

    losses: tuple[float, ...] = (3.0, 1.0, math.nan, 2.0)
    objectives: tuple[float, ...] = (5.0, 1.0, 4.0, 0.5, 0.25, 0.125)

    def run(self, evaluations: int) -> list[float]:
        self.told = iter(self.objectives)
        return [SCALE * loss for loss in self.losses]

    def objective(self, image: Tensor) -> Tensor:
        return torch.tensor(SCALE * next(self.told), dtype=torch.float64)


def test_the_target_is_plains_best_and_the_first_picture_to_meet_it_counts(
    tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pictures come at steps 5 and 10, and at the end."""
    monkeypatch.setattr(reference, "PlainLoop", Scripted)
    config = composed("benchmark", *tiny, "quality_size=32", "steps=11")
    quality = measure_quality(config)
    assert (quality.target, quality.plain_best_evaluation) == (1.0, 2)
    assert (quality.job_evaluations, quality.job_steps) == (10, 11)
    assert (quality.width, quality.height, quality.plain_evaluations) == (32, 21, 4)
    assert (quality.plain_final, quality.job_final) == (4.0, 0.5)
    twice = (quality.float32_final, quality.relay_final)
    assert twice in ((None, 0.25), (0.25, 0.125))
    assert quality.seconds is not None
    assert quality.ratio == quality.seconds / quality.plain_seconds
    assert quality.seconds < quality.job_total_seconds
    monkeypatch.setattr(Scripted, "objectives", (2.0,) * 7)
    bundled = composed("benchmark", *tiny, "quality_size=32", "steps=11", "features=bundled")
    quality = measure_quality(bundled)
    assert (quality.ratio, quality.seconds, quality.job_evaluations) == (None, None, 11)
    assert (quality.relay_seconds, quality.relay_final) == (None, None)
    monkeypatch.setattr(Scripted, "losses", (math.nan, math.inf))
    with pytest.raises(UserError, match="never finite"):
        measure_quality(config)


def test_plains_time_is_that_until_its_best_evaluation() -> None:
    run = PlainRun(None, [3.0, 1.0, 2.0], seconds=6.0)  # type: ignore[arg-type]
    assert run.seconds_until_best == 4.0


def test_a_relay_is_as_long_as_its_preset_has_it() -> None:
    relay = composed("train", "experiment=relay")
    assert relay.changes[-1].set["steps"] == RELAY * relay.steps


def test_who_stops_early_keeps_the_rows(
    tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(config: BenchmarkConfig) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "measure_quality", stopped)
    with pytest.raises(KeyboardInterrupt):
        benchmark(composed("benchmark", *tiny, "sizes=[32]", "quality=true"), tmp_path)
    assert json.loads((tmp_path / "benchmark.json").read_text())["quality"] is None


def test_the_default_job_is_a_process_of_its_own_warmed_up_once(tmp_path: Path) -> None:
    script = "import sys; print(len(sys.argv), sys.argv[1], file=open(%r, 'a'))"
    calls = tmp_path / "calls"
    job = (sys.executable, "-c", script % str(calls))
    seconds = measure_default_job(BenchmarkConfig(rounds=2, device="cpu"), job)
    assert 0 < seconds.lower < seconds.upper
    assert calls.read_text().splitlines() == ["3 device=cpu"] * 3
    once = measure_default_job(BenchmarkConfig(rounds=1, device="cpu"), job)
    assert once.lower == once.upper  # the first run is not among the timed
    job = (sys.executable, "-c", "import sys; sys.exit('error: no picture')")
    with pytest.raises(UserError, match="failed: error: no picture"):
        measure_default_job(BenchmarkConfig(rounds=1, device="cpu"), job)


# Its parts.


def row(name: str, size: int, seconds: float, tile: int | None = None) -> Row:
    return Row(name, size, "float32", True, tile, None, None, Spread.of([seconds]), 1, "tensors")


def test_what_follows_from_rows() -> None:
    rows = [row("a", size, (size**2) ** 1.25) for size in (10, 20, 40)] + [row("b", 10, 1.0)]
    assert growth(rows) == {"a": pytest.approx(1.25)}
    rows = [row("a", size, size**2 * 1e-6) for size in (256, 512, 1024)]
    rows += [row("a tiled", size, size**2 * 1.3e-6, tile=64) for size in (512, 4096)]
    assert tiles_per_pixel(rows) == {"a tiled": (512, 4096, pytest.approx(1.3))}
    rows = [row("a", 64, 2.0), row("a 2 regions", 64, 3.0), row("a 2 regions", 128, 9.0)]
    assert cost_of_regions(rows) == [("a 2 regions", 64, 1.5, 1.0)]
    assert Spread.of([3.0, 1.0, 2.0, 5.0, 4.0]) == Spread(3.0, 2.0, 4.0)


def test_above_plain_up_to_only_the_fastest_rows_remain() -> None:
    config = BenchmarkConfig(objective=layers(), plain_up_to=32)
    network, whole = tiny_network(), Candidate(CLOSED, "bfloat16")
    chosen, skipped = candidates(config, network, 64, torch.bfloat16, math.inf)
    assert chosen == [whole, replace(whole, tile=32)]
    assert "plain_up_to=32" in skipped[0]
    chosen, skipped = candidates(config, network, 64, torch.bfloat16, 1e6)
    assert chosen == [replace(whole, tile=32)]
    assert "would need" in skipped[1]
    chosen, skipped = candidates(replace(config, tile=64), network, 64, torch.float32, math.inf)
    assert chosen == [Candidate(CLOSED, "float32")]
    assert skipped[1].endswith("tiled at 64, a single tile")
    assert [tile_at(config, network, size) for size in (3, 50, 4096)] == [2, 24, 1024]


def test_regions_cover_the_picture_once_and_no_loss_is_nothing_in_the_middle() -> None:
    assert torch.equal(middle(torch.zeros(2), torch.ones(2)), torch.full((2,), 0.5))
    pictures = striped(picture(1, 8, 11), picture(2), 3)
    total = torch.stack([region.weights for region in pictures.regions]).sum(0)
    assert torch.equal(total, torch.ones(1, 1, 8, 11, dtype=torch.float64))
    assert [region.sources[0].style for region in pictures.regions] == [0, 1, 0]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"rounds": 0}, "rounds=0 must be 1 or more"),
    ({"sizes": []}, "sizes=[] must name one or more"),
    ({"sizes": [32, 32]}, "each once"),
    ({"sizes": [0]}, "must be 1 to 1048576 pixels each"),
    ({"sizes": [1]}, "too small for relu2_1"),
    ({"modes": ["autograd"]}, "unknown loss mode 'autograd'; choose fake_backward,"),
    ({"precisions": ["float16"]}, "unknown precision 'float16'"),
    ({"regions": [1]}, "must be 2 to 64 each"),
    ({"tile": 1}, "tile=1 must be at least 2"),
    ({"steps": 0}, "steps=0"),
    ({"features": FeaturesConfig("vgg19", "random", pooling="average")}, "not what the plain"),
    ({"objective": ObjectiveConfig(tv_weight=0.1)}, "not what the plain loop does"),
    ({"content": "nowhere.jpg"}, "nowhere.jpg"),
]


def test_bad_input_is_one_line_and_leaves_nothing(tiny: list[str], tmp_path: Path) -> None:
    good = composed("benchmark", *tiny)
    for settings, message in BAD:
        with pytest.raises(UserError, match=re.escape(message)) as caught:
            benchmark(replace(good, **settings), tmp_path / "run")
        assert "\n" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_script_runs_and_measures_resident_memory(tiny: list[str], tmp_path: Path) -> None:
    words = [*tiny, f"hydra.run.dir={tmp_path}/run", "sizes=[48]", "plain_up_to=0", "tile=48"]
    line = [sys.executable, "-W", "error", str(ROOT / "scripts" / "benchmark.py"), *words]
    finished = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert f"| {CLOSED} float32 " in finished.stdout
    assert "Left out: plain and slower rows at 48, above plain_up_to=0." in finished.stdout
    assert f"{tmp_path}/run/benchmark.md" in finished.stdout
    (only,) = json.loads((tmp_path / "run" / "benchmark.json").read_text())["rows"]
    assert only["memory_kind"] == ("resident" if sys.platform == "linux" else "tensors")
    assert only["time_ratio"] is None
    assert only["peak_memory_bytes"] > 0


@pytest.mark.cuda
def test_on_a_gpu(tiny: list[str], tmp_path: Path) -> None:
    found = benchmark(composed("benchmark", *tiny, "device=cuda"), tmp_path)
    assert all(row.peak_memory_bytes > 0 for row in found.rows)
    assert {path.name for path in tmp_path.iterdir()} == FILES
