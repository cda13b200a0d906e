"""Judge the bundled feature network by VGG-19: `python scripts/judge.py`.

Every pair in `configs/judge.yaml` is stylised under a random VGG-19, the bundled
network and VGG-19 itself; VGG-19 says how good each picture is, and probes what it looks like.
"""

from pathlib import Path
from statistics import mean

from styletransfer.commands.judge.probes import PROBES
from styletransfer.commands.judge.run import judge
from styletransfer.commands.judge.verdict import NETWORKS, gap_closed
from styletransfer.config import JudgeConfig
from styletransfer.system.table import table


def main(config: JudgeConfig, folder: Path) -> None:
    """Stylise, judge, and print three tables and where the files are."""
    judgement = judge(config, folder, print)
    verdicts, rows = judgement.verdicts, list(judgement.verdicts.values())
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
    pictures = ["style", *NETWORKS]
    probed = [
        [
            name,
            *(
                f"{mean(row[picture][name] for row in judgement.probes.values()):.4f}"
                for picture in pictures
            ),
        ]
        for name in PROBES
    ]
    print("\nprobes, mean over pairs")
    print(table(["probe", *pictures], probed))
    for name in ("judge.json", "contact_sheet.png"):
        print(folder / name)
