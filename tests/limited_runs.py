"""Run every command where little is left: `python tests/limited_runs.py FOLDER RUNS`.

Few bytes in a file (`ulimit -f`, as a full disk), few open files (`-n`), little memory (`-v`): each
ends as always or with status 1, in one line, without a traceback; and what it leaves behind is
whole.
"""

import resource
import sys
from pathlib import Path

import psutil
from signal_runs import COMMANDS, end_of, faults, set_up, start

LIMITS = [
    *((resource.RLIMIT_FSIZE, size) for size in (0, 700, 5000, 60000)),
    *((resource.RLIMIT_NOFILE, count) for count in (6, 9, 16)),
    # Beyond what the process has.
    *((resource.RLIMIT_AS, size * 2**20) for size in (5, 50, 200)),
]


def lower(kind: int, limit: int) -> None:
    """Set a limit of this process."""
    if kind == resource.RLIMIT_AS:
        limit += psutil.Process().memory_info().vms
    resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))


def main(desk: Path, runs: int) -> None:
    """Make so many runs, each command in turn under each limit."""
    set_up(desk)
    count = 0
    for number in range(runs):
        command = COMMANDS[number % len(COMMANDS)]
        # Neighbours differ in both, so that a few runs try much.
        limit = LIMITS[(number + number // (len(COMMANDS) * len(LIMITS))) % len(LIMITS)]
        folder = desk / f"{number} {command[0]}, {limit}"
        status = end_of(start(folder, command, lambda limit=limit: lower(*limit)))
        wrong = [*faults(folder, status - (status == 1), [])]
        count += bool(wrong)
        print(folder.name, status, *wrong, sep="  ", flush=True)
    print(f"{runs} runs, {count} with faults")
    sys.exit(count > 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
