"""One of several processes that something befalls: `process_runs.py WHAT COMMAND WORD...`.

torchrun starts it. WHAT befalls the second process: in its fourth step, or evaluation, it is
`killed` or `told` by SIGTERM to stop, or has torchrun `stopped` so; or its seed is `mistaken`.
When one was killed, torchrun's signal reaches the other while they part. At its end each process
tells its threads.
"""

import atexit
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from helpers import process
from torch import distributed
from torch.distributed import destroy_process_group

from styletransfer.cli import script
from styletransfer.commands.train_network.trainer import NetworkTraining
from styletransfer.system.signals import HERE

FOURTH = 4


def torchrun(count, *words):
    """Start so many processes of a script with its words, or of this one."""
    if not words[0].endswith(".py"):
        words = (__file__, *words)
    run = (sys.executable, "-m", "torch.distributed.run", "--standalone")
    return process(*run, f"--nproc-per-node={count}", *words, timeout=500)


def befall(what, kind, method):
    """Let it befall this process when the method is called for the fourth time."""
    work, count = getattr(kind, method), 0

    def call(*given):
        nonlocal count
        count += 1
        if count == FOURTH and what == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif count == FOURTH:
            os.kill(os.getpid() if what == "told" else os.getppid(), signal.SIGTERM)
            while HERE.asked is None:  # torchrun hands it on
                time.sleep(0.01)
        return work(*given)

    setattr(kind, method, call)


def parted():
    """End the group of processes while a signal comes."""
    os.kill(os.getpid(), signal.SIGTERM)
    destroy_process_group()


def tell_threads():
    names = []
    for path in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # a thread that has ended since
            names.append(path.read_text().strip())
    line = " ".join(["threads at the end:", *sorted(names)])
    os.write(sys.stderr.fileno(), f"{line}\n".encode())  # at once: another process writes, too


def main(what, command, *words):
    atexit.register(tell_threads)
    if what == "killed":
        distributed.destroy_process_group = parted
    if os.environ["RANK"] == "1" and what == "mistaken":
        words = (*words, "seed=1")
    elif os.environ["RANK"] == "1":
        befall(what, NetworkTraining, "advance")
    script(command)(words)


if __name__ == "__main__":
    main(*sys.argv[1:])
