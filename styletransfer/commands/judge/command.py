"""Judge the bundled feature network, or style networks, by VGG-19: `python scripts/judge.py`.

Every pair of `configs/judged/features.yaml` is stylised under a random VGG-19, the bundled
network and VGG-19 itself; VGG-19 says how good each picture is, and probes what it looks like.
`judged=networks networks=FILE` sets a style network's single pass beside the optimiser.
"""

from pathlib import Path

from styletransfer.commands.judge.report import tables
from styletransfer.commands.judge.run import judge
from styletransfer.config import JudgeConfig


def main(config: JudgeConfig, folder: Path) -> None:
    """Paint, judge, and print four tables and where the files are."""
    judgement = judge(config, folder, print)
    for heading, text in tables(judgement).items():
        print(f"\n{heading}\n{text}")
    for name in ("judge.json", "contact_sheet.png"):
        print(folder / name)
