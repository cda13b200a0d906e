"""Runs with the real runner: watched, steered, stopped, resumed, and repeated by command."""

import errno
import io
import os
import shlex
import signal

import numpy as np
import psutil
import pytest
import tifffile
from PIL import Image
from studio.studios import LIVE, LONG, act, opened, runner, sent, status, submit, watch

from styletransfer.cli.hydrated import run_command
from styletransfer.networks.commands.apply import apply
from styletransfer.pictures import images
from styletransfer.runs.folder import read_run
from styletransfer.train import train

TINY = {"size": 48, "steps": 8, "scales": 1}


@pytest.fixture(scope="module")
def client(folder):
    with opened(folder, runner.main) as client:
        yield client


@pytest.fixture(scope="module")
def finished(client):
    """Return the id of a finished run and the messages that were sent during the run."""
    with client.websocket_connect(LIVE) as socket:
        id = submit(client, **TINY, color="content_luminance")
        return id, watch(socket, status("finished", id=id))


def is_at(step):
    return lambda message: message["type"] == "progress" and message["step"] >= step


def shown(client, id):
    return next(run for run in client.get("/api/runs").json() if run["id"] == id)


def made_by(command, folder):
    """Run a command line in `folder`; return the bytes of the pastiche it writes."""
    words = shlex.split(command)[2:]
    run_command(train, [*words, f"hydra.run.dir={folder}", f"output={folder}/pastiche.tiff"])
    return (folder / "pastiche.png").read_bytes()


@pytest.mark.slow
def test_a_run_is_the_command_lines_own(client, finished, folder, tmp_path):
    id, seen = finished
    pictures = [message["bytes"] for message in seen if message["type"] == "picture"]
    with Image.open(io.BytesIO(pictures[-1])) as last:
        assert last.size == (48, 32)
    steps = [message["step"] for message in seen if message["type"] == "progress"]
    assert steps == sorted(steps)
    names = {path.name for path in (folder / id / ".hydra").iterdir()}
    assert names == {"config.yaml", "hydra.yaml", "overrides.yaml"}
    run = shown(client, id)
    assert run["settings"] == {**TINY, "color": "content_luminance"}
    assert (run["status"], run["width"], run["height"]) == ("finished", 48, 32)
    assert made_by(run["command"], tmp_path) == (folder / id / "pastiche.png").read_bytes()
    reports = [message for message in seen if message["type"] == "progress"]
    assert all(report["loss"] > 0 for report in reports)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_vgg")
def test_the_jobs_of_a_sweep_are_the_results_of_a_studio(here):
    """The files of the studio do not keep the same sweep from being given again."""
    sweep = ["experiment=tiny", "steps=2", "scales=1", "seed=1,2", "resume=auto", "-m"]
    sweep.append("hydra.sweep.dir=sweep")
    run_command(train, sweep)
    made = [(here / "sweep" / id / "pastiche.png").read_bytes() for id in "01"]
    with opened(here / "sweep") as client:
        for id, bytes in zip("01", made, strict=True):
            run = shown(client, id)
            assert (run["status"], f"seed={1 + int(id)}" in run["command"]) == ("finished", True)
            assert client.get(f"/api/runs/{id}/download", params={"format": "png"}).content == bytes
    run_command(train, sweep)
    assert [(here / "sweep" / id / "pastiche.png").read_bytes() for id in "01"] == made


@pytest.mark.slow
def test_downloads_are_as_good_as_the_run(client, finished, folder):
    id, _ = finished
    best = images.read(folder / id / "pastiche.png").rgb
    for kind, name in (("png", "PNG"), ("jpeg", "JPEG"), ("webp", "WEBP"), ("tiff", "TIFF")):
        answer = client.get(f"/api/runs/{id}/download", params={"format": kind})
        assert answer.headers["content-disposition"] == "attachment"
        if kind == "tiff":
            samples = tifffile.imread(io.BytesIO(answer.content))
            assert samples.dtype == np.uint16
            assert (samples == (best[0] * 65535).round().permute(1, 2, 0).numpy()).all()
            assert (samples % 257).any()  # more than 8 bits
        else:
            with Image.open(io.BytesIO(answer.content)) as image:
                assert (image.format, image.size) == (name, (48, 32))
    assert client.get(f"/api/runs/{id}/download?format=exe").status_code == 400
    for path in ("picture", "content"):
        assert client.get(f"/api/runs/{id}/{path}?side=160").headers["content-type"] == "image/jpeg"


@pytest.mark.slow
def test_a_steered_run_keeps_its_last_settings(client, socket, folder):
    id = submit(client, **TINY)
    act(client, id, "pause")  # before the run can finish
    watch(socket, status("paused"))
    changed = {**TINY, "objective.content_weight": 0.9, "style": ["style-mosaic"]}
    act(client, id, "steer", settings={"objective.content_weight": 5})
    act(client, id, "steer", settings={"style": ["style-mosaic"]})  # of another page
    act(client, id, "steer", settings={"objective.content_weight": 0.9})
    is_changed = lambda m: m["type"] == "state" and m["current"]["settings"] == changed  # noqa: E731
    run = watch(socket, is_changed)[-1]["current"]
    assert (run["status"], run["is_steered"]) == ("paused", True)
    act(client, id, "resume")
    run = watch(socket, status("finished"))[-1]["current"]
    assert "mosaic.jpg" in run["command"]
    act(client, id, "steer", 409, settings=TINY)
    kept = shown(client, id)
    assert (kept["command"], kept["settings"]) == (run["command"], changed)
    assert kept["is_steered"]
    assert client.post(f"/api/runs/{id}/delete", json={}).status_code == 200
    assert not (folder / id).exists()


