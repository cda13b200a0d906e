"""The plain loop as a second opinion, and scripts/benchmark.py on tiny pictures."""

import json
import math
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from helpers import (
    MODES,
    ROOT,
    benchmark_script,
    composed,
    layers,
    picture,
    relative_error,
    tiny_network,
)

from styletransfer.commands.benchmark.default_job import measure_default_job
from styletransfer.commands.benchmark.quality import RELAY, PlainRun, measure_quality
from styletransfer.commands.benchmark.reference import (
    SCALE,
    make_reference,
    torchvision_state,
)
from styletransfer.commands.benchmark.report import as_json, markdown, rows_table, sentences
from styletransfer.commands.benchmark.results import (
    Quality,
    Row,
    Spread,
    cost_of_regions,
    growth,
    tiles_per_pixel,
)
from styletransfer.commands.benchmark.rows import Candidate, candidates, striped, tile_at
from styletransfer.commands.benchmark.run import benchmark
from styletransfer.config import BenchmarkConfig, FeaturesConfig, ObjectiveConfig
from styletransfer.errors import UserError
from styletransfer.features import build_features, vgg
from styletransfer.modes import get_loss_mode
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective
from styletransfer.optimize.run import Run
from styletransfer.pictures import images

TINY = (
    "objective.content_layers=[relu2_1]",
    "objective.style_layers=[relu1_1,relu2_1]",
    "sizes=[32,48]",
    "rounds=1",
    "device=cpu",
)
FILES = {"benchmark.json", "benchmark.md", "benchmark.png"}
SPREAD = {"median", "lower", "upper"}


plain = benchmark_script("plain")


def numbers(value):
    """Every number below a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    return [value] if isinstance(value, int | float) else []


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The command line of a tiny benchmark on two pictures of different shapes."""
    folder = tmp_path_factory.mktemp("pictures")
    for seed, size in enumerate(((40, 60), (50, 34))):
        images.write(folder / f"{seed}.png", picture(seed, *size).float())
    return [f"content={folder}/0.png", f"style={folder}/1.png", *TINY]


