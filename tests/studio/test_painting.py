"""Runs that are really painted: watched, steered, stopped, taken up again, and made once more."""

import io
import json
import os
import shlex
import signal

import numpy as np
import psutil
import pytest
import tifffile
from PIL import Image
from studios import LIVE, opened, painter, status, watch

from styletransfer.cli import script
from styletransfer.pictures import images
from styletransfer.runs.folder import read_record

TINY = {"size": 48, "steps": 30, "scales": 1, "precision": "float32", "device": "cpu"}
LONG = TINY | {"steps": 5000, "optimizer.name": "adam"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def client(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        with opened(folder, painter.main) as client:
            yield client


@pytest.fixture
def socket(client):
    with client.websocket_connect(LIVE) as socket:
        yield socket


def paint(client, **settings):
    answer = client.post("/api/queue", json={"settings": settings})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def act(client, id, action, **body):
    answer = client.post(f"/api/queue/{id}/{action}", json=body)
    assert answer.status_code == 202, answer.text


def is_at(step):
    return lambda message: message["type"] == "progress" and message["step"] >= step


def of(id, *wanted):
    return lambda message: status(*wanted)(message) and message["current"]["id"] == id


def made_by(command, folder):
    """The bytes of the picture that a command line makes."""
    words = shlex.split(command)
    assert words[:2] == ["styletransfer", "train"]
    script("train")([*words[2:], f"hydra.run.dir={folder}", f"output={folder}/pastiche.tiff"])
    return (folder / "pastiche.png").read_bytes()


def test_a_run_is_the_command_lines_own(client, socket, folder, tmp_path):
    id = paint(client, **TINY, color="content_luminance")
    seen = watch(socket, of(id, "finished"))
    pictures = [message["bytes"] for message in seen if message["type"] == "picture"]
    with Image.open(io.BytesIO(pictures[-1])) as last:
        assert last.size == (48, 32)
    steps = [step for m in seen if m["type"] == "progress" for step, _ in m["history"]]
    assert steps == list(range(1, steps[-1] + 1))
    run = folder / id
    assert {path.name for path in (run / ".hydra").iterdir()} == {
        "config.yaml",
        "hydra.yaml",
        "overrides.yaml",
    }
    record = read_record(run)
    assert record["status"] == "finished"
    assert record["config"]["color"] == "content_luminance"
    (shown,) = (each for each in client.get("/api/runs").json() if each["id"] == id)
    assert shown["settings"] == {**TINY, "color": "content_luminance"}
    assert (shown["status"], shown["width"], shown["height"]) == ("finished", 48, 32)
    assert shown["losses"]["content"] == shown["losses"]["content/relu4_2"]
    assert made_by(shown["command"], tmp_path) == (run / "pastiche.png").read_bytes()
    lines = client.get(f"/api/runs/{id}/losses").json()
    # The last report may come after the state that says finished.
    assert len(lines["names"]["total"]) == len(lines["steps"]) >= steps[-1]


def test_downloads_are_as_good_as_the_run(client, socket, folder):
    id = paint(client, **TINY)
    watch(socket, of(id, "finished"))
    best = images.read(folder / id / "pastiche.png").rgb
    for kind, name in (("png", "PNG"), ("jpeg", "JPEG"), ("webp", "WEBP"), ("tiff", "TIFF")):
        answer = client.get(f"/api/runs/{id}/download", params={"format": kind})
        assert answer.headers["content-disposition"].startswith("attachment; filename=")
        if kind == "tiff":
            samples = tifffile.imread(io.BytesIO(answer.content))
            assert samples.dtype == np.uint16
            exact = (best[0] * 65535).round().permute(1, 2, 0).numpy()
            assert (samples == exact).all()
            assert (samples % 257).any()  # more than 8 bits
        else:
            with Image.open(io.BytesIO(answer.content)) as image:
                assert (image.format, image.size) == (name, (48, 32))
    assert client.get(f"/api/runs/{id}/download?format=exe").status_code == 400
    for path in ("picture", "content"):
        shown = client.get(f"/api/runs/{id}/{path}?side=160")
        assert shown.headers["content-type"] == "image/jpeg"


def test_steering_is_on_the_record_and_reproduces(client, socket, folder, tmp_path):
    id = paint(client, **TINY)
    act(client, id, "pause")  # before it can be over
    watch(socket, of(id, "paused"))
    changed = {**TINY, "objective.content_weight": 0.9, "style": ["style-mosaic"]}
    act(client, id, "steer", settings={**changed, "objective.content_weight": 5})
    act(client, id, "steer", settings=changed)
    job = watch(socket, lambda m: m["type"] == "state" and m["current"]["settings"] == changed)
    job = job[-1]["current"]
    assert job["status"] == "paused"
    assert job["changes"][-1]["set"]["style"] == ["style-mosaic"]
    assert any("before" in moment["reason"] for moment in job["snapshots"])
    act(client, id, "resume")
    job = watch(socket, of(id, "finished"))[-1]["current"]
    assert "changes=" in job["command"]
    (shown,) = (each for each in client.get("/api/runs").json() if each["id"] == id)
    assert shown["command"] == job["command"]
    assert made_by(shown["command"], tmp_path) == (folder / id / "pastiche.png").read_bytes()


def test_a_finished_run_goes_on_when_it_is_steered(client, socket, folder):
    id = paint(client, **TINY)
    steps = watch(socket, of(id, "finished"))[-1]["current"]["step"]
    before = (folder / id / "pastiche.png").read_bytes()
    act(client, id, "steer", settings={**TINY, "objective.style_weight": 3})
    again = lambda m: of(id, "finished")(m) and m["current"]["step"] > steps  # noqa: E731
    watch(socket, again)
    assert (folder / id / "pastiche.png").read_bytes() != before
    assert client.post(f"/api/runs/{id}/delete", json={}).status_code == 200
    assert not (folder / id).exists()


def test_undo_goes_back_with_its_settings(client, socket):
    id = paint(client, **LONG)
    watch(socket, is_at(2))
    act(client, id, "snapshot")
    told = watch(socket, lambda m: m["type"] == "state" and len(m["current"]["snapshots"]) == 2)[-1]
    moment = told["current"]["snapshots"][-1]
    assert moment["reason"] == "snapshot"
    act(client, id, "steer", settings={**LONG, "objective.content_weight": 2})
    watch(socket, lambda m: m["type"] == "state" and m["current"]["changes"])
    act(client, id, "undo", snapshot=moment["number"])
    told = watch(socket, lambda m: m["type"] == "state" and m["current"]["settings"] == LONG)[-1]
    act(client, id, "undo", snapshot=99)
    told = watch(socket, lambda m: m["type"] == "state" and m["message"])[-1]
    assert "there is no moment 99" in told["message"]["error"]
    act(client, id, "stop")
    watch(socket, of(id, "stopped"))


def test_stopped_here_and_gone_on_with_there_and_back(client, socket, folder, capsys):
    id = paint(client, **LONG)
    watch(socket, is_at(3))
    act(client, id, "stop")
    watch(socket, of(id, "stopped"))
    (shown,) = (each for each in client.get("/api/runs").json() if each["id"] == id)
    assert (shown["status"], shown["has_checkpoint"]) == ("stopped", True)
    assert (folder / id / "pastiche.png").is_file()
    answer = client.post(f"/api/runs/{id}/resume", json={})
    assert answer.status_code == 202
    job = watch(socket, of(id, "painting"))[-1]["current"]
    assert job["settings"] == LONG
    assert client.post(f"/api/runs/{id}/resume", json={}).status_code == 409
    assert client.post(f"/api/runs/{id}/delete", json={}).status_code == 409
    act(client, id, "stop")
    watch(socket, of(id, "stopped"))
    record = json.loads((folder / id / "run.json").read_text())
    assert record["status"] == "stopped"
    script("train")([f"resume={folder / id}", "dry_run=true"])  # which reads its settings
    assert "48 x 32" in capsys.readouterr().out


def test_bad_input_is_told_in_the_words_of_the_command_line(client, socket, folder):
    buffer = io.BytesIO()
    Image.new("RGB", (1, 1), "teal").save(buffer, "PNG")
    uploaded = client.post("/api/pictures?name=dot.png", content=buffer.getvalue()).json()
    id = paint(client, **TINY, content=uploaded["id"])
    job = watch(socket, of(id, "failed"))[-1]["current"]
    assert "pixels" in job["error"]
    id = paint(client, **(TINY | {"size": -3}))
    told = watch(socket, of(id, "failed"))[-1]
    assert told["message"]["key"] == "size"
    assert told["message"]["error"].startswith("size=-3")
    assert not (folder / id).exists()


def test_a_painter_that_is_killed_leaves_a_run_that_is_shown_as_stopped(client, socket, folder):
    id = paint(client, **LONG)
    waiting = paint(client, **TINY)
    watch(socket, is_at(3))
    os.kill(client.app.state.studio.queue.painter.pid, signal.SIGKILL)
    told = watch(socket, lambda m: m["type"] == "state" and m["message"])[-1]
    assert "was killed" in told["message"]["error"]
    assert read_record(folder / id)["status"] == "running"  # it had no time to say otherwise
    (shown,) = (each for each in client.get("/api/runs").json() if each["id"] == id)
    assert shown["status"] == "stopped"
    watch(socket, of(waiting, "finished"))
    assert psutil.pid_exists(client.app.state.studio.queue.painter.pid)


def test_runs_of_other_folders_are_shown_and_left_alone(client, socket, folder, tmp_path):
    id = paint(client, **TINY)
    watch(socket, of(id, "finished"))
    (tmp_path / "deep").mkdir()
    (folder / id).rename(tmp_path / "deep" / "run")
    with opened(tmp_path / "studio", others=(tmp_path / "deep",)) as other:
        (shown,) = other.get("/api/runs").json()
        assert shown["status"] == "finished"
        assert other.get(f"/api/runs/{shown['id']}/picture?side=160").status_code == 200
        assert other.post(f"/api/runs/{shown['id']}/delete", json={}).status_code == 403
    assert (tmp_path / "deep" / "run").is_dir()
