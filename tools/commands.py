"""The tools that Hydra runs like commands, with configs of their own."""

from pathlib import Path

from styletransfer.settings.registry import command
from tools import CONFIGS
from tools.benchmark.config import BenchmarkConfig
from tools.judge.config import JudgeConfig


@command(folder=CONFIGS)
def benchmark(config: BenchmarkConfig, folder: Path) -> None:
    """Measure time and memory against the plain loop: `python scripts/benchmark.py`."""
    from tools.benchmark.command import main

    main(config, folder)


@command(folder=CONFIGS)
def judge(config: JudgeConfig, folder: Path) -> None:
    """Judge the bundled feature network, or style networks, by VGG-19: `python -m tools.judge`."""
    from tools.judge.command import main

    main(config, folder)
