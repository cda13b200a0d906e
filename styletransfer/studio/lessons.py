"""Lessons: the page of `explain` about the settings of the moment, made by a process of its own."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.studio.asked import Asked
from styletransfer.studio.refusal import RefusedError

# Seconds for one, and how many are kept.
PATIENCE, KEPT = 300.0, 8
# What explain's page, which holds its own styles and script, may do: nothing else.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)


class Lessons:
    """Makes lessons, one at a time."""

    def __init__(self) -> None:
        self._made: OrderedDict[str, asyncio.Task[str]] = OrderedDict()
        self._count = 0

    def ask(self, asked: Asked) -> str:
        """Begin a lesson and return its id.

        Raises:
            RefusedError: another one is being made.
        """
        if any(not task.done() for task in self._made.values()):
            raise RefusedError("another lesson is being made; wait for it", 429)
        self._count += 1
        id = str(self._count)
        self._made[id] = asyncio.create_task(_explain(asked.overrides))
        while len(self._made) > KEPT:
            self._made.popitem(last=False)
        return id

    def find(self, id: str) -> str | None:
        """Return a lesson's page, None while it is made.

        Raises:
            UserError: explain has refused, in its own words.
            RefusedError: there is none of that id.
        """
        if id not in self._made:
            raise RefusedError("there is no such lesson; ask for it again", 404)
        task = self._made[id]
        return task.result() if task.done() else None

    async def close(self) -> None:
        """End what is being made."""
        for task in self._made.values():
            task.cancel()
        await asyncio.gather(*self._made.values(), return_exceptions=True)


async def _explain(overrides: list[str]) -> str:
    """Return the page of `explain`.

    Raises:
        UserError: it fails.
    """
    folder = Path(tempfile.mkdtemp(prefix="styletransfer-"))
    command = [sys.executable, "-m", "styletransfer", "explain", *overrides]
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            f"hydra.run.dir={folder}",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},  # two that use all cores slow each other
        )
        try:
            _, said = await asyncio.wait_for(process.communicate(), PATIENCE)
        except TimeoutError as error:
            raise UserError("the lesson takes too long; choose a smaller size") from error
        finally:
            with suppress(ProcessLookupError):
                process.kill()
        if process.returncode:
            lines = said.decode("utf-8", "replace").strip().splitlines() or ["it was killed"]
            raise UserError(lines[-1].removeprefix("error: "))
        return (folder / "explain.html").read_text(encoding="utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
