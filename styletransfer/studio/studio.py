"""Everything that a studio has, in one place, opened and closed together."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from styletransfer.studio import painter
from styletransfer.studio.answers import Answers
from styletransfer.studio.asked import Asked, ask
from styletransfer.studio.desk import Desk
from styletransfer.studio.lessons import Lessons
from styletransfer.studio.pictures import Pictures
from styletransfer.studio.refusal import RefusedError
from styletransfer.studio.runs import Runs

# Of a JSON body, in bytes; of settings that are composed, how many wait; seconds for a run to be
# stopped and kept.
LARGEST, MOST, PATIENCE = 64 * 2**10, 16, 60.0


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
        self.answers = Answers()
        self.pictures = Pictures(folder / "pictures", self.answers)
        self.runs = Runs(folder, others, self.pictures)
        self.desk = Desk(folder, self.pictures, paint)
        self.lessons = Lessons()
        self._composing = 0

    def open(self) -> None:
        """Start the processes."""
        self.answers.worker.start()
        self.desk.painter.start()

    async def close(self) -> None:
        """Stop the run at work and keep it, and end the processes."""
        await asyncio.gather(
            self.lessons.close(), self.desk.close(PATIENCE), self.answers.worker.close(1.0)
        )

    async def ask(self, settings: Any) -> Asked:
        """Compose a run of what the page has sent, in a thread: it takes a moment.

        Raises:
            UserError: what the command line refuses.
            RefusedError: what no page of ours sends, or too much at once.
        """
        if self._composing >= MOST:
            raise RefusedError("too much at once; try again in a moment", 429)
        self._composing += 1
        try:
            return await asyncio.to_thread(ask, settings, self.pictures)
        finally:
            self._composing -= 1


def studio(request: Request) -> Studio:
    """Return the studio that a request is for."""
    found: Studio = request.app.state.studio
    return found


async def body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request.

    Raises:
        RefusedError: it is none, or is too large.
    """
    text = bytearray()
    async for piece in request.stream():
        text += piece
        if len(text) > LARGEST:
            raise RefusedError("that is too much to say at once", 413)
    try:
        found = json.loads(text or b"{}")
    except (ValueError, RecursionError) as error:
        raise RefusedError("the request is no JSON") from error
    if not isinstance(found, dict):
        raise RefusedError("the request must be a JSON object")
    return found


def side(request: Request) -> int:
    """Return how long in pixels a picture may be that is asked for.

    Raises:
        RefusedError: that is no number.
    """
    asked = request.query_params.get("side", "1600")
    if not asked.isdecimal() or len(asked) > 6:
        raise RefusedError("side must be a number of pixels")
    return int(asked)


def jpeg(picture: bytes) -> Response:
    """Return the answer that holds a JPEG."""
    return Response(picture, media_type="image/jpeg")
