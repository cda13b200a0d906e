"""The pipe between the server (Worker) and the runner's process (Orders).

A message is a dict with "type", "id" of the run (not in "ready"), and the main entries in brackets:
to runner: paint (folder, kind, config, record, shown), pause, resume, stop, steer (changes, number)
to server: ready (pace), begun, progress, paused, resumed, standing (number, error), ended (status)
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

logger = logging.getLogger(__name__)

# On Linux, the reader's and the runner's processes are forked from a process that has only imported
# modules, and share its memory; on other systems, each imports torch itself. They never inherit the
# threads of the server's process.
CONTEXT: Any = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
PRELOADED = ["styletransfer.runs.recording", "styletransfer.networks.apply.painter"]
CONTEXT.set_forkserver_preload(PRELOADED)
# Seconds between the end of a process and its new start.
PAUSE = 1.0


class Worker:
    """A Worker is a process that is started again whenever it ends, and a pipe to it.

    The process calls `target` with its end of the pipe, until that is closed or receives None. The
    event loop calls `hear` with each message of the process, and `ended` with the reason if the
    process ends before `close`.
    """

    def __init__(
        self,
        target: Callable[[Connection], None],
        hear: Callable[[Any], None],
        ended: Callable[[str], None],
    ) -> None:
        self._target, self._hear, self._ended = target, hear, ended
        self._process: Any = None
        self._pipe: Connection
        self._closing, self._gone = False, asyncio.Event()

    def start(self, pause: float = 0.0) -> None:
        """Start the process after `pause` seconds; call this in the event loop."""
        loop = asyncio.get_running_loop()
        self._pipe, far_end = CONTEXT.Pipe()
        self._process = CONTEXT.Process(target=self._target, args=(far_end,), daemon=True)
        ends = (self._pipe, far_end)
        threading.Thread(target=self._listen, args=(*ends, loop, pause), daemon=True).start()

    def send(self, message: Any) -> None:
        """Send a message, which waits until the process has started."""
        with suppress(OSError):  # if the process has just ended, `ended` will be called
            self._pipe.send(message)

    async def close(self, patience: float) -> None:
        """Send None, which ends the process; kill the process after `patience` seconds."""
        self._closing = True
        self.send(None)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._gone.wait(), patience)
        if self._process.pid is not None:
            self._process.kill()
        await self._gone.wait()

    def _listen(self, pipe: Connection, far_end: Connection, loop: Any, pause: float) -> None:
        """Start the process and pass its messages to the event loop; runs in a separate thread."""
        time.sleep(pause)
        with suppress(RuntimeError):  # raised if the event loop is closed
            try:
                self._process.start()  # the first time, this waits for the import of torch
                far_end.close()
                while True:
                    loop.call_soon_threadsafe(self._hear, pipe.recv())
            except (EOFError, OSError, MemoryError):
                loop.call_soon_threadsafe(self._is_gone)

    def _is_gone(self) -> None:
        if self._process.pid is not None:  # None: the process has not started, and cannot be joined
            self._process.join()
        self._pipe.close()
        if self._closing:
            self._gone.set()
            return
        reason = _how_it_ended(self._process.exitcode)
        logger.warning("a process of the studio %s; it is started again", reason)
        self.start(PAUSE)
        self._ended(reason)


def _how_it_ended(code: int | None) -> str:
    if code is None or code >= 0:
        return "could not start" if code is None else f"has ended with status {code}"
    name = signal.Signals(-code).name
    if name == "SIGKILL":  # compared by name, because Windows has no signal.SIGKILL
        return "was killed, perhaps because memory ran out: choose a smaller size"
    return f"was ended by {name}"


def become_a_child() -> None:
    """Make this process ignore SIGINT and SIGHUP, which the server handles, and print nothing."""
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


class Orders:
    """Orders holds the server's messages to the runner's process; a thread receives them.

    The server sends requests about a run only from its message "paint" until its end.
    """

    def __init__(self, pipe: Connection) -> None:
        self.over = False  # True once the pipe is closed or sent None: the run must then stop
        self._messages: deque[dict[str, Any]] = deque()
        self._changed = threading.Condition()
        threading.Thread(target=self._listen, args=(pipe,), daemon=True).start()

    def _listen(self, pipe: Connection) -> None:
        with suppress(EOFError, OSError):
            while (message := pipe.recv()) is not None:
                with self._changed:
                    self._messages.append(message)
                    self._changed.notify()
        with self._changed:
            self.over = True
            self._changed.notify()

    def _next(self, *, wait: bool) -> dict[str, Any] | None:
        while wait and not (self.over or self._messages):
            self._changed.wait()
        return None if self.over or not self._messages else self._messages.popleft()

    def next_run(self) -> dict[str, Any] | None:
        """Wait for the next "paint" message and return it; return None once `over` is True."""
        with self._changed:
            while (message := self._next(wait=True)) and message["type"] != "paint":
                pass  # drop a request about a run that has ended meanwhile
            return message

    def next_wish(self, *, wait: bool = False) -> dict[str, Any] | None:
        """Return the next request about the run, or None if there is none or `over` is True.

        Requests in a row that change settings become one. With `wait`, wait for a request.
        """
        with self._changed:
            wish = self._next(wait=wait)
            while wish and [one["type"] for one in (wish, *self._messages)][:2] == ["steer"] * 2:
                after = self._messages.popleft()
                wish = after | {"changes": wish["changes"] | after["changes"]}
            return wish


class RunLink:
    """A RunLink sends a run's messages to the server, and carries out the server's requests.

    `say` raises KeyboardInterrupt if the server has ended; `obey` also raises it if the run must
    stop.
    """

    def __init__(self, id: str, orders: Orders, pipe: Connection) -> None:
        self._id, self._orders, self._pipe = id, orders, pipe

    def say(self, type: str, **message: Any) -> None:
        """Send a message about the run."""
        try:
            self._pipe.send({"type": type, "id": self._id, **message})
        except OSError as error:
            raise KeyboardInterrupt from error

    def obey(
        self,
        pause: Callable[[], None] = lambda: None,
        steer: Callable[[dict[str, Any]], None] = lambda wish: None,
    ) -> bool:
        """Carry out requests about the run, and return whether it was paused meanwhile.

        `pause` is called before a pause, and `steer` with each request to change settings.
        """
        is_paused = was_paused = False
        while wish := self._orders.next_wish(wait=is_paused):
            match wish["type"]:
                case "stop":
                    raise KeyboardInterrupt
                case "steer":
                    steer(wish)
                case asked:
                    is_paused = asked == "pause"
                    was_paused |= is_paused
                    if is_paused:
                        pause()
                    self.say("paused" if is_paused else "resumed")
        if self._orders.over:
            raise KeyboardInterrupt
        return was_paused
