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
