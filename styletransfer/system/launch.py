"""Which of a job's processes this one is, as torchrun tells each by its environment."""

import os
from dataclasses import dataclass

from styletransfer.errors import UserError

# In the order of the fields of Place.
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


@dataclass(frozen=True)
class Place:
    """A process among those of a job.

    Attributes:
        rank: its number, from 0; the first one writes for all.
        count: of the processes.
        local_rank: its number among those on its machine, from 0.
        local_count: of these.
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
    try:
        found = Place(*(int(os.environ[name]) for name in VARIABLES))
    except (KeyError, ValueError) as error:
        raise UserError(
            f"the environment sets RANK and WORLD_SIZE, but {', '.join(VARIABLES)} are not all "
            "numbers; start with torchrun, or unset them"
        ) from error
    if not (0 <= found.local_rank < found.local_count <= found.count > found.rank >= 0):
        raise UserError(
            f"{', '.join(VARIABLES)} in the environment contradict each other; start with "
            "torchrun, or unset them"
        )
    return found
