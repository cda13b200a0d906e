"""Kill runs at random moments and go on: `python tests/kill_runs.py FOLDER KILLS [SEED]`.

Each ends with the very picture and metrics of a run that was left alone.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
from helpers import layers, picture

from styletransfer.config import (
    ChangeConfig,
    FeaturesConfig,
    LossModeConfig,
    OptimizerConfig,
    TrainConfig,
)
from styletransfer.features import vgg
from styletransfer.pictures import images
from styletransfer.runs.paint import paint
from styletransfer.system import checkpoint

PLAIN = OptimizerConfig(preconditioner=0.0, history=5, plateau=0.0)
LBFGS = OptimizerConfig(plateau=0.0)
ADAM = OptimizerConfig("adam", 0.02, averaging=0.9)
# Both optimisers, whole and in tiles, and what else a run may be made of.
JOBS: list[dict[str, Any]] = [
    {"optimizer": LBFGS, "objective": layers(style_loss="wasserstein"), "tile": "16"},
    {"optimizer": ADAM, "tile": "16", "color": "content_luminance", "scales": 3},
    {"optimizer": PLAIN, "init": "noise", "loss_mode": LossModeConfig("fake_backward")},
    {
        "optimizer": ADAM,
        "objective": layers(style_loss="moments"),
        "loss_mode": LossModeConfig("loss_attribute"),
        "init": "style",
        "color": "content_palette",
    },
    {
        "optimizer": LBFGS,
        "changes": [
            ChangeConfig(10, {"objective.content_weight": 1.0}),
            ChangeConfig(50, {"optimizer": "adam", "style_scale": 0.7}),
        ],
    },
]


def start(folder: Path, desk: Path, number: int) -> int:
    """Begin or go on with a run in a process of its own; return its id."""
    if process := os.fork():
        return process
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    settings: dict[str, Any] = {
        "content": str(desk / "0.png"),
        "style": str(desk / "1.png"),
        "size": 48,
        "steps": 60,
        "scales": 2,
        "tile": "off",
        "device": "cpu",
        "features": FeaturesConfig("vgg19", "random"),
        "objective": layers(),
        "checkpoint_every": 1e-9,
        "resume": "auto",
    }
    paint(TrainConfig(**(settings | JOBS[number % len(JOBS)])), folder)
    os._exit(0)


def made(folder: Path) -> list[bytes]:
    """What a finished run has made; and nothing else is left there."""
    equal = ("pastiche.png", "content_resized.png", "metrics.jsonl")
    assert {path.name for path in folder.iterdir()} == {*equal, "run.json"}
    return [(folder / name).read_bytes() for name in equal]


def main(desk: Path, kills: int, seed: int = 0) -> None:
    """Kill so many runs, each once or several times until it has come to its end."""
    torch.set_num_threads(1)
    vgg.WIDTHS["vgg19"] = tuple((4,) * len(block) for block in vgg.WIDTHS["vgg19"])  # type: ignore[index]
    torch.optim.Adam([torch.zeros(1)])  # torch imports much at the first one: once, not in each run
    checkpoint.REST = 0  # a save after each step, so that many are hit
    desk.mkdir(parents=True, exist_ok=True)
    for name in range(2):
        images.write(desk / f"{name}.png", picture(name, 24, 32))
    moments, done, number = random.Random(seed), 0, 0
    while done < kills:
        began = time.monotonic()
        os.waitpid(start(desk / f"alone {number}", desk, number), 0)
        seconds, ended, killed = time.monotonic() - began, False, 0
        while not ended:
            process = start(desk / f"killed {number}", desk, number)
            time.sleep(moments.uniform(0, seconds))
            os.kill(process, signal.SIGKILL)
            ended = os.waitpid(process, 0)[1] == 0
            killed += not ended
        assert made(desk / f"killed {number}") == made(desk / f"alone {number}")
        print(f"run {number}: killed {killed} times, equal bytes", flush=True)
        done, number = done + killed, number + 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
