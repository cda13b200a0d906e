"""Studios for tests: in this process, with threads in place of child processes; or as a process."""

import io
import json
import multiprocessing
import os
import re
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import httpx2
import psutil
import pytest
from helpers import ROOT, begun, until

pytest.importorskip("starlette", reason="needs the extra [studio]")

from starlette.testclient import TestClient
from websockets.sync.client import connect

from styletransfer.studio import reader, runner, worker
from styletransfer.studio.app import Studio, make_app
from styletransfer.studio.form import defaults
from styletransfer.studio.worker import Orders

PORT, TOKEN = 8000, "a-secret-token"
ADDRESS = f"http://127.0.0.1:{PORT}"
LIVE = f"ws://127.0.0.1:{PORT}/live"
PROCESSES = worker.CONTEXT
SCRIPT = (str(ROOT / "scripts" / "studio.py"),)
# The same, with sketches and styles of a quarter of the pixels, and a painter that waits between
# the steps of long runs, which leaves time to the page.
QUICK = """
from styletransfer.studio import reader, worker
reader.LOOK = 256
worker.CONTEXT.set_forkserver_preload([*worker.PRELOADED, "studio.unhurried"])
from styletransfer.cli.hydrated import run_command
from styletransfer.studio.commands.studio import studio
run_command(studio)
"""
JPEG = b"\xff\xd8 a picture"
# Timeout in seconds, long enough for a busy machine.
PATIENCE = 120
# Settings of a run that lasts for minutes: the Wasserstein loss falls slowly, in slow steps.
# A painter that waits between its steps, as QUICK has, needs no slow ones.
WAITING = {"size": 96, "steps": 50000}
WAITING |= {"objective.match_weight": 0, "objective.style_weight": 100}
LONG = WAITING | {"objective.style_loss": "wasserstein"}


class Thread(threading.Thread):
    """Thread stands in for the server's child process; it is a thread with the same interface."""

    exitcode, pid = 0, None

    def __init__(self, target, args, daemon):
        super().__init__(daemon=daemon)
        self.target = target
        self.pipe = Connection(os.dup(args[0].fileno()))  # as a process has its own copy

    def run(self):
        try:
            self.target(self.pipe)
        finally:  # tells a waiting reader of the end
            with socket.socket(fileno=os.dup(self.pipe.fileno())) as end:
                end.shutdown(socket.SHUT_RDWR)
            self.pipe.close()

    def kill(self):
        """Do nothing: the thread ends by itself."""


THREADS = SimpleNamespace(Process=Thread, Pipe=multiprocessing.Pipe)


def pretend(pipe):
    """Act as the runner's process: begin each run, send one picture, then wait for requests.

    The request `pause` pauses the run, `resume` finishes it, `stop` stops it, `steer` is refused.
    """
    orders = Orders(pipe)
    while (order := orders.next_run()) is not None:
        id = order["id"]

        def say(id=id, **message):
            pipe.send({"id": id, **message})

        say(type="begun", now=defaults())
        report = {"step": 1, "steps": 2, "scale": 1, "scales": 1, "seconds": 0.1, "left": None}
        report |= {"loss": 2.5, "pace": 1e-6}
        say(type="progress", picture=JPEG, **report)
        refused = {"error": "size=3 is too small", "key": "size", "now": defaults()}
        status = "stopped"
        while (wish := orders.next_wish(wait=True)) and wish["type"] != "stop":
            if wish["type"] == "resume":
                status = "finished"
                break
            if wish["type"] == "pause":
                say(type="paused")
            else:
                say(type="standing", **refused)
        say(type="ended", status=status, error=None)


@contextmanager
def opened(
    folder,
    paint=pretend,
    *,
    processes=False,
    near=(),
    client=("127.0.0.1", 1),
    status=200,
):
    """Open a studio; yield a client whose first request, with the token, got `status`."""
    with pytest.MonkeyPatch.context() as patch:
        # Set in both cases: another open studio may have set threads.
        patch.setattr(worker, "CONTEXT", PROCESSES if processes else THREADS)
        if not processes:
            patch.setattr(runner, "_warm_up", lambda: None)
            patch.setattr(runner, "become_a_child", lambda: None)
            patch.setattr(reader, "new_pool", lambda: ThreadPoolExecutor(1))
            patch.setattr(reader, "kill", lambda pool: None)
        app = make_app(Studio(folder, paint), PORT, TOKEN, near)
        origin = {"origin": ADDRESS}
        here = {"client": client, "raise_server_exceptions": False}
        with TestClient(app, ADDRESS, headers=origin, **here) as browser:
            assert browser.get(f"/?token={TOKEN}").status_code == status
            yield browser


