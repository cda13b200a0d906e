"""Judge the bundled feature network by VGG-19: `python scripts/judge.py`.

Every pair in `configs/judge.yaml` is stylised under a random VGG-19, the bundled
network and VGG-19 itself; VGG-19 says how good each picture is.
"""

from pathlib import Path
from statistics import mean

from styletransfer.commands.judge.run import judge
from styletransfer.commands.judge.verdict import NETWORKS, gap_closed
from styletransfer.config import JudgeConfig
from styletransfer.system.table import table


def main(config: JudgeConfig, folder: Path) -> None:
    """Stylise, judge, and print two tables and where the files are."""
    verdicts = judge(config, folder, print)
    rows = list(verdicts.values())
    errors = [
        [layer, *(f"{mean(row[name].errors[layer] for row in rows):.4f}" for name in NETWORKS)]
        for layer in rows[0]["content"].errors
    ]
    print("\nerror under VGG-19, mean over pairs")
    print(table(["layer", *NETWORKS], errors))
    gaps = [
        [pair, *(f"{gap_closed(row, name):.3f}" for name in NETWORKS)]
        for pair, row in verdicts.items()
    ]
    means = [f"{mean(gap_closed(row, name) for row in rows):.3f}" for name in NETWORKS]
    print("\ngap closed")
    print(table(["pair", *NETWORKS], [*gaps, ["mean", *means]]))
    for name in ("judge.json", "contact_sheet.png"):
        print(folder / name)
