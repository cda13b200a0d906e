"""Stop, starve and kill runs: `python tests/hard_runs.py FOLDER RUNS [SEED]`.

A third of the runs, of every command, is sent one to three signals at random moments; another has
few bytes in a file (`ulimit -f`, as a full disk), few open files (`-n`) or little memory (`-v`).
Each ends as if left alone, with the status of a signal, or with 1 where it was starved; in one
line, without a traceback; and what it leaves behind is whole. Runs of `train` that are killed, and
gone on with until they end, have made the very bytes of one that was left alone.
"""

import gc
import importlib
import json
import os
import random
import re
import resource
import signal
import sys
import time
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import psutil
import torch
from helpers import LAYERS, picture, style_network
from safetensors.torch import load_file

from styletransfer.cli import main as command_line
from styletransfer.cli import module
from styletransfer.cli.errors import one_line_errors
from styletransfer.features import vgg
from styletransfer.networks import Architecture, file
from styletransfer.pictures import images
from styletransfer.settings.commands import SCHEMAS
from styletransfer.system import checkpoint
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.signals import STOPPING, interruptible

PAIR = "content=../0.png style=../1.png"
RUN = f"experiment=tiny {PAIR} hydra.run.dir=run"
TRAINING = "style=../1.png preview=../0.png network=tiny pictures=null steps=12 batch=1 crop=16"
PAINTING = "network=../net.safetensors input=../in.mkv output=new/out.mp4 hydra.run.dir=run"
COMMANDS = [
    f"train {RUN} steps=40 snapshot_every=5 checkpoint_every=1e-9",
    f"train {RUN} optimizer=adam output=new/out.tif",
    *([f"apply {PAINTING} device=cpu"] if find_spec("av") else []),
    f"compare {RUN} rounds=1 output=overview.png",
    f"explain {RUN}",
    f"train_network {TRAINING} {' '.join(LAYERS)} style_size=40 device=cpu hydra.run.dir=run "
    "preview_every=3 checkpoint_every=1e-9",
    "gradcheck",
    "train_tiny --steps 2000",
]
ADAM = "optimizer=adam optimizer.averaging=0.9"
HEAVIER = "{after:10,set:{objective.content_weight:1}}"
ADAM_TOO = "{after:50,set:{optimizer:adam,style_scale:0.7}}"
KILLED = (
    f"train experiment=tiny {PAIR} {' '.join(LAYERS)} size=48 steps=60 scales=2 tile=off "
    "checkpoint_every=1e-9 hydra.run.dir=. resume=auto "
)
# Both optimisers, whole and in tiles, and what else a run may be made of.
JOBS = [
    "optimizer.plateau=0 objective.style_loss=wasserstein tile=16",
    f"{ADAM} tile=16 color=content_luminance scales=3",
    "optimizer.plateau=0 optimizer.preconditioner=0 init=noise loss_mode=fake_backward",
    f"{ADAM} objective.style_loss=moments loss_mode=loss_attribute color=content_palette",
    f"optimizer.plateau=0 changes=[{HEAVIER},{ADAM_TOO}]",
]
MADE = ("pastiche.png", "content_resized.png", "metrics.jsonl")
NO_TRACEBACK = re.compile(r"Traceback|Exception ignored|Fatal|terminate called")
LIMITS = [
    *((resource.RLIMIT_FSIZE, size) for size in (0, 700, 5000, 60000)),
    *((resource.RLIMIT_NOFILE, count) for count in (6, 9, 16)),
    # Beyond what the process has.
    *((resource.RLIMIT_AS, size * 2**20) for size in (5, 50, 200)),
]


