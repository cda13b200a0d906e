"""Films in the studio: uploads, previews, painting by a style network, and playback."""

import io
import json
import shlex

import pytest
from films.film_files import make
from helpers import picture
from PIL import Image
from studio.studios import act, opened, runner, sent, status, watch

from styletransfer.cli.hydrated import run_command
from styletransfer.films.read import Film
from styletransfer.settings.registry import commands
from styletransfer.studio import pictures

TINY = {"size": 48, "steps": 2, "scales": 1}


@pytest.fixture(scope="module")
def client(folder):
    with opened(folder, runner.main) as client:
        yield client


@pytest.fixture(scope="module")
def film(client, tmp_path_factory):
    """Return the id of an uploaded film of four 32 x 48 frames with a sound track."""
    path = tmp_path_factory.mktemp("film") / "walk.mp4"
    make(path, [picture(seed, 32, 48) for seed in range(4)], sound=("aac",))
    sent = client.post(
        "/api/pictures?name=walk.MP4&purpose=content", content=path.read_bytes()
    ).json()
    assert (sent["name"], sent["width"], sent["height"]) == ("walk.MP4", 48, 32)
    return sent["id"]


def frames(data, path):
    path.write_bytes(data)
    with Film(path) as film, film.opened() as container:
        return [frame.image for frame in film.frames()], len(container.streams.audio)


@pytest.mark.slow
def test_a_films_command_makes_the_same_film(client, socket, film, tmp_path):
    style = sent(client, Image.radial_gradient("L").convert("RGB"))
    settings = {**TINY, "content": film, "style": [style], "objective.content_weight": 0.5}
    told = client.post("/api/check", json={"settings": settings}).json()
    asked = client.post("/api/queue", json={"settings": settings})
    id = asked.json()["id"]
    seen = watch(socket, status("finished", "failed", id=id))
    assert seen[-1]["current"]["status"] == "finished", seen[-1]["message"]
    steps = [one["step"] for one in seen if one["type"] == "progress" and one["id"] == id]
    # A page may miss messages of progress, the last one too; the state tells it as well.
    assert (steps, seen[-1]["current"]["step"]) == (sorted(steps), 4)
    run = next(run for run in client.get("/api/runs").json() if run["id"] == id)
    for key in ("steps", "scales"):  # a style network has no such settings
        del settings[key]
    assert (run["kind"], run["status"], run["settings"]) == ("film", "finished", settings)
    assert run["command"] == told["command"]
    assert " input=/" in run["command"]  # a path without special characters is not quoted
    answer = client.get(f"/api/runs/{id}/film", headers={"range": "bytes=0-99"})
    assert (answer.status_code, len(answer.content)) == (206, 100)
    painted, tracks = frames(client.get(f"/api/runs/{id}/film").content, tmp_path / "a.mp4")
    assert (len(painted), tracks) == (4, 1)
    for part, size in (("picture", (48, 32)), ("content", (48, 32))):
        with Image.open(io.BytesIO(client.get(f"/api/runs/{id}/{part}").content)) as image:
            assert image.size == size
    _, name, *words = shlex.split(run["command"])
    assert name == "apply"
    run_command(commands()[name], [*words, f"output={tmp_path}/b.mp4"])
    again, _ = frames((tmp_path / "b.mp4").read_bytes(), tmp_path / "c.mp4")
    assert all((one == other).all() for one, other in zip(painted, again, strict=True))


@pytest.mark.slow
def test_a_stop_keeps_the_frames_that_there_are(client, socket, film, monkeypatch):
    id = client.post("/api/queue", json={"settings": {**TINY, "content": film}}).json()["id"]
    act(client, id, "pause")
    watch(socket, status("paused", id=id))
    act(client, id, "stop")
    watch(socket, status("stopped", id=id))
    run = next(run for run in client.get("/api/runs").json() if run["id"] == id)
    assert (run["status"], run["kind"], run["step"]) == ("stopped", "film", 1)


@pytest.mark.slow
def test_what_a_film_cannot_have_is_told_before_it_is_painted(client, film):
    acting = {"content": film, "size": 48}
    plain = client.post("/api/check", json={"settings": acting}).json()
    others = {**TINY, "protect": "style-oil", "style_rotation": 90}
    assert client.post("/api/check", json={"settings": acting | others}).json() == plain
    refused = client.post("/api/check", json={"settings": acting | {"size": 10**6}})
    assert (refused.status_code, "choose size=" in refused.json()["error"]) == (422, True)
    playlist = client.post("/api/pictures?name=a.mp4", content=b"#EXTM3U\nfile:/etc/passwd\n" * 9)
    assert "is a playlist" in playlist.json()["error"]


@pytest.mark.slow
def test_a_film_is_seen_as_its_first_frame_and_is_no_style(client, film, monkeypatch):
    assert client.get(f"/api/pictures/{film}?side=160").headers["content-type"] == "image/jpeg"
    asked = json.dumps({"content": film, "style": ["style-mosaic"]})
    look = client.get("/api/look", params={"settings": asked})
    assert look.headers["content-type"] == "image/jpeg"
    refused = client.post("/api/check", json={"settings": {"style": [film]}})
    assert refused.json() == {
        "error": "style takes a picture, and walk.MP4 is a film",
        "key": "style",
    }
    broken = client.post("/api/pictures?name=a.mp4", content=b"no film" * 99)
    assert broken.status_code == 422
    assert "a.mp4 is no film" in broken.json()["error"]
    monkeypatch.setattr(pictures, "LARGEST_FILM", 10)
    assert client.post("/api/pictures?name=a.mp4", content=b"x" * 11).status_code == 413


@pytest.mark.slow
def test_a_frame_is_told_by_its_time(client, film):
    """What is no frame, no film or no time is refused in one line."""
    address = f"/api/pictures/{film}"
    with Image.open(io.BytesIO(client.get(f"{address}/frame?at=0.05").content)) as image:
        assert (image.format, image.size) == ("PNG", (48, 32))
    assert client.get(f"{address}/film", headers={"range": "bytes=0-9"}).status_code == 206
    for path, code, words in (
        (f"{address}/frame?at=1e3", 400, "a time in seconds"),
        (f"{address}/frame?at=99", 422, "the film ends after"),
        (f"{address}/sound", 404, "no such part"),
        ("/api/pictures/style-oil/film", 404, "no such part"),
    ):
        answer = client.get(path)
        assert (answer.status_code, words in answer.json()["error"]) == (code, True)
    for source in (f"{film}:1e3s", f"{film}:5", "style-oil:5s", [[film]], 3):
        settings = {"content": film, "style_source": [source]}
        answer = client.post("/api/check", json={"settings": settings})
        assert (answer.status_code, answer.json()["key"]) == (400, "style_source")
