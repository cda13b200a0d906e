"""How long a person waits for the first picture."""

import logging
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from styletransfer.commands.benchmark.report import Spread
from styletransfer.config import BenchmarkConfig
from styletransfer.errors import UserError

logger = logging.getLogger(__name__)

TRAIN = Path(__file__).resolve().parents[3] / "scripts" / "train.py"


def measure_default_job(config: BenchmarkConfig) -> Spread:
    """Run `python scripts/train.py` once to warm up, then `rounds` times; return the seconds.

    Start and end of the process are included: this is what a person waits.

    Args:
        config: `rounds` and `device`.

    Raises:
        UserError: the script failed, with its last line.
    """
    seconds = []
    for number in range(1 + config.rounds):
        logger.info("scripts/train.py: %d of %d", number + 1, 1 + config.rounds)
        with tempfile.TemporaryDirectory() as folder:
            arguments = [f"device={config.device}", f"hydra.run.dir={folder}/run"]
            command = [sys.executable, str(TRAIN), *arguments]
            began = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            seconds.append(time.perf_counter() - began)
        if done.returncode != 0:
            raise UserError(f"scripts/train.py failed: {(done.stderr.splitlines() or [''])[-1]}")
    return Spread.of(seconds[1:])