def start(folder, line, before=int):
    """Begin a command line as a process, in `folder`; return its id once signals reach it.

    The process calls `before` first. What it says goes to FOLDER.out and FOLDER.err.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ready, begun = os.pipe()
    if process := os.fork():
        os.close(begun)
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
        os.close(begun)
        before()
        with interruptible():
            command_line(line.split() if isinstance(line, str) else line)
    sys.exit()  # as the real one ends, with all that Python does then


def end_of(process, patience=300, then=signal.SIGKILL):
    """Wait for a process; return its exit status as a shell has it.

    One that goes on for more than `patience` s is sent the signal `then`.
    """
    until = time.monotonic() + patience
    while time.monotonic() < until:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        time.sleep(0.01)
    os.kill(process, then)
    return end_of(process)


def limit(kind, most):
    """Set a limit of this process."""
    if kind == resource.RLIMIT_AS:
        most += psutil.Process().memory_info().vms
    resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def faults(folder, status, allowed):
    """Yield what is wrong with a run that may end with one of these statuses, in a word each."""
    told = Path(f"{folder}.err").read_text(errors="replace")  # a limit may cut a character
    if status not in allowed:
        yield f"status {status}"
    if NO_TRACEBACK.search(told):
        yield "traceback"
    errors = told.count("error:")
    if errors > 1 or (1 not in allowed and errors != told.count("interrupted")):
        yield "lines"
    for path in filter(Path.is_file, folder.rglob("*")):
        try:
            check_whole(path)
        except Exception as error:
            yield f"{path.relative_to(folder)}: {error!r}"


def check_whole(path):
    """Raise something unless the file is complete and has a name that we gave it."""
    kind = path.suffix
    assert not path.name.endswith((".lock", ".tmp")), "left behind"
    if kind in (".png", ".tif"):
        images.read(path)
    elif kind == ".json":
        json.loads(path.read_text())
    elif kind == ".jsonl":
        for line in path.read_text().splitlines(keepends=True):
            assert json.loads(line)
            assert line.endswith("\n")
    elif kind == ".safetensors":
        load_file(path)
    elif kind == ".pt":
        Checkpoint(path).load()
    elif kind == ".mp4":
        from styletransfer.films.read import Film

        with Film(path) as film:
            # What a full disk leaves may end within a frame.
            next(film.frames()) if "styletransfer-partial" in path.name else list(film.frames())
    elif kind in (".html", ".svg"):
        assert path.read_text().rstrip().endswith(f"</{kind[1:]}>")
    else:
        assert kind in (".yaml", ".log", ".md", ""), "a strange file"


def warm_up():
    """Import and make once what each run needs."""
    sys.modules["triton"] = None  # which would tell at each end of what is frozen
    torch.set_num_threads(1)
    importlib.import_module("torch.utils.flop_counter")  # and this would miss it
    for each in ("styletransfer.cli.hydrated", *map(module, [*SCHEMAS, "train_tiny", "gradcheck"])):
        importlib.import_module(each)
    vgg.WIDTHS["vgg19"] = tuple((4,) * len(block) for block in vgg.WIDTHS["vgg19"])  # type: ignore[index]
    torch.optim.Adam([torch.zeros(1)])  # torch imports much at the first one: once, not in each run
    gc.freeze()  # or each run that ends would look through, and copy, all that is imported here


def furnish(desk):
    """Make the files that the commands name."""
    for number, light in enumerate((1.0, 0.2)):
        images.write(desk / f"{number}.png", light * picture(number, 32, 40))
    if find_spec("av"):
        from film_files import make

        file.write(desk / "net.safetensors", style_network(Architecture((3, 4, 5), 1), 1), ["oil"])
        make(desk / "in.mkv", [picture(seed, 32, 40) for seed in range(20)], sound=["aac"])


def stop(process, seconds, chance):
    """Send one to three signals within so long; return the statuses that it may end with."""
    allowed, pause = {0}, chance.uniform(0, seconds * 1.05)
    for _ in range(chance.randint(1, 3)):
        time.sleep(pause)
        number = int(chance.choice(STOPPING))
        allowed.add(128 + number)
        with suppress(ProcessLookupError):
            os.kill(process, number)
        pause = chance.choice((0, chance.uniform(0, 0.3)))
    return allowed


def save_often():
    """Let a save follow each step, so that many are hit."""
    checkpoint.REST = 0


def killed(desk, number, chance):
    """Kill a run until it comes to its end; return what differs from one that was left alone."""
    line, began = KILLED + JOBS[number % len(JOBS)], time.monotonic()
    whole, folder = desk / f"whole {number}", desk / f"killed {number}"
    assert end_of(start(whole, line, save_often)) == 0, Path(f"{whole}.err").read_text()
    seconds, status, kills = time.monotonic() - began, 128 + signal.SIGKILL, -1
    while status == 128 + signal.SIGKILL:
        process, kills = start(folder, line, save_often), kills + 1
        time.sleep(chance.uniform(0, seconds))
        os.kill(process, signal.SIGKILL)
        status = end_of(process)
    wrong = [name for name in MADE if (folder / name).read_bytes() != (whole / name).read_bytes()]
    left = [path.name for path in folder.iterdir() if path.name not in {*os.listdir(whole)}]
    print(folder.name, kills, status, *wrong, *left, sep="  ", flush=True)
    return [*wrong, *left, *([status] if status else [])]


def main(desk, runs, seed=0):
    """Make so many runs: each command in turn, stopped and starved, and some killed."""
    warm_up()
    furnish(desk)
    chance, count = random.Random(seed), 0

    @cache
    def seconds_alone(which):
        began, folder = time.monotonic(), desk / f"alone {which}"
        assert end_of(start(folder, COMMANDS[which])) == 0, Path(f"{folder}.err").read_text()
        assert not [*faults(folder, 0, {0})]
        return time.monotonic() - began

    for number in range(runs):
        if number % 3 == 2:
            count += bool(killed(desk, number // 3, chance))
            continue
        which = number // 3 % len(COMMANDS)
        folder = desk / f"{number} {COMMANDS[which].split()[0]}"
        if number % 3:
            how = chance.choice(LIMITS)
            process, allowed = start(folder, COMMANDS[which], lambda how=how: limit(*how)), {0, 1}
        else:
            seconds = seconds_alone(which)
            process = start(folder, COMMANDS[which])
            allowed = stop(process, seconds, chance)
        status = end_of(process)
        wrong = [*faults(folder, status, allowed)]
        count += bool(wrong)
        print(folder.name, allowed, status, *wrong, sep="  ", flush=True)
    print(f"{runs} runs, {count} with faults")
    sys.exit(count > 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
