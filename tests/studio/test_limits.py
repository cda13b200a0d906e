"""What is counted: time left, work at once; and lessons, one at a time."""

import time
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
    for step, seconds in ((1, 9.0), (2, 1.0)):  # the first one holds the beginning
        now[0] += seconds
        iterate = SimpleNamespace(step=step, steps=8, scale=1)
        clock.step(run, iterate)
        left.append(clock.left(run, iterate))
        now[0] += 100.0  # it is paused
        clock.go_on()
    assert left == [None, (2 * 4 + 4 * 16) / 4]
    assert clock.seconds == 10.0


def test_no_more_is_worked_on_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MOST", 0)
    monkeypatch.setattr(app, "MOST", 0)
    with opened(tmp_path) as client:
        assert client.post("/api/check", json={"settings": {}}).status_code == 429
        assert client.post("/api/pictures", content=b"x").status_code == 429


@pytest.fixture
def client(tmp_path):
    with opened(tmp_path) as client:
        yield client


def made(client, **settings):
    asked = client.post("/api/lessons", json={"settings": TINY | settings})
    assert asked.status_code == 202
    while (answer := client.get(f"/api/lessons/{asked.json()['id']}")).status_code == 202:
        assert answer.json() == {"status": "working"}
        time.sleep(0.1)
    return answer


@pytest.mark.slow
def test_a_lesson(client):
    page = made(client)
    assert page.headers["content-type"].startswith("text/html")
    for mode in ("fake_backward", "loss_attribute", "autograd_function"):
        assert f'id="{mode}"' in page.text
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    refused = made(client, size=-1)
    assert (refused.status_code, refused.json()["key"]) == (422, "size")
    assert refused.json()["error"].startswith("size=-1")


def test_one_lesson_at_a_time(client):
    answers = [client.post("/api/lessons", json={"settings": TINY}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 429]


def test_a_lesson_that_takes_too_long_and_one_that_there_is_not(client, monkeypatch):
    assert client.get("/api/lessons/1").status_code == 404
    monkeypatch.setattr(lessons, "PATIENCE", 0.2)
    assert "takes too long" in made(client).json()["error"]
