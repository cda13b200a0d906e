"""The studio as a process: its start, its end, and the files it leaves."""

import signal
import socket
import sys
from types import SimpleNamespace

import psutil
import pytest
from helpers import record_of, refusal, until
from studio.studios import Process

from styletransfer.errors import UserError, pip_install
from styletransfer.studio import serve
from styletransfer.studio.commands import studio as command

STUDIO = ("studio", "open=false")


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(*words, **environment):
        started.append(Process(tmp_path, *words, **environment))
        return started[-1]

    yield begin
    for studio in started:
        studio.close()


@pytest.mark.slow
def test_a_run_is_kept_by_a_signal_and_by_a_kill(start, tmp_path):
    """Check also that the next studio has the same address, and goes on with the run."""
    folder = tmp_path / "outputs" / "studio"
    first = start("open=false")
    id = first.paint()
    run = folder / id
    status, _, err = first.end(signal.SIGINT)
    assert (status, err) == (128 + signal.SIGINT, "error: interrupted\n")
    assert record_of(run)["status"] == "stopped"
    assert (run / "checkpoint.pt").is_file()
    assert (run / "pastiche.png").is_file()
    assert not list(run.glob("*.tmp"))
    assert (folder / ".address.json").stat().st_mode & 0o77 == 0
    again = start("open=false")
    assert again.address.partition("token=")[2] == first.address.partition("token=")[2]
    (shown,) = again.client.get("/api/runs").json()
    assert (shown["id"], shown["status"], shown["has_checkpoint"]) == (id, "stopped", True)
    assert again.client.post(f"/api/runs/{id}/resume", json={}).status_code == 202
    until(lambda: again.client.get(f"/api/queue/{id}").json()["status"] == "painting")
    again.end(signal.SIGKILL)  # takes its processes with it
    assert record_of(run)["status"] == "stopped"


@pytest.mark.slow
def test_an_idle_studio_takes_little_and_admits_no_second(start, tmp_path, monkeypatch, capsys):
    """Check its address, that it loads no torch, that its processes share torch's, and its end."""
    studio = start(BROWSER="false", DISPLAY="", WAYLAND_DISPLAY="", PATH="/nowhere")
    process = psutil.Process(studio.process.pid)
    listening = [one.laddr for one in process.net_connections() if one.status == "LISTEN"]
    assert [tuple(one) for one in listening] == [("127.0.0.1", studio.port)]
    studio.client.get("/api/form")
    studio.client.get("/api/runs")
    if sys.platform == "linux":  # elsewhere each process imports torch
        assert not [one.path for one in process.memory_maps() if "libtorch" in one.path]
        # Reader and painter are forked from one child of the server; the other child is Python's.
        until(lambda: sorted(len(one.children()) for one in process.children()) == [0, 2])
    folder = tmp_path / "outputs" / "studio"
    monkeypatch.chdir(tmp_path)
    assert f"another studio is at work in {folder}; wait for it, or end it" in refusal(
        capsys, *STUDIO
    )
    assert str(studio.port) in (folder / ".address.json").read_text()
    assert studio.end(signal.SIGHUP)[:3:2] == (128 + signal.SIGHUP, "error: interrupted\n")


def test_bad_input_and_a_missing_extra(here, monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port={port} cannot be had" in refusal(capsys, *STUDIO, f"port={port}")
    for word, said in (
        ("port=65536", "must be 0 or more and at most 65535"),
        ("port=-1", "must be 0 or more and at most 65535"),
        ("+host=0.0.0.0", "unknown key host"),
    ):
        assert said in refusal(capsys, *STUDIO, word)
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert pip_install("studio") in refusal(capsys, *STUDIO)
    assert list(here.iterdir()) == []


def test_it_is_shared_in_private_networks_alone(monkeypatch, capsys):
    addresses = ["127.0.0.1", "93.184.216.34", "192.168.7.5", "10.1.2.3", "fe80::1"]
    families = [socket.AF_INET6 if ":" in one else socket.AF_INET for one in addresses]
    pairs = zip(families, addresses, strict=True)
    named = [SimpleNamespace(family=family, address=one) for family, one in pairs]
    monkeypatch.setattr(serve.psutil, "net_if_addrs", lambda: {"a": named[:2], "b": named[2:]})
    assert serve._private_addresses() == ["192.168.7.5", "10.1.2.3"]
    monkeypatch.setattr(serve.psutil, "net_if_addrs", lambda: {"lo": named[:2]})
    assert "finds no private network" in refusal(capsys, *STUDIO, "share=true")
    said = serve._invitation("http://10.1.2.3:8000/?token=abc")
    assert "http://10.1.2.3:8000/?token=abc" in said
    monkeypatch.setitem(sys.modules, "segno", None)
    with pytest.raises(UserError, match="needs segno; run: pip install"):
        serve._invitation("http://10.1.2.3:8000/?token=abc")
