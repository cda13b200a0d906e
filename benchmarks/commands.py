"""The benchmarks that Hydra runs like commands, with configs of their own."""

from pathlib import Path

from benchmarks import CONFIGS
from benchmarks.evaluations.config import BenchmarkConfig
from benchmarks.judge.config import JudgeConfig
from styletransfer.settings.registry import command


@command(folder=CONFIGS)
def benchmark(config: BenchmarkConfig, folder: Path) -> None:
    """Compare time and memory with a plain loop."""
    from benchmarks.evaluations.command import main

    main(config, folder)


@command(folder=CONFIGS)
def judge(config: JudgeConfig, folder: Path) -> None:
    """Judge the bundled feature network, or style networks, by VGG-19."""
    from benchmarks.judge.command import main

    main(config, folder)
