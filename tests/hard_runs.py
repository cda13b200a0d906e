"""Test resuming after kills at random moments: `python tests/hard_runs.py FOLDER RUNS [SEED]`.

Each run of `train` or `train_network` receives SIGKILL, SIGTERM or SIGINT at a random moment, and
the same command is started again until the run finishes. Its files must then have the same bytes as
those of an uninterrupted run, with no other file.
"""

import gc
import importlib
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from helpers import LAYERS, picture

from styletransfer.cli import main as command_line
from styletransfer.cli import one_line_errors
from styletransfer.features import vgg
from styletransfer.pictures import images
from styletransfer.settings.commands import module
from styletransfer.system import STOPPING, checkpoint, interruptible

PAIR = f"content=../0.png style=../1.png {' '.join(LAYERS)} checkpoint_every=1e-9 hydra.run.dir=."
TRAIN = f"train experiment=tiny {PAIR} size=48 steps=60 scales=2 tile=off resume=auto"
TRAINING = f"style=../1.png steps=12 batch=1 crop=16 style_size=40 {' '.join(LAYERS)}"
TIMED = {".json", ".log", ".pt"}  # extensions of files that contain times, and so differ
# The command lines to test: both optimisers, with and without tiles, and training a network.
JOBS = [
    f"{TRAIN} optimizer.plateau=0 objective.style_loss=wasserstein tile=16",
    f"{TRAIN} optimizer=adam optimizer.averaging=0.9 tile=16 color=content_luminance scales=3",
    f"{TRAIN} optimizer.plateau=0 optimizer.preconditioner=0 init=noise loss_mode=fake_backward",
    f"{TRAIN} optimizer.plateau=0 color=content_palette",
    f"train_network {TRAINING} network=tiny device=cpu checkpoint_every=1e-9 hydra.run.dir=.",
]


def start(folder, line):
    """Start a command line in a new process in `folder`; return its id once it handles signals.

    Its output goes to FOLDER.out and FOLDER.err.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ready, started = os.pipe()
    if process := os.fork():
        os.close(started)
        os.read(ready, 1)
        os.close(ready)
        return process
    os.chdir(folder)
    for number, name in ((0, os.devnull), (1, f"{folder}.out"), (2, f"{folder}.err")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with one_line_errors():
        os.close(started)
        with interruptible():
            command_line(line.split())
    sys.exit()  # so that the child shuts Python down as the console command does


def end_of(process, patience=300):
    """Wait for a process; return its exit status as a shell reports it.

    A process that goes on for more than `patience` seconds is killed.
    """
    until, ended = time.monotonic() + patience, 0
    while not ended:
        ended, status = os.waitpid(process, os.WNOHANG)
        if time.monotonic() > until:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.01)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def warm_up():
    """Import modules and create objects once, so that each forked process starts fast."""
    sys.modules["triton"] = None  # its exit handler would print about frozen objects
    torch.set_num_threads(1)
    importlib.import_module("torch.utils.flop_counter")  # it warns once that triton is missing
    for each in ("styletransfer.cli.hydrated", *map(module, ("train", "train_network"))):
        importlib.import_module(each)
    vgg.WIDTHS["vgg19"] = tuple((4,) * len(block) for block in vgg.WIDTHS["vgg19"])  # type: ignore[index]
    torch.optim.Adam([torch.zeros(1)])  # the first one makes torch import much
    gc.freeze()  # otherwise each child would copy all imported objects when it collects garbage


def contents(folder):
    """Return name -> bytes of the files in a folder, except files that contain times."""
    files = (path for path in folder.iterdir() if path.is_file())
    return {path.name: path.read_bytes() for path in files if path.suffix not in TIMED}


def faults(desk, number, chance):
    """Stop and resume run `number` at random moments until it is complete; return its faults.

    The faults are names of files that differ from an uninterrupted run's, or [status, errors].
    """
    line, whole, folder = JOBS[number % len(JOBS)], desk / f"whole {number}", desk / f"{number}"
    began = time.monotonic()
    assert end_of(start(whole, line)) == 0, Path(f"{whole}.err").read_text()
    seconds, status = time.monotonic() - began, None
    while status != 0:
        process = start(folder, line)
        time.sleep(chance.uniform(0, seconds))
        sent = chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        os.kill(process, sent)
        status = end_of(process)
        errors = Path(f"{folder}.err").read_text(errors="replace")  # a kill may split a letter
        if status not in (0, 128 + sent) or "Traceback" in errors:
            return [status, errors]
    ours, expected = contents(folder), contents(whole)
    return [name for name in ours | expected if ours.get(name, "") != expected.get(name, "")]


def main(desk, runs, seed=0):
    """Test `runs` runs, of the kinds in JOBS in turn; exit with status 1 after any fault."""
    warm_up()
    checkpoint.REST = 0  # a checkpoint follows each step
    for number, light in enumerate((1.0, 0.2)):
        images.write(desk / f"{number}.png", light * picture(number, 32, 40))
    chance, count = random.Random(seed), 0
    for number in range(runs):
        if wrong := faults(desk, number, chance):
            count += 1
            print(number, *wrong, sep="  ", flush=True)
    print(f"{runs} runs, {count} with faults")
    sys.exit(count > 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
