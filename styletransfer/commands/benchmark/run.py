"""Time and memory of every way to evaluate the objective, against the plain loop, in one run."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from styletransfer.commands.benchmark.chart import draw
from styletransfer.commands.benchmark.default_job import TRAIN, measure_default_job
from styletransfer.commands.benchmark.quality import measure_quality
from styletransfer.commands.benchmark.reference import MakeReference, make_reference
from styletransfer.commands.benchmark.report import as_json, markdown
from styletransfer.commands.benchmark.resident import is_measurable, peak_resident
from styletransfer.commands.benchmark.results import Benchmark, Row, Spread, growth
from styletransfer.commands.benchmark.rows import (
    Candidate,
    build_network,
    candidates,
    default_config,
    evaluation,
    in_precision,
    middle,
    squares,
)
from styletransfer.config import BenchmarkConfig
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor
from styletransfer.job.load import load
from styletransfer.job.schedule import check_run
from styletransfer.objective.limits import check_size
from styletransfer.pictures.images import LONGEST_SIDE
from styletransfer.system.devices import (
    PRECISIONS,
    choose_device,
    choose_precision,
    has_native_bfloat16,
)
from styletransfer.system.files import atomic, check_folder
from styletransfer.system.measure import Work, describe_machine, peak_memory, seconds_by_round
from styletransfer.system.memory import free_bytes

logger = logging.getLogger(__name__)

PLAIN = "plain"


def benchmark(
    config: BenchmarkConfig, folder: Path, make: MakeReference, train: Sequence[str] = TRAIN
) -> Benchmark:
    """Measure, and write benchmark.json, benchmark.md and benchmark.png to `folder`.

    Each row is called once to warm up; then every round calls all rows of a size in turn, so that
    a machine that drifts slows all of them alike. Peak memory counts torch's tensors; above
    `plain_up_to`, on Linux and on the CPU, the resident memory of a process of its own, which is
    what a person has to have (see `resident.peak_resident`).

    The files are written after each size, the smallest first, and again after time to quality and
    the default job: who stops early keeps what was found.

    Args:
        config: what to measure.
        folder: of the run.
        make: the plain loop.
        train: the process of the default job.

    Raises:
        UserError: bad input, before anything is measured.
    """
    check(config)
    device = choose_device(config.device)
    load(default_config(config, min(config.sizes)))
    network = build_network(config, device)
    smallest = min(config.sizes)
    check_size(network, (smallest, smallest), f"a picture of sizes={config.sizes}")
    check_folder(folder / "benchmark.json")

    rows: list[Row] = []
    skipped: list[str] = []
    for size in sorted(config.sizes):
        logger.info("measuring at %d x %d pixels", size, size)
        auto, free = choose_precision("auto", device), free_bytes(device)
        chosen, left_out = candidates(config, network, size, auto, free)
        skipped += left_out
        rows += measure_size(config, network, chosen, size, make)
        found = summary(config, device, rows, skipped)
        write(found, folder)
    if config.quality:
        if config.features.weights == "random":
            logger.warning("quality=true on random weights says little; name features.weights=")
        found = replace(found, quality=measure_quality(config, make))
        write(found, folder)
    if config.default_job:
        found = replace(found, default_job=measure_default_job(config, train))
        write(found, folder)
    return found


def summary(
    config: BenchmarkConfig, device: torch.device, rows: list[Row], skipped: list[str]
) -> Benchmark:
    """Return what was found so far, with what it depends on."""
    machine = describe_machine(device, torch.float32)
    del machine["precision"]  # each row has its own
    return Benchmark(
        settings={
            "features": config.features.name,
            "weights": _kind_of_weights(config),
            "padding": config.features.padding,
            "content_layers": ", ".join(config.objective.content_layers),
            "style_layers": ", ".join(config.objective.style_layers),
            "sizes": sorted(config.sizes),
            "rounds": config.rounds,
        },
        machine=machine,
        rows=rows,
        growth=growth(rows),
        skipped=skipped,
    )


def write(found: Benchmark, folder: Path) -> None:
    """Write benchmark.json, benchmark.md and benchmark.png."""
    for file, text in (("benchmark.md", markdown(found)), ("benchmark.json", as_json(found))):
        with atomic(folder / file) as temporary:
            temporary.write_text(text, encoding="utf-8")
    with atomic(folder / "benchmark.png") as temporary:
        draw(found, temporary)


def check(config: BenchmarkConfig) -> None:
    """Check the numbers and names.

    Raises:
        UserError: naming the key, its value and what it may be.
    """
    for key, value, low in (
        ("rounds", config.rounds, 1),
        ("tile", config.tile, 0),
        ("plain_up_to", config.plain_up_to, 0),
        ("quality_steps", config.quality_steps, 1),
    ):
        if value < low:
            raise UserError(f"{key}={value} must be {low} or more")
    named: list[tuple[str, list[Any]]] = [
        ("sizes", config.sizes),
        ("precisions", config.precisions),
    ]
    for key, names in named:
        if not names or len(set(names)) < len(names):
            raise UserError(f"{key}={names} must name one or more, each once")
    if not all(2 <= count <= 64 for count in config.regions):
        raise UserError(f"regions={config.regions} must be 2 to 64 each")
    if not all(1 <= size <= LONGEST_SIDE for size in config.sizes):
        raise UserError(f"sizes={config.sizes} must be 1 to {LONGEST_SIDE} pixels each")
    for precision in config.precisions:
        if precision not in PRECISIONS:
            raise UserError(f"unknown precision {precision!r}; choose {', '.join(PRECISIONS)}")
    features = config.features
    fixed: list[tuple[str, object, object]] = [
        ("features.pooling", features.pooling, "max"),
        ("features.preprocessing", features.preprocessing, "imagenet"),
        ("objective.tv_weight", config.objective.tv_weight, 0),
    ]
    for key, found, only in fixed:
        if found != only:
            raise UserError(f"{key}={found} is not what the plain loop does; leave it at {only}")
    check_run(default_config(config, config.quality_size))


def measure_size(
    config: BenchmarkConfig,
    network: FeatureExtractor,
    chosen: list[Candidate],
    size: int,
    make: MakeReference,
) -> list[Row]:
    """Measure the chosen candidates, and the plain loop up to `plain_up_to`, at one size."""
    device = next(network.parameters()).device
    content, style = squares(config, size, device)
    networks = {each.precision: in_precision(network, each.precision) for each in chosen}
    work: dict[str, Work] = {}
    if size <= config.plain_up_to:
        reference = make_reference(make, config, network, content, style)
        work[PLAIN] = partial(reference.evaluate, middle(content, style))
    for each in chosen:
        work[each.name] = evaluation(config, each, networks[each.precision], content, style)
    seconds = seconds_by_round(work, config.rounds, device)

    in_process = size <= config.plain_up_to or device.type != "cpu" or not is_measurable()
    memory = {name: peak_memory(call, device) for name, call in work.items() if in_process}
    work.clear()  # another process needs the memory
    if not in_process:
        memory = {each.name: peak_resident(config, each, size) for each in chosen}
    plain = {PLAIN: Candidate(PLAIN, "float32")} if PLAIN in seconds else {}
    return [
        Row(
            name=name,
            size=size,
            precision=each.precision,
            native=each.precision != "bfloat16" or has_native_bfloat16(device),
            tile=each.tile,
            time_ratio=_ratios(seconds[name], seconds[PLAIN]) if plain else None,
            memory_ratio=memory[name] / memory[PLAIN] if plain else None,
            seconds=Spread.of(seconds[name]),
            peak_memory_bytes=memory[name],
            memory_kind="tensors" if in_process else "resident",
        )
        for name, each in {**plain, **{each.name: each for each in chosen}}.items()
    ]


def _ratios(seconds: list[float], plain: list[float]) -> Spread:
    return Spread.of([mine / base for mine, base in zip(seconds, plain, strict=True)])


def _kind_of_weights(config: BenchmarkConfig) -> str:
    """Return pretrained, random or "given": a path is nobody else's business."""
    weights = config.features.weights
    return weights if weights in ("pretrained", "random") else "given"
