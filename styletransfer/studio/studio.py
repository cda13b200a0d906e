"""Everything that a studio has, in one place, opened and closed together."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from styletransfer.studio import painter
from styletransfer.studio.access import RefusedError
from styletransfer.studio.form import RunRequest, read_request
from styletransfer.studio.lessons import Lessons
from styletransfer.studio.pictures import PictureShelf
from styletransfer.studio.queue import RunQueue
from styletransfer.studio.reader import Reader
from styletransfer.studio.runs import StoredRuns

# Settings that are composed at a time; seconds for a run to be stopped and kept.
MOST, PATIENCE = 16, 60.0


class Studio:
    """A studio.

    Args:
        folder: where runs and pictures are kept.
        others: folders whose runs are shown as well.
        paint: what the painter's process runs.
    """

    def __init__(
        self, folder: Path, others: Sequence[Path] = (), paint: Any = painter.main
    ) -> None:
        self.reader = Reader()
        self.pictures = PictureShelf(folder / "pictures", self.reader)
        self.runs = StoredRuns(folder, others, self.pictures)
        self.queue = RunQueue(folder, self.pictures, paint)
        self.lessons = Lessons()
        self._composing = 0

    def open(self) -> None:
        """Start the processes."""
        self.reader.worker.start()
        self.queue.painter.start()

    async def close(self) -> None:
        """Stop the run at work and keep it, and end the processes."""
        await asyncio.gather(
            self.lessons.close(), self.queue.close(PATIENCE), self.reader.worker.close(1.0)
        )

    async def read_request(self, settings: Any) -> RunRequest:
        """Compose a run of what the page has sent, in a thread: it takes a moment."""
        if self._composing >= MOST:
            raise RefusedError("too much at once; try again in a moment", 429)
        self._composing += 1
        try:
            return await asyncio.to_thread(read_request, settings, self.pictures)
        finally:
            self._composing -= 1
