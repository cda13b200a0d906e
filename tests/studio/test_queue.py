"""The queue: one run paints at a time, the others wait; a dead runner; viewers of runs."""

from types import SimpleNamespace

import pytest
from studio.studios import JPEG, LIVE, act, opened, status, submit, watch

from styletransfer.studio import guide

SETTINGS = {"size": 64}


@pytest.fixture
def client(tmp_path):
    with opened(tmp_path) as client:
        yield client


def is_picture(message):
    return message["type"] == "picture"


def test_a_run_from_beginning_to_end(client, socket, tmp_path):
    assert socket.receive_json()["current"] is None
    id = submit(client, color="content_palette")
    seen = watch(socket, is_picture)
    assert seen[-1]["bytes"] == JPEG
    progress = next(message for message in seen if message["type"] == "progress")
    assert (progress["step"], progress["seconds"]) == (1, 0.1)
    with client.websocket_connect(LIVE) as second:  # a new page sees what the others see
        seen = watch(second, is_picture)
        assert (seen[0]["current"]["id"], seen[-1]["bytes"]) == (id, JPEG)
    act(client, id, "pause")
    run = watch(socket, status("paused"))[-1]["current"]
    assert (run["id"], run["step"], run["steps"]) == (id, 1, 2)
    assert run["command"] == "styletransfer train color=content_palette"
    act(client, id, "resume")
    run = watch(socket, status("finished"))[-1]["current"]
    assert run["loss"] == 2.5
    act(client, id, "pause", 409)
    assert not (tmp_path / id).exists()  # an empty run folder is removed


def test_runs_wait_for_their_turn(client, socket, tmp_path):
    first, second, third = (submit(client) for _ in range(3))
    assert len({first, second, third}) == 3
    watch(socket, status("painting"))
    act(client, second, "cancel")
    act(client, second, "cancel", 409)
    assert not (tmp_path / second).exists()
    act(client, first, "stop")
    assert watch(socket, status("painting", id=third))[-1]["queue"] == []
    act(client, third, "stop")
    watch(socket, status("stopped", id=third))


def test_a_waiting_run_is_painted_sooner(client, socket):
    first, second, third = (submit(client) for _ in range(3))
    act(client, third, "hurry")
    act(client, first, "hurry", 409)
    is_changed = lambda m: m["type"] == "state" and [third] == [one["id"] for one in m["queue"][:1]]  # noqa: E731
    queue = watch(socket, is_changed)[-1]["queue"]
    assert [run["id"] for run in queue] == [third, second]


def test_a_refused_wish_is_told_beside_its_control(client, socket):
    id = submit(client)
    watch(socket, status("painting"))
    for _ in range(2):  # each refusal sends its own message
        act(client, id, "steer", settings=SETTINGS | {"size": 3})
        told = watch(socket, lambda m: m["type"] == "message")[-1]
        assert (told["error"], told["key"]) == ("size=3 is too small", "size")
    act(client, id, "steer", 400, settings={"size": "x"})
    act(client, id, "explode", 404)


def test_what_cannot_be_done_to_a_run_that_is_not_there(client):
    for action in ("pause", "resume", "stop", "steer", "cancel"):
        act(client, "2026-01-01_00-00-00", action, 409, settings={})


def test_the_end_leaves_no_empty_folder(tmp_path):
    with opened(tmp_path) as client, client.websocket_connect(LIVE) as socket:
        submit(client)
        submit(client)
        watch(socket, status("painting"))
    assert list(tmp_path.iterdir()) == []


def test_the_time_left_is_that_of_the_pixels_left(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(guide, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(guide, "STEP", 4)
    scales = [SimpleNamespace(steps=4, size=(2, 2)), SimpleNamespace(steps=4, size=(4, 4))]
    run, clock = SimpleNamespace(scales=scales), guide.Clock()
    left = []
    for step, seconds in ((1, 9.0), (2, 1.0)):  # a scale's first step is left out
        now[0] += seconds
        iterate = SimpleNamespace(step=step, steps=8, scale=1)
        clock.step(run, iterate)
        left.append(clock.left(run, iterate))
        now[0] += 100.0  # the run is paused
        clock.go_on()
    assert left == [None, 1.0 * (2 * (4 + 4) + 4 * (4 + 16)) / (4 + 4)]
    assert clock.seconds == 10.0
