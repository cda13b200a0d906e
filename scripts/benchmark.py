"""Compare time and memory with a plain loop in PyTorch: `python scripts/benchmark.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import start

if __name__ == "__main__":
    start("benchmark")
