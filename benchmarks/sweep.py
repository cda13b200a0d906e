"""What does a sweep by joblib cost against its runs one after another?

    python benchmarks/sweep.py                          # 8 jobs on all cores
    python benchmarks/sweep.py --jobs 2 size=32 steps=2 device=cpu

Prints one ratio, both sides measured in this run: the time of a sweep with hydra/launcher=joblib
over that of the same runs by single commands, start-up included. Each single run uses all cores,
each job of the sweep its share. KEY=VALUE go to every run. Run it on a quiet machine.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STYLETRANSFER = [sys.executable, "-m", "styletransfer", "train"]


def seconds(folder: Path, *words: str) -> float:
    """Return how long one command takes that works in `folder`."""
    began = time.perf_counter()
    done = subprocess.run(
        [*STYLETRANSFER, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE")
    arguments = parser.parse_intermixed_args()
    # Jobs that take the same time, and differ.
    weights = [str(round(0.1 + 0.05 * number, 2)) for number in range(arguments.jobs)]
    key = "objective.content_weight"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = [seconds(folder, *arguments.words, f"{key}={weight}") for weight in weights]
        swept = [f"{key}={','.join(weights)}", "--multirun", "hydra/launcher=joblib"]
        sweep = seconds(folder, *arguments.words, *swept)
        pictures = len(list(folder.rglob("pastiche.png")))
    assert pictures == 2 * arguments.jobs
    print(f"sweep of {arguments.jobs} jobs by joblib / one after another: {sweep / sum(runs):.2f}")


if __name__ == "__main__":
    main()
