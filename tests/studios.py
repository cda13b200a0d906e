"""A studio for tests: its server in this process, and a painter that paints nothing."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the studio needs the extra [studio]")

from starlette.testclient import TestClient

from styletransfer.studio import painter
from styletransfer.studio.app import make_app
from styletransfer.studio.child import become_a_child
from styletransfer.studio.form import defaults
from styletransfer.studio.orders import Orders
from styletransfer.studio.studio import Studio

PORT, TOKEN = 8000, "a-secret-token"
ADDRESS = f"http://127.0.0.1:{PORT}"
LIVE = f"ws://127.0.0.1:{PORT}/live"
JPEG = b"\xff\xd8 a picture"


def pretend(pipe: Connection) -> None:
    """A painter that begins a run, shows a picture, and then only does what it is told.

    pause: pauses; resume: finishes; stop: stops; snapshot: dies; steer, undo: are refused.
    """
    become_a_child()
    orders = Orders()
    threading.Thread(target=orders.listen, args=(pipe,), daemon=True).start()
    while (order := orders.next_run()) is not None:
        job = order["job"]

        def say(job: str = job, **message: Any) -> None:
            pipe.send({"job": job, **message})

        standing = {"width": 8, "height": 6, "now": defaults(), "changes": [], "moments": []}
        say(type="begun", **standing)
        report = {"step": 1, "steps": 2, "scale": 1, "scales": 1, "width": 8, "height": 6}
        report |= {"seconds": 0.1, "left": None, "history": [[1, {"style/a": 1.0, "total": 2.0}]]}
        say(type="progress", picture=JPEG, **report)
        ended = {"status": "stopped", "error": None}
        while (wish := orders.next_wish(job, wait=True)) is not None:
            match wish["type"]:
                case "pause":
                    say(type="paused")
                case "resume":
                    say(type="finished", picture=JPEG, **standing)
                    ended = {"status": "finished", "error": None}
                case "stop" | "leave":
                    break
                case "snapshot":
                    os.kill(os.getpid(), signal.SIGKILL)
                case "steer" | "undo":
                    say(type="refused", error="size=3 is too small", **standing)
        say(type="ended", **ended)


@contextmanager
def opened(
    folder: Path, paint: Callable[[Connection], None] = pretend, others: tuple[Path, ...] = ()
) -> Iterator[TestClient]:
    """Open a studio, and yield a browser that has been let in."""
    app = make_app(Studio(folder, others, paint), PORT, TOKEN)
    origin = {"origin": ADDRESS}
    with TestClient(app, ADDRESS, headers=origin, raise_server_exceptions=False) as client:
        assert client.get(f"/?token={TOKEN}").status_code == 200
        yield client


def watch(socket: Any, until: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Return the messages of a live socket up to one that is waited for; pictures as bytes."""
    seen: list[dict[str, Any]] = []
    while True:
        message = socket.receive()
        if message.get("text") is not None:
            seen.append(json.loads(message["text"]))
        elif message.get("bytes") is not None:
            seen.append({"type": "picture", "bytes": message["bytes"]})
        else:
            raise AssertionError(f"the socket was closed: {message}")
        if until(seen[-1]):
            return seen


def status(*wanted: str) -> Callable[[dict[str, Any]], bool]:
    """Return what tells the message in which the run has one of these statuses."""
    return lambda message: (
        message["type"] == "state" and (message["job"] or {}).get("status") in wanted
    )


__all__ = [
    "ADDRESS",
    "JPEG",
    "LIVE",
    "PORT",
    "TOKEN",
    "opened",
    "painter",
    "pretend",
    "status",
    "watch",
]
