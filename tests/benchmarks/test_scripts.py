"""The scripts of benchmarks/."""

import importlib.util

from helpers import ROOT


def test_every_benchmark_finds_what_it_imports():
    for path in (ROOT / "benchmarks").glob("[a-z]*.py"):
        if path.stem != "studio" or importlib.util.find_spec("websockets"):
            importlib.import_module(f"benchmarks.{path.stem}")
