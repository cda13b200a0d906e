"""The benchmarks that Hydra runs like commands, with configs of their own."""

from pathlib import Path

from benchmarks import CONFIGS
from benchmarks.evaluations.config import BenchmarkConfig
from styletransfer.settings.registry import command


@command(folder=CONFIGS)
def benchmark(config: BenchmarkConfig, folder: Path) -> None:
    """Compare time and memory with a plain loop."""
    from benchmarks.evaluations.command import main

    main(config, folder)
