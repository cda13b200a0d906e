"""Stop every command at random moments: `python tests/signal_runs.py FOLDER RUNS [SEED]`.

One to three signals are sent to each run. It ends with the status of one of them, or as if left
alone; in one line, without a traceback; and what it leaves behind is whole.
"""

import importlib
import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import torch
from helpers import picture
from safetensors.torch import load_file

from styletransfer.cli import main as command_line
from styletransfer.cli import module
from styletransfer.cli.errors import one_line_errors
from styletransfer.config.commands import SCHEMAS
from styletransfer.features import vgg
from styletransfer.features.vgg import randomize
from styletransfer.networks import Architecture, StyleNetwork, file
from styletransfer.pictures import images
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.signals import STOPPING, interruptible

PAIR = "content=../0.png style=../1.png"
COMMANDS = [
    line.split()
    for line in f"""
train experiment=tiny {PAIR} steps=40 snapshot_every=5 checkpoint_every=1e-9
train experiment=tiny {PAIR} optimizer=adam output=new/out.tif
compare experiment=tiny {PAIR} rounds=1 output=overview.png
explain experiment=tiny {PAIR}
train_network style=../1.png preview=../0.png network=tiny pictures=null steps=12 batch=1 crop=16 \
    style_size=40 device=cpu objective.content_layers=[relu2_1] \
    objective.style_layers=[relu1_1,relu2_1] preview_every=3 checkpoint_every=1e-9
gradcheck
train_tiny --steps 2000
""".strip()
    .replace("\\\n", "")
    .splitlines()
]
if find_spec("av"):
    film = "apply network=../net.safetensors input=../in.mkv output=new/out.mp4 device=cpu"
    COMMANDS.insert(2, film.split())
NO_TRACEBACK = re.compile(r"Traceback|Exception ignored|Fatal|terminate called")
# A run that does not work for so many seconds hangs.
PATIENCE = 60


def start(folder: Path, command: list[str], limit: Callable[[], object] = int) -> int:
    """Begin a command in a process of its own, in `folder`; return its id once signals reach it.

    The process calls `limit` before it begins.
    """
    folder.mkdir(parents=True)
    ready, begun = os.pipe()
    if process := os.fork():
        os.close(begun)
        os.read(ready, 1)
        os.close(ready)
        return process
    os.chdir(folder)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with one_line_errors():
        os.close(begun)
        limit()
        with interruptible():
            command_line([*command, *(["hydra.run.dir=run"] if command[0] in SCHEMAS else [])])
    sys.exit()


def end_of(process: int) -> int:
    """Wait for a process, and kill it if it hangs; return its exit status as a shell has it."""
    worked, until = 0.0, time.monotonic() + PATIENCE
    while True:
        if (now := sum(psutil.Process(process).cpu_times())) > worked:
            worked, until = now, time.monotonic() + PATIENCE
        if time.monotonic() > until:
            os.kill(process, signal.SIGKILL)
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        time.sleep(0.01)


def faults(folder: Path, status: int, sent: list[int]) -> Iterator[str]:
    """Yield what is wrong with a run that was sent these signals, in a word each."""
    told = (folder / "stderr").read_text(errors="replace")  # a limit may cut a character
    if status not in (0, *(128 + number for number in sent)):
        yield f"status {status}"
    if NO_TRACEBACK.search(told):
        yield "traceback"
    if told.count("error:") > 1 or (sent and told.count("error:") != told.count("interrupted")):
        yield "lines"
    for path in filter(Path.is_file, folder.rglob("*")):
        try:
            check_whole(path)
        except Exception as error:
            yield f"{path.relative_to(folder)}: {error!r}"


def check_whole(path: Path) -> None:
    """Raise something unless the file is complete and has a name that we gave it."""
    kind = path.suffix
    assert path.name != ".lock", "left behind"
    assert kind != ".tmp", "left behind"
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
            next(film.frames()) if "partial" in path.name else list(film.frames())
    elif kind in (".html", ".svg"):
        assert path.read_text().rstrip().endswith(f"</{kind[1:]}>")
    else:
        assert kind in (".yaml", ".log", ".md", ""), "a strange file"


def set_up(desk: Path) -> None:
    """Import and make once what each run needs."""
    torch.set_num_threads(1)
    for each in ("styletransfer.cli.hydrated", *map(module, SCHEMAS)):
        importlib.import_module(each)
    vgg.WIDTHS["vgg19"] = tuple((4,) * len(block) for block in vgg.WIDTHS["vgg19"])  # type: ignore[index]
    torch.optim.Adam([torch.zeros(1)])  # torch imports much at the first one: once, not in each run
    desk.mkdir(parents=True, exist_ok=True)
    for number, light in enumerate((1.0, 0.2)):
        images.write(desk / f"{number}.png", light * picture(number, 32, 40))
    if find_spec("av"):
        from film_files import make

        network = StyleNetwork(Architecture((3, 4, 5), 1), 1).requires_grad_(False)
        randomize(network, seed=0)
        file.write(desk / "net.safetensors", network, ["oil"])
        make(desk / "in.mkv", [picture(seed, 32, 40) for seed in range(20)], sound=["aac"])


def main(desk: Path, runs: int, seed: int = 0) -> None:
    """Stop so many runs, each command in turn, by one to three signals each."""
    set_up(desk)
    seconds: list[float] = []
    for number, command in enumerate(COMMANDS[:runs]):
        began, folder = time.monotonic(), desk / f"alone {number}"
        assert end_of(start(folder, command)) == 0, (folder / "stderr").read_text()
        seconds.append(time.monotonic() - began)
        assert not [*faults(folder, 0, [])]
    chance, count = random.Random(seed), 0
    for number in range(runs):
        which = number % len(COMMANDS)
        folder = desk / f"{number} {COMMANDS[which][0]}"
        process, sent = start(folder, COMMANDS[which]), []
        pause = chance.uniform(0, seconds[which] * 1.05)
        for _ in range(chance.randint(1, 3)):
            time.sleep(pause)
            sent.append(int(chance.choice(STOPPING)))
            with suppress(ProcessLookupError):
                os.kill(process, sent[-1])
            pause = chance.choice((0, chance.uniform(0, 0.3)))
        status = end_of(process)
        wrong = [*faults(folder, status, sent)]
        count += bool(wrong)
        print(folder.name, sent, status, *wrong, sep="  ", flush=True)
    print(f"{runs} runs, {count} with faults")
    sys.exit(count > 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