def bytes_of(image):
    """Return the bytes of a PNG file with a picture of Pillow's."""
    image.save(file := io.BytesIO(), "PNG")
    return file.getvalue()


def sent(client, image, name="picture.png"):
    """Upload a picture of Pillow's; return its id."""
    return client.post(f"/api/pictures?name={name}", content=bytes_of(image)).json()["id"]


def submit(client, **settings):
    """Add a run to the queue; return its id."""
    answer = client.post("/api/queue", json={"settings": settings})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def act(client, id, action, wanted=202, **body):
    """Post an action on a run of the queue; assert that the answer has the status `wanted`."""
    answer = client.post(f"/api/queue/{id}/{action}", json=body)
    assert answer.status_code == wanted, answer.text


def watch(socket, until):
    """Return the messages of a WebSocket as dicts, up to the first for which `until` is true."""
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


def _in_vain(*_):
    raise AssertionError("it was waited for in vain")


def status(*wanted, id=None):
    """Return a test for messages: a state whose run has a `wanted` status and, if given, `id`."""

    def is_wanted(message):
        if message["type"] != "state" or message["current"] is None:
            return False
        run = message["current"]
        return run["status"] in wanted and id in (None, run["id"])

    return is_wanted


class Process:
    """Process runs a studio in a separate process, with an HTTP client that has its cookie."""

    def __init__(self, folder, *words, program=SCRIPT, **environment):
        command = (sys.executable, *program, *words)
        environment = os.environ | {"OMP_NUM_THREADS": "1"} | environment
        self.process = begun(*command, env=environment, cwd=folder)
        line = self.process.stdout.readline()
        address = re.search(r"(http://127\.0\.0\.1:(\d+))/\?token=(\S{20,})", line)
        assert address, line + self.process.communicate()[1]
        self.address = address[0]
        self.port = int(address[2])
        origin = {"origin": address[1]}
        self.client = httpx2.Client(base_url=address[1], headers=origin, timeout=300)
        until(self.answers)

    def answers(self):
        try:
            return self.client.get(self.address, follow_redirects=True).status_code == 200
        except httpx2.ConnectError:
            return False

    def paint(self):
        """Start a long run; return its id when it has begun."""
        id = self.client.post("/api/queue", json={"settings": LONG}).json()["id"]
        until(lambda: id in [run["id"] for run in self.client.get("/api/runs").json()])
        return id

    def tidy(self):
        """Stop the run at work, empty the queue, and delete all runs and uploads."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())
        live, origin = f"ws://127.0.0.1:{self.port}/live", self.client.headers["origin"]
        with connect(live, origin=origin, additional_headers={"cookie": cookie}) as socket:
            while not self._is_idle(socket.recv(PATIENCE)):
                pass
        for run in self.client.get("/api/runs").json():
            self._post(f"/api/runs/{run['id']}/delete")
        for picture in self.client.get("/api/pictures").json():
            if picture["kind"] == "upload":
                self._post(f"/api/pictures/{picture['id']}/delete")

    def _is_idle(self, message):
        """Return whether a message of the socket says that nothing is painted; else end that."""
        state = {} if isinstance(message, bytes) else json.loads(message)
        if state.get("type") != "state":
            return False
        run = state["current"]
        is_idle = run is None or run["status"] in ("finished", "stopped", "failed")
        for entry in state["queue"]:
            self._post(f"/api/queue/{entry['id']}/cancel")
        if not is_idle:
            self._post(f"/api/queue/{run['id']}/stop")
        return is_idle and not state["queue"]

    def _post(self, path):
        self.client.post(path, json={})

    def end(self, number):
        """Send a signal to the studio; return its exit status and the rest of its two outputs."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        assert family
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        _, alive = psutil.wait_procs(family, PATIENCE)
        assert not alive
        return self.process.returncode, out, err

    def close(self):
        """Kill the process and close the client."""
        self.process.kill()
        self.process.communicate()
        self.client.close()
