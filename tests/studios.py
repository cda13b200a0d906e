"""A studio for tests: its server in this process, and its processes as threads, unless asked."""

import json
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the studio needs the extra [studio]")

from starlette.testclient import TestClient

from styletransfer.studio import painter, reader, worker
from styletransfer.studio.app import Studio, make_app
from styletransfer.studio.form import defaults
from styletransfer.studio.worker import Orders

PORT, TOKEN = 8000, "a-secret-token"
ADDRESS = f"http://127.0.0.1:{PORT}"
LIVE = f"ws://127.0.0.1:{PORT}/live"
PROCESSES = multiprocessing.get_context("spawn")
JPEG = b"\xff\xd8 a picture"
# Seconds in which even a busy machine does anything.
PATIENCE = 120


class Thread(threading.Thread):
    """What the server takes for a process."""

    exitcode, pid = 0, None

    def __init__(self, target: Callable[[Connection], None], args: Any, daemon: bool) -> None:
        super().__init__(daemon=daemon)
        self.target = target
        self.pipe = Connection(os.dup(args[0].fileno()))  # a process has an end of its own, too

    def run(self) -> None:
        try:
            self.target(self.pipe)
        finally:  # whoever still reads from it learns that, too
            with socket.socket(fileno=os.dup(self.pipe.fileno())) as end:
                end.shutdown(socket.SHUT_RDWR)
            self.pipe.close()

    def kill(self) -> None:
        """Wait for the end, which comes by itself."""


THREADS = SimpleNamespace(Process=Thread, Pipe=multiprocessing.Pipe)


def pretend(pipe: Connection) -> None:
    """A painter that begins a run, shows a picture, and then only does what it is told.

    pause: pauses; resume: finishes; stop: stops; steer, undo: are refused.
    """
    orders = Orders(pipe)
    while (order := orders.next_run()) is not None:
        id = order["id"]

        def say(id: str = id, **message: Any) -> None:
            pipe.send({"id": id, **message})

        standing = {"now": defaults(), "changes": [], "snapshots": []}
        say(type="begun", **standing)
        report = {"step": 1, "steps": 2, "scale": 1, "scales": 1, "seconds": 0.1, "left": None}
        history = [(1, {"style/a": 1.0, "total": 2.0})]
        say(type="progress", picture=JPEG, history=history, **report)
        ended = {"status": "stopped", "error": None}
        while (wish := orders.next_wish(id, wait=True)) is not None:
            match wish["type"]:
                case "pause":
                    say(type="paused")
                case "resume":
                    say(type="finished", picture=JPEG, **standing)
                    ended = {"status": "finished", "error": None}
                case "stop" | "leave":
                    break
                case "steer" | "undo":
                    say(type="standing", error="size=3 is too small", **standing)
        say(type="ended", **ended)


@contextmanager
def opened(
    folder: Path,
    paint: Callable[[Connection], None] = pretend,
    others: tuple[Path, ...] = (),
    *,
    processes: bool = False,
) -> Iterator[TestClient]:
    """Open a studio, and yield a browser that has been let in."""
    with pytest.MonkeyPatch.context() as patch:
        # Another studio that is open may have threads.
        patch.setattr(worker, "_SPAWN", PROCESSES if processes else THREADS)
        if not processes:
            patch.setattr(painter, "_warm_up", lambda: None)
            patch.setattr(reader, "NICE", 0)
            for module in (painter, reader):
                patch.setattr(module, "become_a_child", lambda: None)
        app = make_app(Studio(folder, others, paint), PORT, TOKEN)
        origin = {"origin": ADDRESS}
        with TestClient(app, ADDRESS, headers=origin, raise_server_exceptions=False) as client:
            assert client.get(f"/?token={TOKEN}").status_code == 200
            yield client


def submit(client: TestClient, **settings: Any) -> str:
    """Ask for a run, and return its id."""
    answer = client.post("/api/queue", json={"settings": settings})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def watch(socket: Any, until: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Return the messages of a live socket up to one that is waited for; pictures as bytes."""
    seen: list[dict[str, Any]] = []
    before = signal.signal(signal.SIGALRM, _in_vain)
    signal.alarm(PATIENCE)
    try:
        while not seen or not until(seen[-1]):
            message = socket.receive()
            if message.get("text") is not None:
                seen.append(json.loads(message["text"]))
            else:
                assert message.get("bytes") is not None, f"the socket was closed: {message}"
                seen.append({"type": "picture", "bytes": message["bytes"]})
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return seen


def _in_vain(*_: object) -> None:
    raise AssertionError("it was waited for in vain")


def status(*wanted: str, id: str | None = None) -> Callable[[dict[str, Any]], bool]:
    """Return what tells the message in which the run, perhaps that of an id, has a status."""

    def is_wanted(message: dict[str, Any]) -> bool:
        if message["type"] != "state" or message["current"] is None:
            return False
        run = message["current"]
        return run["status"] in wanted and id in (None, run["id"])

    return is_wanted
