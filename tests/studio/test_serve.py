"""The studio as a process: how it begins, how it ends, and what is left then."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import httpx2
import psutil
import pytest
from helpers import ROOT, refusal

pytest.importorskip("starlette", reason="the studio needs the extra [studio]")

from styletransfer.studio import command

LONG = {"size": 48, "steps": 5000, "scales": 1, "optimizer.name": "adam", "precision": "float32"}
# Seconds in which even a busy machine does anything.
PATIENCE = 120
STUDIO = ("studio", "open=false")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")


class Process:
    """A studio in a process of its own, and a browser that has been let in."""

    def __init__(self, folder, *words, **environment):
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "scripts" / "studio.py"), *words],
            cwd=folder,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        line = self.process.stdout.readline()
        address = re.search(r"(http://127\.0\.0\.1:(\d+))/\?token=(\S{20,})", line)
        assert address, line + self.process.communicate()[1]
        self.port = int(address[2])
        origin = {"origin": address[1]}
        self.client = httpx2.Client(base_url=address[1], headers=origin, timeout=300)
        until(lambda: self.answers(address[0]))

    def answers(self, address):
        try:
            return self.client.get(address, follow_redirects=True).status_code == 200
        except httpx2.ConnectError:
            return False

    def paint(self):
        """Begin a long run, and return once it has made a picture."""
        id = self.client.post("/api/queue", json={"settings": LONG}).json()["id"]
        until(lambda: self.client.get(f"/api/runs/{id}/picture").status_code == 200)
        return id

    def end(self, number):
        """Send a signal; return the exit status and what is left on both streams."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        assert family
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        _, alive = psutil.wait_procs(family, PATIENCE)
        assert not alive
        return self.process.returncode, out, err


def until(is_so):
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(*words, **environment):
        started.append(Process(tmp_path, *words, **environment))
        return started[-1]

    yield begin
    for studio in started:
        if studio.process.poll() is None:
            studio.process.kill()
            studio.process.communicate()
        studio.client.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_run_and_keeps_it(start, number, tmp_path):
    studio = start("open=false")
    id = studio.paint()
    status, _, err = studio.end(number)
    assert (status, err) == (128 + number, "error: interrupted\n")
    run = tmp_path / "outputs" / "studio" / id
    assert json.loads((run / "run.json").read_text())["status"] == "stopped"
    assert (run / "checkpoint.pt").is_file()
    assert (run / "pastiche.png").is_file()
    assert not list(run.glob("*.tmp"))


@pytest.mark.slow
def test_a_server_that_is_killed_takes_its_processes_with_it(start, tmp_path):
    studio = start("open=false")
    id = studio.paint()
    studio.end(signal.SIGKILL)
    record = tmp_path / "outputs" / "studio" / id / "run.json"
    assert json.loads(record.read_text())["status"] == "stopped"
    again = start("open=false")
    (run,) = again.client.get("/api/runs").json()
    assert (run["id"], run["status"], run["has_checkpoint"]) == (id, "stopped", True)
    assert again.client.post(f"/api/runs/{id}/resume", json={}).status_code == 202


@pytest.mark.slow
def test_it_listens_on_this_machine_alone_and_loads_no_torch(start):
    studio = start(BROWSER="false", DISPLAY="", WAYLAND_DISPLAY="", PATH="/nowhere")
    process = psutil.Process(studio.process.pid)
    listening = [one.laddr for one in process.net_connections() if one.status == "LISTEN"]
    assert [tuple(one) for one in listening] == [("127.0.0.1", studio.port)]
    studio.client.get("/api/form")
    studio.client.get("/api/runs")
    assert not [one.path for one in process.memory_maps() if "libtorch" in one.path]
    cookie = "; ".join(f"{key}={value}" for key, value in studio.client.cookies.items())
    hosts = f"Host: 127.0.0.1:{studio.port}\r\nHost: evil.example\r\n"
    with socket.create_connection(("127.0.0.1", studio.port)) as wire:
        wire.sendall(f"GET /api/form HTTP/1.1\r\n{hosts}Cookie: {cookie}\r\n\r\n".encode())
        assert wire.recv(100).startswith(b"HTTP/1.1 400")
    _, out, _ = studio.end(signal.SIGTERM)
    assert "open the address yourself" in out


def test_bad_input_and_a_missing_extra(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port={port} cannot be had" in refusal(capsys, *STUDIO, f"port={port}")
    for word, said in (
        ("port=65536", "must be 0 to 65535"),
        ("port=-1", "must be 0 to 65535"),
        ("gone", "gone is no folder"),
        ("+host=0.0.0.0", "unknown key host"),
    ):
        assert said in refusal(capsys, *STUDIO, word)
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert "pip install 'styletransfer[studio]'" in refusal(capsys, *STUDIO)
    assert list(tmp_path.iterdir()) == []
