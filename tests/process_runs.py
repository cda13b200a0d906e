"""One of several processes that something befalls, for torchrun: `process_runs.py WHAT WORD...`.

WHAT is stopped, killed or mistaken: the second process sends SIGTERM to torchrun in the sixth step,
is killed in the ninth, or is given another seed. The words are those of `train_network`.
"""

import os
import signal
import sys
import time

import torch

from styletransfer.cli import script
from styletransfer.commands.train_network.trainer import NetworkTraining
from styletransfer.system.signals import Stop


def main(what: str, words: list[str]) -> None:
    advance = NetworkTraining.advance

    def befallen(self: NetworkTraining) -> dict[str, torch.Tensor]:
        if what == "stopped" and self.step == 5:
            os.kill(os.getppid(), signal.SIGTERM)
            while Stop().asked is None:  # torchrun hands it on
                time.sleep(0.01)
        if what == "killed" and self.step == 8:
            os.kill(os.getpid(), signal.SIGKILL)
        return advance(self)

    if os.environ["RANK"] == "1":
        NetworkTraining.advance = befallen  # type: ignore[method-assign]
        words = [*words, "seed=1"] if what == "mistaken" else words
    script("train_network")(words)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
