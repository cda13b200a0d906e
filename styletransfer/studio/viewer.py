"""What open pages are still to be told: never more than the latest of each kind."""

import asyncio
from typing import Any

from styletransfer.studio.refusal import RefusedError
from styletransfer.system.files import to_json

# Pages that may watch; steps in a report, of a page that has not listened for long.
MOST, MOST_STEPS = 16, 2000


class Viewer:
    """Holds back what a page has not taken yet."""

    def __init__(self) -> None:
        self._state: dict[str, Any] | None = None
        self._report: dict[str, Any] | None = None
        self._picture: bytes | None = None
        self._due = asyncio.Event()

    def tell(self, state: dict[str, Any]) -> None:
        """Replace the state that is to be told."""
        self._state = state
        self._due.set()

    def report(self, report: dict[str, Any]) -> None:
        """Replace the report of a run; the history of the same one grows."""
        before = self._report
        if before is not None and before["job"] == report["job"]:
            history = [*before["history"], *report["history"]][-MOST_STEPS:]
            report = {**report, "history": history}
        self._report = report
        self._due.set()

    def show(self, picture: bytes) -> None:
        """Replace the picture that is to be shown."""
        self._picture = picture
        self._due.set()

    async def next(self) -> list[str | bytes]:
        """Wait until there is something, and return it: JSON as text, a picture as bytes."""
        await self._due.wait()
        self._due.clear()
        said: list[str | bytes] = []
        state, report, picture = self._state, self._report, self._picture
        self._state = self._report = self._picture = None
        said += [to_json(each) for each in (state, report) if each is not None]
        return [*said, picture] if picture is not None else said


class Viewers:
    """Everybody who watches."""

    def __init__(self) -> None:
        self._all: set[Viewer] = set()

    def join(self, viewer: Viewer) -> None:
        """Take in one more.

        Raises:
            RefusedError: there are too many.
        """
        if len(self._all) >= MOST:
            raise RefusedError("too many pages are open; close some", 429)
        self._all.add(viewer)

    def leave(self, viewer: Viewer) -> None:
        """Forget one."""
        self._all.discard(viewer)

    def tell(self, state: dict[str, Any]) -> None:
        """Tell all of them the state."""
        for viewer in self._all:
            viewer.tell(state)

    def report(self, report: dict[str, Any]) -> None:
        """Hand a report on to all of them."""
        for viewer in self._all:
            viewer.report(report)

    def show(self, picture: bytes) -> None:
        """Show all of them a picture."""
        for viewer in self._all:
            viewer.show(picture)
