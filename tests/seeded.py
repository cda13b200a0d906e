"""Reads files that are made from seeds, in a process of limited memory and time.

A test file defines `make(seed) -> Path or bytes` and `use(file)`, and calls `check(__file__, n)`.
Both run in an empty current folder. `use` may end well or raise a UserError of one line; its
warnings are ignored. To repeat seed 7: `PYTHONPATH=.:tests python tests/seeded.py FILE 7 8`.
"""

import logging
import os
import runpy
import signal
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import chdir

import pytest
from helpers import ROOT, process

from styletransfer.errors import UserError

MEMORY = 512 * 2**20  # bytes above the size of the process that has loaded the package
SECONDS = 10  # of processor time for one file; ten times as long by the clock, for what waits
BLOCK = 500  # files that one process reads
MOST_FAULTS = 20  # after so many, `check` stops
ENDS = ("success", "UserError")
# The number of a signal that a timer sends, SIGPROF or SIGALRM -> what it means.
LATE = {27: f"above {SECONDS} s of processor time", 14: f"above {10 * SECONDS} s by the clock"}


def check(path, count):
    """Read the files of seeds 0 to count - 1; return how often each outcome came.

    The outcomes are "success" and "UserError". Any other exception, a lack of memory, a time-out
    and a crash fail the test, which names their seeds.
    """
    if sys.platform != "linux":
        pytest.skip("the limits are Linux's")
    outcomes, faults, first = Counter(), [], 0
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    while first < count and len(faults) < MOST_FAULTS:
        words = (__file__, path, str(first), str(min(first + BLOCK, count)))
        run = process(sys.executable, *words, env=paths | {"MALLOC_ARENA_MAX": "1"})
        lines = [line.split(" ", 1) for line in run.stdout.splitlines()]
        outcomes.update(outcome for _, outcome in lines)
        faults += [f"seed {line[0]}: {line[1]}" for line in lines if line[1] not in ENDS]
        first += len(lines)
        if run.returncode:
            faults.append(f"seed {first}: {LATE.get(-run.returncode, run)}")
            first += 1
    assert not faults, "\n".join([f"{len(faults)} faults in {first} files", *faults])
    return outcomes


def main(path, first, end):
    """Print the outcome of each seed from `first` to `end` - 1; what `use` prints is an error's."""
    import resource  # not on Windows

    import psutil

    import styletransfer.api  # noqa: F401  # the size is that of the loaded package

    names, report = runpy.run_path(path), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    logging.getLogger().addHandler(logging.NullHandler())
    limit = psutil.Process().memory_info().vms + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for seed in range(int(first), int(end)):
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            print(seed, _outcome(names["make"], names["use"], seed), file=report, flush=True)


def _outcome(make, use, seed):
    """Return "success", "UserError", or the text of another exception in one line."""
    try:
        file = make(seed)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # the signals end the process
        signal.setitimer(signal.ITIMER_REAL, 10 * SECONDS)
        with warnings.catch_warnings(action="ignore"):
            use(file)
    except UserError as error:
        return "UserError" if "\n" not in str(error) else f"an error of several lines: {error!r}"
    except BaseException as error:
        return repr(error)[:300].replace("\n", " ")
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
    return "success"


if __name__ == "__main__":
    main(*sys.argv[1:])
