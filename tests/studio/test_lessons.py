"""Lessons: explain's own page about some settings, which may do nothing but show itself."""

import time

import pytest
from studios import opened

from styletransfer.studio import lessons

TINY = {"size": 48, "precision": "float32", "device": "cpu"}


@pytest.fixture
def client(tmp_path):
    with opened(tmp_path) as client:
        yield client


def ask(client, **settings):
    answer = client.post("/api/lessons", json={"settings": settings})
    assert answer.status_code == 202
    return answer.json()["id"]


def made(client, id):
    while (answer := client.get(f"/api/lessons/{id}")).status_code == 202:
        assert answer.json() == {"status": "working"}
        time.sleep(0.1)
    return answer


def test_a_lesson(client):
    id = ask(client, **TINY)
    busy = client.post("/api/lessons", json={"settings": TINY})
    assert busy.status_code == 429
    page = made(client, id)
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    for mode in ("fake_backward", "loss_attribute", "autograd_function"):
        assert f'id="{mode}"' in page.text
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy


def test_what_explain_refuses(client):
    answer = made(client, ask(client, **(TINY | {"size": -1})))
    assert answer.status_code == 422
    assert answer.json()["key"] == "size"
    assert answer.json()["error"].startswith("size=-1")


def test_a_lesson_that_takes_too_long(client, monkeypatch):
    monkeypatch.setattr(lessons, "PATIENCE", 0.2)
    answer = made(client, ask(client, **TINY))
    assert "takes too long" in answer.json()["error"]


def test_lessons_that_there_are_not(client):
    assert client.get("/api/lessons/1").status_code == 404
