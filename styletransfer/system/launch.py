"""Which of a job's processes this one is, as torchrun tells each by its environment."""

import os
from contextlib import suppress
from dataclasses import dataclass

from styletransfer.errors import UserError

# In the order of the fields of Place.
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


@dataclass(frozen=True)
class Place:
    """A process among those of a job, the first of which writes for all.

    Numbers count from 0, among all processes and among those on this machine.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    local_count: int = 1


def speaks() -> bool:
    """Tell whether this process, the first on its machine, says what all of them have to say."""
    try:
        return place().local_rank == 0
    except UserError:
        return True


def place() -> Place:
    """Return the place of this process; without torchrun it is alone.

    Raises:
        UserError: the environment tells part of it only, or nonsense.
    """
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return Place()
    with suppress(KeyError, ValueError):
        here = Place(*(int(os.environ[name]) for name in VARIABLES))
        if 0 <= here.local_rank < here.local_count <= here.count > here.rank >= 0:
            return here
    raise UserError(
        f"{', '.join(VARIABLES)} in the environment are not all numbers, or contradict each other; "
        "start with torchrun, or unset them"
    )
