"""Lessons: the page of `explain` about the settings of the moment, made by a process of its own."""

import asyncio
import os
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, create_subprocess_exec
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.studio.access import RefusedError

# Seconds for one.
PATIENCE = 300.0
# What explain's page, which holds its own styles and script, may do: nothing else.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)


class Lessons:
    """Makes lessons, one at a time, and remembers the last one."""

    def __init__(self) -> None:
        self._making = asyncio.Lock()
        self._number, self._page = 0, ""

    async def make(self, overrides: Sequence[str]) -> str:
        """Make a lesson about KEY=VALUE, and return its id (UserError: in explain's own words)."""
        if self._making.locked():
            raise RefusedError("another lesson is being made; wait for it", 429)
        async with self._making:
            self._page = await _explain(overrides)
            self._number += 1
            return str(self._number)

    def find(self, id: str) -> str:
        """Return a lesson's page; RefusedError if it is not the last one."""
        if not self._page or id != str(self._number):
            raise RefusedError("there is no such lesson; ask for it again", 404)
        return self._page


async def _explain(overrides: Sequence[str]) -> str:
    with tempfile.TemporaryDirectory(prefix="styletransfer-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-m", "styletransfer", "explain", *overrides]
        command.append(f"hydra.run.dir={folder}")
        env = os.environ | {"OMP_NUM_THREADS": "1"}  # two that use all cores slow each other
        process = await create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, start_new_session=True, env=env
        )
        try:
            _, said = await asyncio.wait_for(process.communicate(), PATIENCE)
        except TimeoutError as error:
            raise UserError("the lesson takes too long; choose a smaller size") from error
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if process.returncode:
            lines = said.decode("utf-8", "replace").strip().splitlines() or ["it was killed"]
            raise UserError(lines[-1].removeprefix("error: "))
        return (Path(folder) / "explain.html").read_text(encoding="utf-8")
