"""A style that is a painting of a photograph: the check, and a film after a painted frame."""

import shlex

import pytest
from films.film_files import make
from helpers import picture
from PIL import Image, ImageOps
from studio.studios import opened, runner, sent, status, watch

from styletransfer.films.read import Film
from styletransfer.settings import ASSETS, each
from styletransfer.studio.form import recalled
from styletransfer.system.files import sha256


def bundled(name, size=(120, 80)):
    with Image.open(ASSETS / "content" / f"{name}.jpg") as image:
        return image.convert("RGB").resize(size)


@pytest.fixture(scope="module")
def pair(client):
    """Return the settings of a photograph and its painting, in two tones, for another one."""
    photo = bundled("coffee")
    painting = ImageOps.colorize(
        photo.convert("L").point(lambda level: level // 64 * 64), "navy", "red"
    )
    ids = {"style_source": sent(client, photo, "photo.png"), "style": [sent(client, painting)]}
    return {"content": "content-rocket", "size": 64} | ids


def check(client, **settings):
    answer = client.post("/api/check", json={"settings": settings})
    return answer.status_code, answer.json()


def test_a_pair_is_painted_by_its_preset(client, pair):
    code, told = check(client, **pair, steps=7, **{"objective.content_weight": 2.0})
    assert (code, told["warning"]) == (200, None)
    _, name, *words = shlex.split(told["command"])
    assert name == "train"
    keys = [word.partition("=")[0] for word in words]
    assert keys == ["content", "size", "style_source", "style"]  # others do not act, and are hidden


@pytest.mark.slow
def test_a_pair_that_does_not_fit_is_told(client, pair):
    other = sent(client, ImageOps.mirror(bundled("astronaut")))
    code, told = check(client, **pair | {"style_source": other})
    assert code == 200
    assert "different things" in told["warning"]
    long = sent(client, bundled("coffee", (120, 60)), "long.png")
    margins = Image.new("RGBA", (120, 80))
    margins.paste(bundled("coffee", (100, 70)), (0, 0))
    for changed, words in (
        ({"style_source": long}, "120 x 60 pixels and its picture 120 x 80"),
        ({"style_source": pair["style"][0]}, "not"),
        ({"style": [sent(client, margins, "cut out.png")]}, "transparent margins"),
    ):
        code, told = check(client, **pair | changed)
        assert (code, told["key"]) == (422, "style_source")
        assert words in told["error"]


def test_a_pastiche_of_a_pair_brings_the_pair_back(client, pair):
    """Check that values of its preset, which do not act here, neither come back nor are missed."""
    shelf = client.app.state.studio.pictures
    hashes = {key: [sha256(shelf.find(*each(pair[key])).path)] for key in ("style_source", "style")}
    recipe = {"size": 64, "steps": 5, "objective.content_weight": 0.0}, hashes
    ids = {key: pair[key] for key in ("size", "style_source", "style")}
    assert recalled(recipe, shelf) == {"settings": ids, "lost": []}


@pytest.mark.slow
def test_a_film_is_painted_as_two_frames_were(tmp_path):
    """One frame is a picture of its own, the other is told by its time."""
    make(tmp_path / "walk.mp4", [picture(seed // 2, 48, 64) for seed in range(3)])
    with opened(tmp_path, runner.main) as client:
        name = "/api/pictures?name=walk.mp4&purpose=content"
        film = client.post(name, content=(tmp_path / "walk.mp4").read_bytes()).json()["id"]
        with Film(tmp_path / "walk.mp4") as frames:
            data = [(one.image[0].permute(1, 2, 0) * 255).byte().numpy() for one in frames.frames()]
        first, last = (Image.fromarray(data[number]) for number in (0, -1))
        ids = {"style_source": [sent(client, first), f"{film}:0.25s"]}
        ids["style"] = [sent(client, ImageOps.invert(one)) for one in (first, last)]
        settings = {"content": film, "size": 64} | ids
        with client.websocket_connect("ws://127.0.0.1:8000/live") as socket:
            id = client.post("/api/queue", json={"settings": settings}).json()["id"]
            seen = watch(socket, status("finished", "failed", id=id))
        [run] = client.get("/api/runs").json()
        assert (run["kind"], run["status"], run["step"]) == ("film", "finished", 3), seen[-1]
        assert run["settings"] == settings
        assert shlex.split(run["command"])[:2] == ["styletransfer", "film"]
        assert run["command"] == check(client, **settings)[1]["command"]
        answer = client.get(f"/api/runs/{id}/film")
        (tmp_path / "painted.mp4").write_bytes(answer.content)
        with Film(tmp_path / "painted.mp4") as painted:
            images = [frame.image for frame in painted.frames()]
        assert len(images) == 3
        for image, frame in zip((images[0], images[-1]), (data[0], data[-1]), strict=True):
            shown = image[0].permute(1, 2, 0).numpy()
            assert abs(shown - (1 - frame / 255)).mean() < 0.05  # the inverted frame, compressed
        assert client.post(f"/api/runs/{id}/delete", json={}).json()["kept"] == []
