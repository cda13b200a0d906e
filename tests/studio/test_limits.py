"""What is counted: time left, work at once; and lessons, one at a time."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from studios import opened

from styletransfer.studio import app, guide, lessons, reader

TINY = {"size": 48, "precision": "float32", "device": "cpu"}


def test_the_time_left_is_that_of_the_pixels_left(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(guide, "time", SimpleNamespace(monotonic=lambda: now[0]))
    scales = [SimpleNamespace(steps=4, size=(2, 2)), SimpleNamespace(steps=4, size=(4, 4))]
    run, clock = SimpleNamespace(scales=scales), guide.Clock()
    left = []
    for step, seconds in ((1, 9.0), (2, 1.0)):
        now[0] += seconds
        iterate = SimpleNamespace(step=step, steps=8, scale=1)
        clock.step(run, iterate)
        left.append(clock.left(run, iterate))
        now[0] += 100.0  # it is paused
        clock.go_on()
    assert left == [9.0 * (3 * 4 + 4 * 16) / 4, 10.0 * (2 * 4 + 4 * 16) / 8]
    assert clock.seconds == 10.0


def test_no_more_is_worked_on_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MOST", 0)
    monkeypatch.setattr(app, "MOST", 0)
    with opened(tmp_path) as client:
        assert client.post("/api/check", json={"settings": {}}).status_code == 429
        assert client.post("/api/pictures", content=b"GIF8").status_code == 429


@pytest.fixture
def client(tmp_path):
    with opened(tmp_path) as client:
        yield client


def asked(client, **settings):
    return client.post("/api/lessons", json={"settings": TINY | settings})


@pytest.mark.slow
def test_a_lesson(client):
    page = client.get(f"/api/lessons/{asked(client).json()['id']}")
    assert page.headers["content-type"].startswith("text/html")
    for mode in ("fake_backward", "loss_attribute", "autograd_function"):
        assert f'id="{mode}"' in page.text
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    refused = asked(client, size=-1)
    assert (refused.status_code, refused.json()["key"]) == (422, "size")
    assert refused.json()["error"].startswith("size=-1")


def test_one_lesson_at_a_time(client, monkeypatch):
    begun, released = threading.Event(), threading.Event()

    async def explain(overrides):
        begun.set()
        await asyncio.to_thread(released.wait)
        return "a page"

    monkeypatch.setattr(lessons, "_explain", explain)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(asked, client)
        begun.wait()
        assert asked(client).status_code == 429
        released.set()
    assert client.get(f"/api/lessons/{first.result().json()['id']}").text == "a page"


def test_a_lesson_that_takes_too_long_and_one_that_there_is_not(client, monkeypatch):
    assert client.get("/api/lessons/1").status_code == 404
    monkeypatch.setattr(lessons, "PATIENCE", 0.0)
    assert "takes too long" in asked(client).json()["error"]