@pytest.mark.slow
def test_a_stopped_run_is_gone_on_with(client, socket, folder, capsys, tmp_path):
    id = submit(client, **LONG)
    watch(socket, is_at(2))
    act(client, id, "stop")
    watch(socket, status("stopped"))
    assert (shown(client, id)["status"], shown(client, id)["has_checkpoint"]) == ("stopped", True)
    stopped = shown(client, id)
    assert f"stop_after={stopped['step']}" in stopped["command"]
    assert made_by(stopped["command"], tmp_path) == (folder / id / "pastiche.png").read_bytes()
    assert client.post(f"/api/runs/{id}/resume", json={}).status_code == 202
    assert watch(socket, status("painting"))[-1]["current"]["settings"] == LONG
    watch(socket, is_at(stopped["step"] + 1))
    assert client.post(f"/api/runs/{id}/resume", json={}).status_code == 409
    assert client.post(f"/api/runs/{id}/delete", json={}).status_code == 409
    act(client, id, "stop")
    watch(socket, status("stopped"))
    run_command(
        train, [f"resume={folder / id}", "dry_run=true"]
    )  # a dry run reads the run's settings
    assert "96 x 64" in capsys.readouterr().out


@pytest.mark.slow
def test_bad_input_is_told_in_the_words_of_the_command_line(client, folder):
    uploaded = sent(client, Image.new("RGB", (1, 1), "teal"), "dot.png")
    before = set(folder.iterdir())
    for wrong, key, words in (
        ({"content": uploaded}, "content", "dot.png shows 1 x 1 pixels"),
        ({"size": -3}, "size", "size=-3 must be"),
        ({"protect": "style-oil"}, "protect", "oil is a colour picture"),
    ):
        refused = client.post("/api/queue", json={"settings": TINY | wrong})
        assert (refused.status_code, refused.json()["key"]) == (422, key)
        assert refused.json()["error"].startswith(words)
    assert set(folder.iterdir()) == before


@pytest.mark.slow
def test_the_run_of_a_killed_painter_is_shown_as_stopped(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    studio = opened(tmp_path, runner.main, processes=True)
    with studio as client, client.websocket_connect(LIVE) as socket:
        worker = client.app.state.studio.queue.runner
        id, waiting = submit(client, **LONG), submit(client, **TINY)
        watch(socket, is_at(3))
        os.kill(worker._process.pid, signal.SIGKILL)
        told = watch(socket, lambda m: m["type"] == "message")[-1]
        assert "was killed" in told["error"]
        assert read_run(tmp_path / id).status == "running"  # no time for another status
        run = shown(client, id)
        assert (run["status"], run["width"], run["is_preview"]) == ("stopped", None, True)
        assert run["error"] == told["error"]
        assert client.get(f"/api/runs/{id}/picture?side=320").status_code == 200
        watch(socket, status("finished", id=waiting))
        assert psutil.pid_exists(worker._process.pid)


@pytest.mark.slow
def test_a_kept_sketch_is_a_result_with_its_command(client, socket, folder, tmp_path):
    settings = {"size": 80, "objective.content_weight": 0.5, "style_scale": 1.5, "steps": 7}
    asked = client.post("/api/queue", json={"settings": settings, "sketch": True})
    assert asked.status_code == 202, asked.text
    id = asked.json()["id"]
    seen = watch(socket, status("finished", "failed", id=id))
    assert any(message["type"] == "picture" for message in seen)
    run = shown(client, id)
    assert (run["status"], run["kind"], run["settings"]) == ("finished", "sketch", settings)
    assert (run["width"], run["height"]) == (80, 53)
    _, name, *words = shlex.split(run["command"])
    assert name == "apply"
    run_command(apply, [*words, f"output={tmp_path}/again.png"])
    again, kept = tmp_path / "again.png", folder / id / "sketch.png"
    assert images.read(again).rgb.equal(images.read(kept).rgb)
    assert client.get(f"/api/runs/{id}/download?format=png").status_code == 200
    assert client.post(f"/api/runs/{id}/delete").json() == {"id": id, "kept": []}


@pytest.mark.slow
def test_a_log_that_cannot_be_written_is_told(client, socket, monkeypatch):
    """Check a full disk, where the painter's process ended with status 0."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(runner, "_run", full)
        id = submit(client, **TINY)
        run = watch(socket, status("failed", id=id))[-1]["current"]
    assert "No space left on device; make room on the disk" in run["error"]
    watch(socket, status("finished", id=submit(client, **TINY)))
