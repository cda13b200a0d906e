"""Run every command where little is left: `python tests/limited_runs.py FOLDER RUNS`.

Few bytes in a file (`ulimit -f`, as a full disk), few open files (`-n`), little memory (`-v`): each
ends as always or with status 1, in one line, without a traceback; and what it leaves behind is
whole.
"""

import resource
import sys
from functools import partial
from pathlib import Path

import psutil
from signal_runs import COMMANDS, end_of, faults, set_up, start


def lower(kind: int, limit: int) -> None:
    """Set a limit of this process."""
    resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))


def lower_memory(spare: int) -> None:
    """Leave this process so many bytes more than it has."""
    lower(resource.RLIMIT_AS, psutil.Process().memory_info().vms + spare)


LIMITS = {
    **{
        f"{size} bytes": partial(lower, resource.RLIMIT_FSIZE, size)
        for size in (0, 700, 5000, 60000)
    },
    **{f"{count} files": partial(lower, resource.RLIMIT_NOFILE, count) for count in (6, 9, 16)},
    **{f"{size} MB": partial(lower_memory, size * 2**20) for size in (5, 50, 200)},
}


def main(desk: Path, runs: int) -> None:
    """Make so many runs, each command in turn under each limit."""
    set_up(desk)
    number, found = 0, 0
    # Neighbours differ in both, so that a few runs try much.
    while number < runs:
        command = COMMANDS[number % len(COMMANDS)]
        name = list(LIMITS)[(number + number // (len(COMMANDS) * len(LIMITS))) % len(LIMITS)]
        folder = desk / f"{number} {command[0]}, {name}"
        status = end_of(start(folder, command, LIMITS[name]))
        wrong = [*faults(folder, status - (status == 1), [])]
        found += bool(wrong)
        print(folder.name, status, *wrong, sep="  ", flush=True)
        number += 1
    print(f"{runs} runs, {found} with faults")
    sys.exit(found > 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
