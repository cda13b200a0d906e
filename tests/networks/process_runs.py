"""Run a command under torchrun and end it early: `process_runs.py HOW COMMAND WORD...`.

In the fourth step, the second process kills itself (`killed`) or signals torchrun (`stopped`).
"""

import os
import signal
import sys
import time

from helpers import ROOT, process

from styletransfer.cli.hydrated import run_command
from styletransfer.networks.training.trainer import NetworkTraining
from styletransfer.settings.registry import commands
from styletransfer.system.signals import SIGNALS

MADE = 3  # steps that a run makes before it is ended


def torchrun(count, *words):
    """Run this file with `words` in `count` processes; return the result."""
    launch = (sys.executable, "-m", "torch.distributed.run", "--standalone")
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])  # where this file's imports are
    words = (f"--nproc-per-node={count}", __file__, *words)
    return process(*launch, *words, timeout=500, env={"PYTHONPATH": path})


def main(how, command, *words):
    advance = NetworkTraining.advance

    def ended(self):
        if self.step == start + MADE and how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.step == MADE:
            os.kill(os.getppid(), signal.SIGTERM)
            while SIGNALS.asked is None:  # torchrun forwards the signal
                time.sleep(0.01)
        return advance(self)

    start = 4 if how == "killed" else 0  # the step that the stopped run has reached
    if os.environ["RANK"] == "1":
        NetworkTraining.advance = ended  # type: ignore[method-assign]
    run_command(commands()[command], words)


if __name__ == "__main__":
    main(*sys.argv[1:])
