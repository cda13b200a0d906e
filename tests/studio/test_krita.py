"""What the plug-ins for Krita and Blender share, which talks to the studio."""

import importlib.util
import io
import json
from types import SimpleNamespace

import pytest
from films.film_files import make
from helpers import ROOT, picture
from PIL import Image
from studio.studios import ADDRESS, PORT, TOKEN, Process, bytes_of, opened, submit

FILE = ROOT / "integrations" / "krita" / "styletransfer_krita" / "studio.py"
HERE = f" {ADDRESS}/?token={TOKEN}\n"


def png(color, width=48, height=32):
    """Return the bytes of a PNG whose left half is transparent."""
    image = Image.new("RGBA", (width, height), color)
    image.paste((0, 0, 0, 0), (0, 0, width // 2, height))
    return bytes_of(image)


LAYER, STYLE = ("Layer é", png("orange")), ("mosaic.png", png("blue"))


def loaded():
    """Return the module as Krita's Python loads it: a file outside of the package."""
    spec = importlib.util.spec_from_file_location("krita_studio", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def client(tmp_path):
    with opened(tmp_path) as client:
        yield client


@pytest.fixture
def plugin(client, monkeypatch):
    """Return the module; its requests go to the test client, with their own headers alone."""

    class Connection:
        def __init__(self, host, timeout):
            if host != f"127.0.0.1:{PORT}":
                raise ConnectionRefusedError

        def request(self, method, path, body, headers):
            said = client.request(method, path, content=body, headers=headers)
            self.answer = SimpleNamespace(status=said.status_code, read=lambda: said.content)

        def getresponse(self):
            return self.answer

        def close(self):
            pass

    module = loaded()
    monkeypatch.setattr(module, "HTTPConnection", Connection)
    return module


def test_a_wrong_address_or_token_is_told(plugin):
    elsewhere = HERE.replace(str(PORT), "1")
    for address in (elsewhere, "", "studio", "http://127.0.0.1:x/?token=y", "http://[/?token="):
        with pytest.raises(plugin.AddressError, match="No studio answers"):
            plugin.paint(address, LAYER, STYLE, 48, lambda percent: False)
    for token in ("", "wrong"):
        with pytest.raises(plugin.AddressError, match="another token"):
            plugin.paint(f"{ADDRESS}/?token={token}", LAYER, STYLE, 48, lambda percent: False)


def test_what_the_studio_refuses_is_told(plugin):
    for style, size, said in (("a.jpg", b"text"), 48, "a.jpg is damaged"), (STYLE, 2, "too small"):
        with pytest.raises(RuntimeError, match=said):
            plugin.paint(HERE, LAYER, style, size, lambda percent: False)


def stop_at(wanted, told):
    """Return a `tell` that appends to `told` and stops at a percentage."""

    def tell(percent):
        told.append(percent)
        assert len(told) < 300, "it was stopped in vain"
        return percent >= wanted

    return tell


def test_a_stop_before_the_start_leaves_the_queue(plugin, client):
    first = submit(client)
    assert plugin.paint(HERE, LAYER, STYLE, 48, stop_at(0, [])) is None
    assert client.get(f"/api/queue/{first}").json()["status"] in ("starting", "painting")
    names = [picture["name"] for picture in client.get("/api/pictures").json()]
    assert names[-2:] == ["Layer é", "mosaic.png"]


def test_it_tells_how_far_a_run_is(plugin):
    told = []
    with pytest.raises(RuntimeError, match="there is no such run"):  # the fake one has no picture
        plugin.paint(HERE, LAYER, STYLE, 48, stop_at(50, told))
    assert set(told) <= {0, 50}


@pytest.mark.slow
def test_a_pair_is_sent_as_painting_and_photograph(plugin, client, monkeypatch):
    ask, asked = plugin._ask, {}
    monkeypatch.setattr(
        plugin, "_ask", lambda *given: asked.update({given[1]: given[2:]}) or ask(*given)
    )
    submit(client)  # so that the next run waits in the queue
    colors = {"content": "red", "style": "green", "style_source": "blue"}
    pictures = [(key, bytes_of(Image.new("RGB", (48, 32), color))) for key, color in colors.items()]
    assert plugin.paint(HERE, *pictures[:2], 48, lambda percent: True, pictures[2]) is None
    settings = json.loads(asked["/api/queue"][0])["settings"]
    names = {picture["id"]: picture["name"] for picture in client.get("/api/pictures").json()}
    assert [names[settings[key]] for key in colors] == [*colors]


@pytest.mark.slow
def test_a_film_is_sent_with_frames_and_paintings(plugin, client, tmp_path, monkeypatch):
    ask, asked = plugin._ask, {}
    monkeypatch.setattr(
        plugin, "_ask", lambda *given: asked.update({given[1]: given[2:]}) or ask(*given)
    )
    film = make(tmp_path / "walk.mp4", [picture(seed, 32, 48) for seed in range(4)])
    painted = [bytes_of(Image.new("RGB", (48, 32), color)) for color in ("red", "green")]
    paintings = {0.05: ("é.png", painted[0]), 0.25: ("b.png", painted[1])}
    submit(client)  # so that the next run waits in the queue
    given = HERE, ("walk é.mp4", film.read_bytes()), paintings, 48, lambda percent: True
    assert plugin.paint_film(*given) is None
    settings = json.loads(asked["/api/queue"][0])["settings"]
    names = {picture["id"]: picture["name"] for picture in client.get("/api/pictures").json()}
    assert names[settings["content"]] == "walk é.mp4"
    assert [names[id] for id in settings["style"]] == ["é.png", "b.png"]
    times = "0.050000s", "0.250000s"
    assert settings["style_source"] == [f"{settings['content']}:{time}" for time in times]


@pytest.mark.slow
def test_a_layer_comes_back_painted_and_as_transparent(tmp_path):
    studio, plugin = Process(tmp_path, "open=false"), loaded()
    try:
        for is_enough in (lambda percent: False, lambda percent: percent > 0):
            picture = plugin.paint(studio.address, LAYER, STYLE, 48, is_enough)
            with Image.open(io.BytesIO(picture)) as image:
                assert (image.format, image.size) == ("PNG", (48, 32))
                alpha = image.convert("RGBA").getchannel("A")
            assert alpha.crop((0, 0, 22, 32)).getextrema() == (0, 0)
            assert alpha.crop((26, 0, 48, 32)).getextrema() == (255, 255)
        runs = [run["id"] for run in studio.client.get("/api/runs").json()]
        known = [studio.client.get(f"/api/queue/{id}").json()["status"] for id in runs]
        assert known == ["stopped", "finished"]  # the last one, and one on disk
    finally:
        studio.close()
