"""Time to pastiche: `python -m benchmarks.leaderboard vgg19=FILE`; see docs/leaderboard.md.

An entry of benchmarks/leaderboard.yaml is a command that writes a PNG. VGG-19 judges this PNG in
one forward pass, by the objective of benchmarks/plain.py. The table has this objective divided by
that of the plain loop's PNG, and the processor time of the command and its child processes divided
by the plain loop's.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from statistics import geometric_mean

import torch
from omegaconf import MISSING, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from benchmarks.plain import PlainLoop, loop_on, read_picture
from styletransfer.cli.errors import one_line_errors
from styletransfer.errors import UserError
from styletransfer.features import weights
from styletransfer.lessons.measure import table
from styletransfer.pictures import images
from styletransfer.system.signals import interruptible

ROOT = Path(__file__).parents[1]


@dataclass
class Entry:
    """An Entry is a program that paints: its command line, and its stated number of evaluations."""

    command: str = MISSING
    evaluations: str = "?"


@dataclass
class LeaderboardConfig:
    """These are the settings of the tool `leaderboard`."""

    vgg19: str = MISSING  # weights file, with torchvision's names
    size: int = 256  # longer side of all pictures in pixels
    folder: str = "outputs/leaderboard"
    pairs: list[list[str]] = field(default_factory=list)  # names of bundled content and style
    entries: dict[str, Entry] = field(default_factory=dict)  # all are divided by "plain"


@torch.no_grad()
def judged(judge: PlainLoop, path: Path) -> float:
    """Return the objective at a PNG by one forward pass; infinite without a PNG of that size."""
    try:
        picture = read_picture(str(path))
    except OSError:
        return inf
    return judge.objective(picture).item() if picture.shape == judge.start.shape else inf


def paint(command: str, places: Mapping[str, object], output: Path) -> float:
    """Run an entry's command in the folder of `output`; return processor seconds, or infinity."""
    words = [os.path.expandvars(word) for word in shlex.split(command)]
    for name, value in places.items():
        words = [word.replace(f"{{{name}}}", str(value)) for word in words]
    path = os.environ | {"PYTHONPATH": str(ROOT)}
    with output.with_suffix(".txt").open("w", encoding="utf-8") as log:
        before = sum(os.times()[2:4])  # user and system time of children
        done = subprocess.run(words, cwd=output.parent, env=path, stdout=log, stderr=log)
    return inf if done.returncode else sum(os.times()[2:4]) - before


def row(name: str, entry: Entry, results: list[dict[str, tuple[float, float]]]) -> list[str]:
    """Return the row of the entry `name`; pairs of pictures at which it failed do not count.

    `results` has entry -> (objective, processor seconds) for each pair.
    """
    done = [result for result in results if max(result[name]) < inf]
    gaps, times = ([each[name][i] / each["plain"][i] for each in done] or [inf] for i in (0, 1))
    texts = [f"{x:.2f}" for x in (geometric_mean(gaps), max(gaps), geometric_mean(times))]
    return [name, entry.evaluations, *texts, f"{len(done)} of {len(results)}"]


def leaderboard(config: LeaderboardConfig) -> list[dict[str, tuple[float, float]]]:
    """Let all entries paint; return entry -> (objective, processor seconds) for each pair."""
    state = {name: tensor.float() for name, tensor in weights.read(Path(config.vgg19)).items()}
    if config.size < 32 or "features.28.weight" not in state:
        raise UserError("size must be 32 or more, and vgg19 a file of torchvision's names")
    print(f"VGG-19 {weights.digest(state)[:16]}, {config.size} pixels")
    entries = {k: v for k, v in config.entries.items() if "$" not in os.path.expandvars(v.command)}
    print("left out, a $VARIABLE is not set:", *sorted({*config.entries} - {*entries} or {"none"}))
    results: list[dict[str, tuple[float, float]]] = []
    for pair in config.pairs:
        place = Path(config.folder).absolute() / "_x_".join(pair)
        given = {"python": sys.executable, "vgg19": os.path.abspath(config.vgg19)}
        for kind, name in zip(("content", "style"), pair, strict=True):
            picture = images.read(ROOT / "assets" / kind / f"{name}.jpg")
            given[kind] = str(place / f"{kind}.png")
            images.write(given[kind], images.resize_picture(picture, config.size).rgb)
        judge = loop_on(state, given["content"], given["style"])
        results.append({})
        for name, entry in entries.items():
            output = place / f"by_{name}.png"
            output.unlink(missing_ok=True)
            seconds = paint(entry.command, given | {"output": output, "size": config.size}, output)
            results[-1][name] = judged(judge, output), seconds
            print(*pair, name, *results[-1][name], flush=True)
        if max(results[-1]["plain"]) == inf:
            raise UserError(f"the plain loop failed; see {place}/by_plain.txt")
        rows = [row(name, entry, results) for name, entry in entries.items()]
        print(table(["entry", "evaluations", "objective", "worst", "time", "pairs"], rows))
    return results


if __name__ == "__main__":
    with one_line_errors(), interruptible():
        try:
            read = OmegaConf.load(Path(__file__).with_suffix(".yaml"))
            merged = OmegaConf.merge(LeaderboardConfig, read, OmegaConf.from_cli())
            leaderboard(OmegaConf.to_object(merged))  # type: ignore[arg-type]
        except (OmegaConfBaseException, ValueError) as error:
            raise UserError(str(error).splitlines()[0]) from error
