"""History of a run that are kept, to go back to."""

from dataclasses import dataclass

from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.optimize.run import Snapshot

# Each holds a picture.
MOST = 20


@dataclass(frozen=True)
class HistoryEntry:
    """A moment that is kept.

    Attributes:
        moment: the picture, and where it stood in its run.
        reason: why it is kept, in a few words.
        changes: how many of them had been made.
        config: the settings in force.
        number: from 1, in the order of keeping.
    """

    moment: Snapshot
    reason: str
    changes: int
    config: TrainConfig
    number: int = 0


class History:
    """The last MOST moments that were kept."""

    def __init__(self) -> None:
        self.kept: list[HistoryEntry] = []
        self._numbers = 0

    def keep(self, kept: HistoryEntry) -> None:
        """Keep one more, and number it."""
        self._numbers += 1
        numbered = HistoryEntry(kept.moment, kept.reason, kept.changes, kept.config, self._numbers)
        self.kept = [*self.kept, numbered][-MOST:]

    def take(self, number: int) -> HistoryEntry:
        """Return a moment, and forget those after it.

        Raises:
            UserError: there is none of that number.
        """
        for kept in self.kept:
            if kept.number == number:
                self.kept = [other for other in self.kept if other.number <= number]
                return kept
        numbers = ", ".join(str(kept.number) for kept in self.kept) or "none"
        raise UserError(f"there is no moment {number} to go back to; there are {numbers}")
