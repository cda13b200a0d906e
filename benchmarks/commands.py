"""The command `benchmark`, which Hydra runs like the package's commands."""

from pathlib import Path

from benchmarks import CONFIGS
from benchmarks.evaluations.config import BenchmarkConfig
from styletransfer.settings.registry import command


@command(folder=CONFIGS)
def benchmark(config: BenchmarkConfig, folder: Path) -> None:
    """Compare time and memory with a plain loop."""
    from benchmarks.evaluations.command import main

    main(config, folder)
