"""The rank of this process among those that torchrun started. This module imports no torch."""

import os
from contextlib import suppress
from dataclasses import dataclass

from styletransfer.errors import UserError

# Environment variables, set by torchrun, for the fields of ProcessRank.
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


@dataclass(frozen=True)
class ProcessRank:
    """A ProcessRank is the rank of a process in a job, in which only rank 0 writes files."""

    rank: int = 0  # number of this process among all, from 0
    world_size: int = 1  # number of all processes
    local_rank: int = 0  # number of this process among those on this machine, from 0
    local_world_size: int = 1  # number of processes on this machine


def process_rank() -> ProcessRank:
    """Return this process's rank, without torchrun 0 (UserError if VARIABLES have bad values)."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return ProcessRank()
    with suppress(KeyError, ValueError):
        here = ProcessRank(*(int(os.environ[name]) for name in VARIABLES))
        if 0 <= here.local_rank < here.local_world_size <= here.world_size > here.rank >= 0:
            return here
    raise UserError(
        f"{', '.join(VARIABLES)} in the environment are not all numbers, or contradict each other; "
        "start with torchrun, or unset them"
    )