@pytest.fixture(scope="module")
def done(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    settings = ("quality=true", "quality_size=32", "quality_steps=20", "steps=10")
    return benchmark(composed("benchmark", *tiny, *settings), folder, plain.PlainLoop), folder


# The plain loop.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", ["zeros", "replicate"])
@pytest.mark.parametrize("normalization", ["target", "none"])
def test_plain_and_the_objective_agree_in_float64(mode, padding, normalization):
    network = tiny_network(padding=padding)
    content, style, image = picture(1, 17, 23), picture(2, 19, 14), picture(3, 17, 23)
    settings = layers(normalization=normalization)
    config = BenchmarkConfig(
        features=FeaturesConfig("vgg19", "random", padding=padding), objective=settings
    )
    loop = make_reference(plain.PlainLoop, config, network, content, style, scale=1.0)
    loss, gradient = loop.evaluate(image)
    leaf = image.clone().requires_grad_()
    criterion = Criterion.of(settings)
    losses = Objective(network, get_loss_mode(mode), criterion, pair(content, style)).evaluate(leaf)
    assert relative_error(losses.total, loss) <= 1e-10
    assert relative_error(leaf.grad, gradient) <= 1e-10


@pytest.mark.parametrize("name", ["vgg16", "vgg19"])
def test_plain_agrees_on_the_whole_of_gatys_network(name, monkeypatch):
    widths = tuple((4,) * len(block) for block in vgg.WIDTHS[name])
    monkeypatch.setitem(vgg.WIDTHS, name, widths)
    features = FeaturesConfig(name, "random", padding="zeros")
    network = build_features(features).double()
    content, style, image = (picture(seed, 35, 50) for seed in (1, 2, 3))
    config = BenchmarkConfig(features=features)
    loop = make_reference(plain.PlainLoop, config, network, content, style, scale=1.0)
    loss, gradient = loop.evaluate(image)
    leaf = image.clone().requires_grad_()
    mode = get_loss_mode("autograd_function")
    criterion = Criterion.of(ObjectiveConfig())
    losses = Objective(network, mode, criterion, pair(content, style)).evaluate(leaf)
    assert relative_error(losses.total, loss) <= 1e-10
    assert relative_error(leaf.grad, gradient) <= 1e-10


def test_plain_has_the_same_layers_as_the_network():
    network = tiny_network()
    copied = plain.build_network(torchvision_state(network, "vgg19"))
    assert [name for name, _ in copied.named_children()] == list(network.layers)
    assert not any(parameter.requires_grad for parameter in copied.parameters())


def test_plain_ignores_the_classifier():
    state = torchvision_state(tiny_network(), "vgg19")
    copied = plain.build_network({**state, "classifier.0.weight": torch.zeros(2, 2)})
    assert len(copied) == len(plain.build_network(state))


@pytest.fixture
def loop():
    config = BenchmarkConfig(objective=layers())
    return make_reference(plain.PlainLoop, config, tiny_network(), picture(1), picture(2))


def test_plain_makes_twenty_evaluations_a_step(loop):
    losses = loop.run(21)
    assert len(losses) == 40
    assert min(losses) < losses[0] / 2
    assert losses[0] == loop.objective(picture(1)).item()
    assert 0 <= loop.picture.min() <= loop.picture.max() <= 1


def test_plain_is_repeatable_and_leaves_its_pictures_alone(loop):
    first = loop.run(20)
    assert loop.run(20) == first
    image = picture(3)
    loop.evaluate(image)
    assert torch.equal(image, picture(3))


# A run.


def test_it_writes_every_file_and_nothing_else(done):
    assert {path.name for path in done[1].iterdir()} == FILES
    height, width = images.read(done[1] / "benchmark.png").size
    assert (height, width) == (600, 1440)


def test_the_json_file_has_its_schema(done):
    found = json.loads((done[1] / "benchmark.json").read_text())
    assert set(found) == {
        "settings",
        "machine",
        "rows",
        "growth",
        "skipped",
        "quality",
        "default_job",
    }
    assert found["settings"]["sizes"] == [32, 48]
    assert found["settings"]["weights"] == "random"
    assert "precision" not in found["machine"]
    for row in found["rows"]:
        assert set(row) == set(Row.__dataclass_fields__)
        assert set(row["seconds"]) == set(row["time_ratio"]) == SPREAD
        assert all(math.isfinite(number) for number in numbers(row))
        assert row["seconds"]["median"] > 0
        assert row["peak_memory_bytes"] > 0
        assert row["memory_kind"] == "tensors"
    assert set(found["quality"]) == set(Quality.__dataclass_fields__)
    assert set(found["growth"]) == {row["name"] for row in found["rows"]}


def test_plain_comes_first_and_every_mode_precision_and_tiling_follows(done):
    for size in (32, 48):
        mine = [row for row in done[0].rows if row.size == size]
        names = [row.name for row in mine]
        whole = [f"{mode} {precision}" for precision in ("float32", "bfloat16") for mode in MODES]
        tiled = [f"autograd_function {precision} tiled" for precision in ("float32", "bfloat16")]
        assert names[0] == "plain"
        assert set(names) == {"plain", *whole, *tiled}
        assert len(names) == 9
        assert mine[0].time_ratio == Spread(1, 1, 1)
        assert mine[0].memory_ratio == 1
        assert {row.tile for row in mine if row.name in tiled} == {size // 2 // 2 * 2}


def test_the_markdown_file_holds_the_table_and_every_sentence(done):
    text = (done[1] / "benchmark.md").read_text()
    assert rows_table(done[0]) in text
    assert all(sentence in text for sentence in sentences(done[0]))


def test_quality_is_judged_by_plain(done):
    quality = done[0].quality
    assert (quality.width, quality.height) == (32, 21)
    assert quality.plain_evaluations == 20
    assert 1 <= quality.plain_best_evaluation <= 20
    assert 0 < quality.target < 1
    assert quality.plain_final >= 0.5 * quality.target
    assert (quality.ratio is None) == (quality.seconds is None)
    if quality.ratio is not None:
        assert quality.ratio == pytest.approx(quality.seconds / quality.plain_seconds)
        assert quality.seconds <= quality.job_total_seconds
    assert (quality.float32_final is None) == (quality.job_precision == "float32")


def test_sentences_follow_from_the_numbers(done):
    found, _ = done
    good = replace(found.quality, ratio=0.125, seconds=1.0, plain_seconds=8.0)
    bad = replace(found.quality, ratio=None, seconds=None, job_final=3.0, target=2.0)
    assert any("(1/8.0)" in line for line in sentences(replace(found, quality=good)))
    assert any("did not reach" in line for line in sentences(replace(found, quality=bad)))
    assert any("1.500 times" in line for line in sentences(replace(found, quality=bad)))
    begun = replace(found.quality, relay_final=0.9, relay_seconds=1.0, target=1.0)
    lower = replace(found.quality, job_final=1.1, float32_final=1.0)
    assert any(
        "relay" in line and "0.900 times" in line
        for line in sentences(replace(found, quality=begun))
    )
    assert any("1.100 times" in line for line in sentences(replace(found, quality=lower)))
    timed = replace(found, default_job=Spread(13.0, 12.0, 14.0))
    assert any("takes 13 (12 to 14) s" in line for line in sentences(timed))
    emulated = replace(found.rows[0], native=False)
    assert "plain (emulated)" in rows_table(replace(found, rows=[emulated]))
    assert any("emulated" in line for line in sentences(replace(found, rows=[emulated])))
    assert any("emulated" in line for line in markdown(replace(found, rows=[emulated])).split("\n"))


def test_json_refuses_what_it_cannot_hold(done):
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json(replace(done[0], growth={"plain": math.nan}))


class Interrupted(plain.PlainLoop):
    """A plain loop whose optimisation is stopped by Ctrl-C."""

    def run(self, evaluations):
        raise KeyboardInterrupt


class Diverged(plain.PlainLoop):
    """A plain loop whose objective is never finite."""

    def run(self, evaluations):
        return [math.nan, math.inf]


def test_an_interrupted_quality_leaves_the_rows(tiny, tmp_path):
    settings = ("sizes=[32]", "precisions=[float32]", "quality=true", "quality_size=32")
    with pytest.raises(KeyboardInterrupt):
        benchmark(composed("benchmark", *tiny, *settings), tmp_path, Interrupted)
    assert {path.name for path in tmp_path.iterdir()} == FILES
    assert json.loads((tmp_path / "benchmark.json").read_text())["quality"] is None


def test_a_plain_loop_that_is_never_finite_is_no_measure(tiny):
    config = composed("benchmark", *tiny, "quality_size=32", "steps=1")
    with pytest.raises(UserError, match="never finite"):
        measure_quality(config, Diverged)


class Scripted(plain.PlainLoop):
    """A plain loop that says what it is told: losses, and then objectives, in their order."""

    losses, objectives = (3.0, 1.0, math.nan, 2.0), (5.0, 1.0, 4.0, 0.5, 0.25, 0.125)

    def run(self, evaluations):
        self.told = iter(self.objectives)
        return [SCALE * loss for loss in self.losses]

    def objective(self, image):
        return torch.tensor(SCALE * next(self.told), dtype=torch.float64)


def test_the_target_is_plains_best_and_the_first_picture_to_meet_it_counts(tiny):
    """At steps 5 and 10, and at the end; the second is good enough."""
    quality = measure_quality(composed("benchmark", *tiny, "quality_size=32", "steps=11"), Scripted)
    assert (quality.target, quality.plain_best_evaluation) == (1.0, 2)
    assert quality.job_evaluations == 10
    assert (quality.plain_final, quality.job_final) == (4.0, 0.5)
    twice = (quality.float32_final, quality.relay_final)
    assert twice in ((None, 0.25), (0.25, 0.125))
    assert quality.relay_seconds > 0
    assert quality.ratio == quality.seconds / quality.plain_seconds
    assert quality.seconds < quality.job_total_seconds


def test_a_target_that_is_never_met(tiny, monkeypatch):
    monkeypatch.setattr(Scripted, "objectives", (2.0,) * 7)
    quality = measure_quality(composed("benchmark", *tiny, "quality_size=32", "steps=11"), Scripted)
    assert (quality.ratio, quality.seconds, quality.job_evaluations) == (None, None, 11)


def test_a_relay_is_as_long_as_its_preset_has_it():
    relay = composed("train", "experiment=relay")
    assert relay.changes[-1].set["steps"] == RELAY * relay.steps


@pytest.mark.parametrize(
    ("network", "painted"), [("vgg19", ["bundled", "vgg19"]), ("bundled", None)]
)
def test_the_bundled_network_begins_a_relay(tiny, monkeypatch, network, painted):
    used = []

    def watch(run, job):
        used.append((job.config.features.name, job.config.steps))
        take(run, job)

    take = Run._take
    monkeypatch.setattr(Run, "_take", watch)
    words = ("quality_size=32", "steps=11", f"features={network}")
    quality = measure_quality(composed("benchmark", *tiny, *words), Scripted)
    if painted is None:
        assert (quality.relay_seconds, quality.relay_final) == (None, None)
        assert {name for name, _ in used} == {"bundled"}
    else:
        assert used[-2:] == [("bundled", 11), ("vgg19", 9)]


def test_plains_time_is_that_until_its_best_evaluation():
    run = PlainRun(None, [3.0, 1.0, 2.0], seconds=6.0, target=1.0, best=2)
    assert run.seconds_until_best == 4.0


# The default job.


def process(folder, source):
    """The command line of a process in place of the default job's."""
    script = folder / "job.py"
    script.write_text(source)
    return sys.executable, str(script)


def test_the_default_job_is_measured_when_asked_for(tiny, tmp_path):
    settings = ("sizes=[32]", "precisions=[float32]", "default_job=true")
    train = process(tmp_path, "")
    benchmark(composed("benchmark", *tiny, *settings), tmp_path / "run", plain.PlainLoop, train)
    found = json.loads((tmp_path / "run" / "benchmark.json").read_text())
    assert set(found["default_job"]) == SPREAD
    assert "start of the process included" in (tmp_path / "run" / "benchmark.md").read_text()


def test_the_default_job_is_a_process_of_its_own_warmed_up_once(tmp_path):
    calls = tmp_path / "calls"
    train = process(
        tmp_path, f"import sys\nprint(len(sys.argv), sys.argv[1], file=open({str(calls)!r}, 'a'))\n"
    )
    seconds = measure_default_job(BenchmarkConfig(rounds=2, device="cpu"), train)
    assert 0 < seconds.lower <= seconds.median <= seconds.upper
    assert calls.read_text().splitlines() == ["3 device=cpu"] * 3
    once = measure_default_job(BenchmarkConfig(rounds=1, device="cpu"), train)
    assert once.lower == once.upper  # the first run is not among the timed


def test_a_default_job_that_fails_says_why(tmp_path):
    train = process(tmp_path, "import sys\nsys.exit('error: no picture')\n")
    with pytest.raises(UserError, match="failed: error: no picture"):
        measure_default_job(BenchmarkConfig(rounds=1, device="cpu"), train)


# Its parts.


def row(name, size, seconds, tile=None):
    return Row(name, size, "float32", True, tile, None, None, Spread.of([seconds]), 1, "tensors")


def test_growth_is_the_slope_over_pixels():
    rows = [row("a", size, (size**2) ** 1.25) for size in (10, 20, 40)] + [row("b", 10, 1.0)]
    assert growth(rows) == {"a": pytest.approx(1.25)}


def test_tiles_are_compared_with_the_whole_picture_at_512():
    rows = [row("a", size, size**2 * 1e-6) for size in (256, 512, 1024)]
    rows += [row("a tiled", size, size**2 * 1.3e-6, tile=64) for size in (512, 4096)]
    assert tiles_per_pixel(rows) == {"a tiled": (512, 4096, pytest.approx(1.3))}


def test_spread_by_hand():
    assert Spread.of([3.0, 1.0, 2.0, 5.0, 4.0]) == Spread(3.0, 2.0, 4.0)
    assert Spread.of([2.0]) == Spread(2.0, 2.0, 2.0)


def test_above_plain_up_to_only_the_fastest_rows_remain():
    config = BenchmarkConfig(objective=layers(), plain_up_to=32)
    network = tiny_network()
    found, skipped = candidates(config, network, 64, torch.bfloat16, math.inf)
    mode = "autograd_function"
    assert found == [Candidate(mode, "bfloat16"), Candidate(mode, "bfloat16", 32)]
    assert "plain_up_to=32" in skipped[0]
    found, skipped = candidates(config, network, 64, torch.bfloat16, 1e6)
    assert found == [Candidate(mode, "bfloat16", 32)]
    assert "would need" in skipped[1]
    config.precisions = ["float32"]
    found, _ = candidates(config, network, 64, torch.bfloat16, math.inf)
    assert {each.precision for each in found} == {"float32"}


def test_rows_of_regions_follow_the_closed_form():
    config = BenchmarkConfig(objective=layers(), regions=[2, 4], precisions=["float32"])
    found, _ = candidates(config, tiny_network(), 64, torch.float32, math.inf)
    names = [each.name for each in found if each.regions > 1]
    assert names == [
        "autograd_function float32 2 regions",
        "autograd_function float32 4 regions",
        "autograd_function float32 2 regions tiled",
        "autograd_function float32 4 regions tiled",
    ]


def test_regions_cover_the_picture_once():
    pictures = striped(picture(1, 8, 11), picture(2), 3)
    total = sum(region.weights for region in pictures.regions)
    assert torch.equal(total, torch.ones(1, 1, 8, 11, dtype=torch.float64))
    assert [region.sources[0].style for region in pictures.regions] == [0, 1, 0]


def test_regions_are_compared_with_the_undivided_picture():
    rows = [row("a", 64, 2.0), row("a 2 regions", 64, 3.0), row("a 2 regions", 128, 9.0)]
    assert cost_of_regions(rows) == [("a 2 regions", 64, 1.5, 1.0)]


def test_tiles_are_half_the_picture_up_to_a_bound():
    config, network = BenchmarkConfig(objective=layers()), tiny_network()
    assert [tile_at(config, network, size) for size in (3, 50, 4096)] == [2, 24, 1024]
    assert tile_at(replace(config, tile=10), network, 4096) == 10


def test_a_tile_as_large_as_the_picture_is_left_out():
    config = BenchmarkConfig(objective=layers(), tile=64)
    found, skipped = candidates(config, tiny_network(), 64, torch.float32, math.inf)
    assert all(each.tile is None for each in found)
    assert sum("a single tile" in line for line in skipped) == 2


# Bad input.


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("rounds=0", "rounds=0 must be 1 or more"),
        ("sizes=[]", "sizes=[] must name one or more"),
        ("sizes=[32,32]", "each once"),
        ("sizes=[0]", "must be 1 to 1048576 pixels each"),
        ("sizes=[2147483648]", "must be 1 to 1048576 pixels each"),
        ("sizes=[1]", "too small for relu2_1"),
        ("precisions=[float16]", "unknown precision 'float16'"),
        ("tile=-1", "tile=-1 must be 0 or more"),
        ("tile=1", "tile=1 must be at least 2"),
        ("plain_up_to=-1", "plain_up_to=-1"),
        ("quality_steps=0", "quality_steps=0"),
        ("quality_size=0", "size=0"),
        ("steps=0", "steps=0"),
        ("features.pooling=average", "not what the plain loop does"),
        ("features.preprocessing=none", "not what the plain loop does"),
        ("objective.tv_weight=0.1", "not what the plain loop does"),
        ("objective.style_layers=[relu9_1]", "relu9_1"),
        ("content=nowhere.jpg", "nowhere.jpg"),
        ("device=tpu", "unknown device 'tpu'"),
        ("seed=-1", "seed=-1 must be 0 or more"),
        ("seed=9223372036854775808", "must be below 2^63"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(override, message, tiny, tmp_path):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        benchmark(composed("benchmark", *tiny, override), tmp_path / "run", plain.PlainLoop)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_script_runs_and_measures_resident_memory(tiny, tmp_path):
    command = [sys.executable, "-W", "error", str(ROOT / "scripts" / "benchmark.py"), *tiny]
    command += [f"hydra.run.dir={tmp_path}/run", "sizes=[48]", "plain_up_to=0", "tile=48"]
    command += ["precisions=[float32]"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert "| autograd_function float32 " in finished.stdout
    assert "tiled at 48, a single tile" in finished.stdout
    assert f"{tmp_path}/run/benchmark.md" in finished.stdout
    assert {path.name for path in (tmp_path / "run").iterdir()} >= FILES
    found = json.loads((tmp_path / "run" / "benchmark.json").read_text())
    kind = "resident" if sys.platform == "linux" else "tensors"
    assert {row["memory_kind"] for row in found["rows"]} == {kind}
    assert all(row["time_ratio"] is None for row in found["rows"])
    assert all(row["peak_memory_bytes"] > 0 for row in found["rows"])


@pytest.mark.cuda
def test_on_a_gpu(tiny, tmp_path):
    found = benchmark(composed("benchmark", *tiny, "device=cuda"), tmp_path, plain.PlainLoop)
    assert all(row.peak_memory_bytes > 0 for row in found.rows)
    assert {path.name for path in tmp_path.iterdir()} == FILES
