"""Limits of time and of work at once."""

import asyncio
from types import SimpleNamespace

import pytest
from starlette.requests import Request
from studios import opened

from styletransfer.studio import app, guide, pictures, reader
from styletransfer.studio.access import RefusedError


def test_the_time_left_is_that_of_the_pixels_left(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(guide, "time", SimpleNamespace(monotonic=lambda: now[0]))
    scales = [SimpleNamespace(steps=4, size=(2, 2)), SimpleNamespace(steps=4, size=(4, 4))]
    run, clock = SimpleNamespace(scales=scales), guide.Clock()
    left = []
    for step, seconds in ((1, 9.0), (2, 1.0)):  # the first step of a scale is slow
        now[0] += seconds
        iterate = SimpleNamespace(step=step, steps=8, scale=1)
        clock.step(run, iterate)
        left.append(clock.left(run, iterate))
        now[0] += 100.0  # it is paused
        clock.go_on()
    assert left == [9.0 * (3 * 4 + 4 * 16) / 4, 1.0 * (2 * 4 + 4 * 16) / 4]
    assert clock.seconds == 10.0


def test_no_more_is_worked_on_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MOST", 0)
    monkeypatch.setattr(app, "MOST", 0)
    with opened(tmp_path) as client:
        assert client.post("/api/check", json={"settings": {}}).status_code == 429
        assert client.post("/api/pictures", content=b"GIF8").status_code == 429


def test_uploads_that_stall_are_refused_and_make_way(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "AT_ONCE", 1)
    monkeypatch.setattr(pictures, "PATIENCE", 0.05)

    async def slow(piece=b"x" * 1000):
        yield piece
        await asyncio.Event().wait()

    async def check(shelf):
        for _ in range(2):  # the first makes way for the second
            with pytest.raises(RefusedError, match="too slowly") as refused:
                await asyncio.wait_for(shelf.take("a.png", "style", slow()), 20)
            assert refused.value.status == 408

    with opened(tmp_path) as client:
        client.portal.call(check, client.app.state.studio.pictures)
    assert list((tmp_path / "pictures").iterdir()) == []


def test_a_json_body_that_stalls_is_refused(monkeypatch):
    monkeypatch.setattr(pictures, "PATIENCE", 0.05)
    sent = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive():
        return sent.pop() if sent else await asyncio.Event().wait()

    async def ask():
        request = Request({"type": "http", "method": "POST", "headers": []}, receive)
        await asyncio.wait_for(app._body(request), 20)

    with pytest.raises(RefusedError, match="too slowly"):
        asyncio.run(ask())


def test_a_look_takes_a_few_styles(tmp_path, monkeypatch):
    with opened(tmp_path) as client:
        asked = {"content": "content-coffee", "style": ["style-oil"] * 200}
        refused = client.get("/api/look", params=asked)
        assert (refused.status_code, refused.json()["key"]) == (400, None)
        assert "at most 8 styles" in refused.json()["error"]
