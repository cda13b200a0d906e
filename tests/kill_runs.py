"""Kill runs at random moments and go on: `python tests/kill_runs.py FOLDER KILLS [SEED]`.

Each ends with the very picture and metrics of a run that was left alone.
"""

import os
import random
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from hard_runs import LAYERS, warm_up
from helpers import composed, picture

from styletransfer.config import TrainConfig
from styletransfer.pictures import images
from styletransfer.runs.paint import paint
from styletransfer.system import checkpoint

WORDS = f"experiment=tiny size=48 steps=60 scales=2 tile=off {LAYERS} checkpoint_every=1e-9"
ADAM = "optimizer=adam optimizer.averaging=0.9"
HEAVIER = "{after:10,set:{objective.content_weight:1}}"
ADAM_TOO = "{after:50,set:{optimizer:adam,style_scale:0.7}}"
# Both optimisers, whole and in tiles, and what else a run may be made of.
JOBS = [
    "optimizer.plateau=0 objective.style_loss=wasserstein tile=16",
    f"{ADAM} tile=16 color=content_luminance scales=3",
    "optimizer.plateau=0 optimizer.preconditioner=0 init=noise loss_mode=fake_backward",
    f"{ADAM} objective.style_loss=moments loss_mode=loss_attribute color=content_palette",
    f"optimizer.plateau=0 changes=[{HEAVIER},{ADAM_TOO}]",
]


def start(folder: Path, config: TrainConfig) -> int:
    """Begin or go on with a run in a process of its own; return its id."""
    if process := os.fork():
        return process
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    paint(config, folder)
    os._exit(0)


def made(folder: Path) -> list[bytes]:
    """What a finished run has made; and nothing else is left there."""
    equal = ("pastiche.png", "content_resized.png", "metrics.jsonl")
    assert {path.name for path in folder.iterdir()} == {*equal, "run.json"}
    return [(folder / name).read_bytes() for name in equal]


def main(desk: Path, kills: int, seed: int = 0) -> None:
    """Kill so many runs, each once or several times until it has come to its end."""
    warm_up()
    checkpoint.REST = 0  # a save after each step, so that many are hit
    pair = {"content": str(desk / "0.png"), "style": str(desk / "1.png"), "resume": "auto"}
    for number in range(2):
        images.write(desk / f"{number}.png", picture(number, 24, 32))
    moments, done, number = random.Random(seed), 0, 0
    while done < kills:
        words = f"{WORDS} {JOBS[number % len(JOBS)]}".split()
        config, began = replace(composed("train", *words), **pair), time.monotonic()
        os.waitpid(start(desk / f"alone {number}", config), 0)
        seconds, ended, killed = time.monotonic() - began, False, 0
        while not ended:
            process = start(desk / f"killed {number}", config)
            time.sleep(moments.uniform(0, seconds))
            os.kill(process, signal.SIGKILL)
            ended = os.waitpid(process, 0)[1] == 0
            killed += not ended
        assert made(desk / f"killed {number}") == made(desk / f"alone {number}")
        print(f"run {number}: killed {killed} times, equal bytes", flush=True)
        done, number = done + killed, number + 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
