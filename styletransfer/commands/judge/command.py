"""Judge the bundled feature network by VGG-19: `python scripts/judge.py`.

Every pair in `configs/judge.yaml` is stylised under a random VGG-19, the bundled
network and VGG-19 itself; VGG-19 says how good each picture is.
"""

from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from styletransfer.commands.judge.run import NETWORKS, evaluate, gap_closed
from styletransfer.config import JudgeConfig


def main(config: JudgeConfig, folder: Path) -> None:
    """Stylise, judge, and print two tables."""
    verdicts = evaluate(config, folder, print)
    rows = list(verdicts.values())

    errors = Table("error under VGG-19, mean over pairs", *NETWORKS)
    for layer in rows[0]["content"].errors:
        means = (mean(row[network].errors[layer] for row in rows) for network in NETWORKS)
        errors.add_row(layer, *(f"{value:.4f}" for value in means))
    gaps = Table("gap closed", *NETWORKS)
    for name, row in verdicts.items():
        gaps.add_row(name, *(f"{gap_closed(row, network):.3f}" for network in NETWORKS))
    means = (mean(gap_closed(row, network) for row in rows) for network in NETWORKS)
    gaps.add_row("mean", *(f"{value:.3f}" for value in means))
    console = Console()
    console.print(errors)
    console.print(gaps)
    print(folder / "evaluation.json")
    print(folder / "contact_sheet.png")
