"""The reader, as the server asks it: a question at a time, of which few may wait."""

import asyncio
from typing import Any

from styletransfer.errors import UserError
from styletransfer.studio import reader
from styletransfer.studio.refusal import RefusedError
from styletransfer.studio.worker import Worker

# Questions that may wait, as a page asks for a few pictures at once; and seconds for an answer.
MOST, PATIENCE = 64, 120.0


class Answers:
    """Asks the reader about picture files."""

    def __init__(self) -> None:
        self.worker = Worker(reader.main, self._hear, self._ended)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._number = 0

    async def ask(self, name: str, *arguments: Any) -> Any:
        """Return what a function of `reader.py` returns.

        Raises:
            UserError: from there, or the process has died of the picture.
            RefusedError: too many questions wait.
        """
        if len(self._asked) >= MOST:
            raise RefusedError("the studio is busy with other pictures; try again in a moment", 429)
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self.worker.send((number, name, arguments))
        try:
            return await asyncio.wait_for(answer, PATIENCE)
        except TimeoutError as error:
            self.worker.kill()
            raise UserError("the picture takes too long to read; save it anew") from error
        finally:
            self._asked.pop(number, None)

    def _hear(self, message: Any) -> None:
        number, value, problem = message
        answer = self._asked.get(number)
        if answer is None or answer.done():
            return
        if problem is None:
            answer.set_result(value)
        else:
            answer.set_exception(UserError(problem))

    def _ended(self, reason: str) -> None:
        """Fail what was asked: any of the pictures may have been the cause."""
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(UserError(f"the process that reads pictures {reason}"))
