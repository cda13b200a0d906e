"""How long a person waits for the first picture."""

import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from styletransfer.commands.benchmark.results import Spread
from styletransfer.config import BenchmarkConfig
from styletransfer.errors import UserError

logger = logging.getLogger(__name__)

TRAIN = (sys.executable, "-m", "styletransfer", "train")


def measure_default_job(config: BenchmarkConfig, command: Sequence[str] = TRAIN) -> Spread:
    """Run `styletransfer train` once to warm up, then `rounds` times; return the seconds.

    Start and end of the process are included: this is what a person waits.

    Args:
        config: `rounds` and `device`.
        command: the job's process.

    Raises:
        UserError: the command failed, with its last line.
    """
    seconds = []
    for number in range(1 + config.rounds):
        logger.info("default job: %d of %d", number + 1, 1 + config.rounds)
        with tempfile.TemporaryDirectory() as folder:
            arguments = [f"device={config.device}", f"hydra.run.dir={folder}/run"]
            began = time.perf_counter()
            done = subprocess.run(
                [*command, *arguments], capture_output=True, text=True, check=False
            )
            seconds.append(time.perf_counter() - began)
        if done.returncode != 0:
            raise UserError(f"the default job failed: {(done.stderr.splitlines() or [''])[-1]}")
    return Spread.of(seconds[1:])
