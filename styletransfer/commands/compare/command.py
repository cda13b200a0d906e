"""Run one job under every loss mode: `python scripts/compare.py content=A.jpg style=B.jpg`.

The keys are those of `scripts/train.py`; `rounds=` and `points=` say how much is measured. Without
arguments it takes the bundled pictures. Gradients, calls, time, memory and pictures of each mode
land in the run folder as comparison.json, comparison.md and comparison.png.
"""

from pathlib import Path

from styletransfer.commands.compare.report import modes_table, sentences
from styletransfer.commands.compare.run import compare
from styletransfer.config import CompareConfig


def main(config: CompareConfig, folder: Path) -> None:
    """Compare the loss modes; print the table and where the files are."""
    comparison = compare(config, folder)
    print(modes_table(comparison))
    print(f"time, memory and final loss are ratios to {comparison.reference}'s")
    print(sentences(comparison)[-1])
    for name in ("comparison.json", "comparison.md", "comparison.png"):
        print(folder / name)
