"""Runs at the desk: one at a time, the others in their turn; and a painter that dies."""

import shutil

import pytest
from starlette.websockets import WebSocketDisconnect
from studios import JPEG, LIVE, opened, status, watch

from styletransfer.studio import desk, viewer
from styletransfer.studio.viewer import Viewer

SETTINGS = {"size": 64}


@pytest.fixture
def client(tmp_path):
    with opened(tmp_path) as client:
        yield client


def submit(client, **settings):
    answer = client.post("/api/jobs", json={"settings": SETTINGS | settings})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def act(client, id, action, **body):
    return client.post(f"/api/jobs/{id}/{action}", json=body)


def test_a_run_from_beginning_to_end(client, tmp_path):
    with client.websocket_connect(LIVE) as socket:
        assert socket.receive_json()["job"] is None
        id = submit(client, color="content_palette")
        seen = watch(socket, lambda message: message["type"] == "picture")
        assert seen[-1]["bytes"] == JPEG
        progress = seen[-2]
        assert progress["losses"] == {"style/a": 1.0, "style": 1.0, "total": 2.0}
        assert progress["history"] == [[1, progress["losses"]]]
        assert client.get(f"/api/runs/{id}/picture").content == JPEG
        assert client.get(f"/api/runs/{id}/losses").json()["steps"] == [1]
        assert act(client, id, "pause").status_code == 202
        job = watch(socket, status("paused"))[-1]["job"]
        assert (job["id"], job["step"], job["steps"], job["width"]) == (id, 1, 2, 8)
        assert job["command"] == "styletransfer train size=64 color=content_palette"
        act(client, id, "resume")
        job = watch(socket, status("finished"))[-1]["job"]
        assert job["can_steer"]
    assert (tmp_path / id).is_dir() is False  # the painter wrote nothing into it


def test_runs_wait_for_their_turn_and_too_many_are_refused(client, monkeypatch):
    monkeypatch.setattr(desk, "MOST", 2)
    with client.websocket_connect(LIVE) as socket:
        first, second, third = (submit(client) for _ in range(3))
        assert len({first, second, third}) == 3
        refused = client.post("/api/jobs", json={"settings": SETTINGS})
        assert refused.status_code == 429
        assert "wait already" in refused.json()["error"]
        watch(socket, status("painting"))
        assert act(client, second, "cancel").status_code == 202
        assert act(client, second, "cancel").status_code == 409
        act(client, first, "stop")
        seen = watch(socket, lambda m: status("painting")(m) and m["job"]["id"] == third)
        assert seen[-1]["queue"] == []
        act(client, third, "stop")
        assert watch(socket, status("stopped"))[-1]["job"]["id"] == third


def test_a_finished_run_makes_way_for_the_next(client, tmp_path):
    with client.websocket_connect(LIVE) as socket:
        first = submit(client)
        watch(socket, status("painting"))
        (tmp_path / first / "run.json").touch()  # or its name would be free for the next
        act(client, first, "resume")
        watch(socket, status("finished"))
        second = submit(client)
        watch(socket, lambda m: status("painting")(m) and m["job"]["id"] == second)
        assert act(client, first, "steer", settings=SETTINGS).status_code == 409


def test_a_painter_that_dies_is_a_message_and_the_next_run_goes_on(client):
    with client.websocket_connect(LIVE) as socket:
        first, second = submit(client), submit(client)
        watch(socket, status("painting"))
        act(client, first, "snapshot")
        failed = watch(socket, lambda m: m["type"] == "state" and m["message"] is not None)[-1]
        assert "was killed, perhaps for want of memory" in failed["message"]["error"]
        watch(socket, lambda m: status("painting")(m) and m["job"]["id"] == second)
    assert client.get("/api/form").status_code == 200


def test_a_refused_wish_is_told_beside_its_control(client):
    with client.websocket_connect(LIVE) as socket:
        id = submit(client)
        watch(socket, status("painting"))
        assert act(client, id, "steer", settings=SETTINGS | {"size": 3}).status_code == 202
        told = watch(socket, lambda m: m["type"] == "state" and m["message"])[-1]
        assert told["message"] == {"error": "size=3 is too small", "key": "size"}
        assert told["job"]["status"] == "painting"
        assert act(client, id, "steer", settings={"size": "x"}).status_code == 400


@pytest.mark.parametrize(
    "action", ["pause", "resume", "stop", "snapshot", "undo", "steer", "cancel"]
)
def test_what_cannot_be_done_to_a_run_that_is_not_there(client, action):
    body = {"moment": 1, "settings": {}}
    assert act(client, "2026-01-01_00-00-00", action, **body).status_code == 409


def test_actions_that_there_are_not(client):
    with client.websocket_connect(LIVE) as socket:
        id = submit(client)
        watch(socket, status("painting"))
        assert act(client, id, "explode").status_code == 404
        for moment in (None, "1", True, [1]):
            assert act(client, id, "undo", moment=moment).status_code == 400


def test_a_new_page_sees_what_the_others_see(client):
    with client.websocket_connect(LIVE) as first:
        id = submit(client)
        watch(first, lambda message: message["type"] == "picture")
        with client.websocket_connect(LIVE) as second:
            seen = watch(second, lambda message: message["type"] == "picture")
            assert seen[0]["job"]["id"] == id
            assert seen[-1]["bytes"] == JPEG
        act(client, id, "pause")
        assert watch(first, status("paused"))  # a page that goes takes nothing with it


def test_too_many_pages(client, monkeypatch):
    monkeypatch.setattr(viewer, "MOST", 1)
    with (
        client.websocket_connect(LIVE),
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect(LIVE),
    ):
        pass
    with client.websocket_connect(LIVE) as socket:
        assert socket.receive_json()["type"] == "state"


def test_a_page_that_takes_nothing_holds_the_latest_alone(client, monkeypatch):
    monkeypatch.setattr(viewer, "MOST_STEPS", 50)

    async def fill():
        slow = Viewer()
        for number in range(1000):
            slow.tell({"type": "state", "n": number})
            slow.report({"job": "a", "step": number, "history": [[number, {}]]})
            slow.show(bytes([number % 256]) * 1000)
        return await slow.next()

    state, report, picture = client.portal.call(fill)
    assert '"n": 999' in state
    assert '"step": 999' in report
    assert len(report) < 2000
    assert picture == bytes([999 % 256]) * 1000


def test_many_requests_pile_nothing_up(client):
    """The queue is bounded, and the server answers all the while."""
    answers = [client.post("/api/jobs", json={"settings": SETTINGS}).status_code for _ in range(20)]
    assert answers.count(202) <= desk.MOST + 1
    assert set(answers) == {202, 429}
    assert {client.get("/api/nothing").status_code for _ in range(100)} == {404}
    assert client.get("/api/form").status_code == 200


def test_the_end_leaves_no_empty_folder(tmp_path):
    with opened(tmp_path) as client, client.websocket_connect(LIVE) as socket:
        submit(client)
        submit(client)
        watch(socket, status("painting"))
    assert [path.name for path in tmp_path.iterdir()] == []


def test_the_folder_may_vanish(client, tmp_path):
    with client.websocket_connect(LIVE) as socket:
        id = submit(client)
        watch(socket, status("painting"))
        shutil.rmtree(tmp_path / id)
        act(client, id, "stop")
        watch(socket, lambda m: status("stopped", "failed")(m))
    assert client.get("/api/runs").json() == []
