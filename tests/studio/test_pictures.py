"""Uploads: the files kept, their names, and the uploads that are refused early."""

import asyncio
import io
import json
import re
import shlex
import threading

import pytest
import torch
from helpers import ROOT, needs
from PIL import Image
from studio.studios import ADDRESS, PORT, TOKEN, act, bytes_of, opened, submit

from styletransfer.formats import decode
from styletransfer.networks.apply.painter import Painter
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.pictures import images
from styletransfer.pictures.convert import as_picture
from styletransfer.settings import ASSETS
from styletransfer.studio import access, pictures, reader
from styletransfer.system.files import sha256


def photo(seed=0, height=24, width=32):
    return bytes_of(Image.new("RGB", (width, height), (seed % 256, 80, 120)))


def upload(client, data, name="photo.png", purpose="style"):
    return client.post("/api/pictures", params={"name": name, "purpose": purpose}, content=data)


def sketch(client, **settings):
    return client.get("/api/look", params={"settings": json.dumps(settings)})


def left(folder):
    """Return the sorted names of the files in the upload folder."""
    uploads = folder / "pictures"
    return sorted(path.name for path in uploads.iterdir()) if uploads.is_dir() else []


def test_bundled_pictures_come_first(client):
    entries = client.get("/api/pictures").json()
    assert {"content-coffee", "style-oil"} <= {entry["id"] for entry in entries}
    assert [entry["kind"] for entry in entries] == sorted(entry["kind"] for entry in entries)
    fields = {"id", "name", "width", "height", "kind", "purpose", "frames", "origin"}
    assert all(set(entry) == fields for entry in entries)


def test_each_bundled_painting_has_its_origin(client):
    entries = {entry["id"]: entry for entry in client.get("/api/pictures").json()}
    listed = (ROOT / "assets" / "README.md").read_text(encoding="utf-8")
    paintings = sorted((ASSETS / "paintings").glob("*.jpg"))
    assert len(paintings) == 18
    for path in paintings:
        entry = entries[f"style-{path.stem}"]
        artist, *_, technique = entry["origin"].split(", ")
        assert re.search(f"`{path.name}` . {artist}.*{technique}", listed)
        assert min(entry["width"], entry["height"]) >= 340
    assert sum(bool(entry["origin"]) for entry in entries.values()) == len(paintings)


def test_an_upload_is_kept_by_its_bytes_and_shown_small(client, folder):
    data = photo(1, 300, 400)
    first = upload(client, data, "été.png").json()
    size = {"width": 400, "height": 300, "frames": 0, "origin": ""}
    said = {"id": first["id"], "name": "été.png", "kind": "upload", "purpose": "style"}
    assert first == said | size
    assert upload(client, data, purpose="output").status_code == 400
    assert upload(client, data, "another name.png").json() == first
    assert (folder / "pictures" / first["id"]).read_bytes() == data
    small = client.get(f"/api/pictures/{first['id']}", params={"side": 200})
    assert small.headers["content-type"] == "image/jpeg"
    with Image.open(io.BytesIO(small.content)) as image:
        assert max(image.size) == 320
        red, green, blue = image.getpixel((5, 5))
        assert abs(red - 1) + abs(green - 80) + abs(blue - 120) < 12
    with opened(folder) as restarted:
        assert first in restarted.get("/api/pictures").json()
        assert restarted.post(f"/api/pictures/{first['id']}/delete").status_code == 200
    assert "immutable" in small.headers["cache-control"]  # lets the browser cache the picture


@pytest.mark.slow
def test_an_upload_is_decoded_once(client, folder, monkeypatch):
    read, seen = images.read, []
    monkeypatch.setattr(images, "read", lambda path: seen.append(path) or read(path))
    id = upload(client, photo(33, 30, 40)).json()["id"]
    for side in (160, 320, 2048):
        assert client.get(f"/api/pictures/{id}?side={side}").status_code == 200
    with opened(folder) as restarted:
        assert restarted.get(f"/api/pictures/{id}?side=320").status_code == 200
        assert sketch(restarted, content=id).status_code == 200
    assert len([path for path in seen if str(path).endswith(id)]) == 1


def test_a_link_in_place_of_a_small_picture_is_not_followed(client, folder, tmp_path):
    (tmp_path / "mine.jpg").write_bytes(b"mine")
    id = upload(client, photo(60)).json()["id"]
    small = folder / "pictures" / f".{id}.320.jpg"
    small.unlink()
    small.symlink_to(tmp_path / "mine.jpg")
    answer = client.get(f"/api/pictures/{id}?side=320")
    assert (answer.status_code, answer.content[:2]) == (200, b"\xff\xd8")
    assert (tmp_path / "mine.jpg").read_bytes() == b"mine"


def test_small_pictures_are_there_while_they_are_made_again(tmp_path, monkeypatch):
    path, save = tmp_path / "photo.png", Image.Image.save
    images.write(path, torch.rand(1, 3, 8, 8))
    reader.copy(path)

    def watched(image, *args, **options):
        assert reader.is_copied(path)
        return save(image, *args, **options)

    monkeypatch.setattr(Image.Image, "save", watched)
    reader.copy(path)


@pytest.mark.slow
def test_uploads_and_the_stage_overtake_tiles(client, monkeypatch):
    """Check which requests of the reader do not wait for others: a newcomer waits for these."""
    ask, overtaking = reader.Reader.ask, {}

    async def noted(self, function, *arguments, first=False):
        side = arguments[1] if function is reader.look else None
        overtaking[function.__name__, side] = first
        return await ask(self, function, *arguments, first=first)

    monkeypatch.setattr(reader.Reader, "ask", noted)
    id = upload(client, photo(61)).json()["id"]
    for side in (256, 2048):
        asked = {"settings": json.dumps({"content": id}), "side": side}
        client.get("/api/look", params=asked)
    wanted = {("copy", None): True, ("recipe", None): True, ("look", 256): False}
    assert overtaking == wanted | {("look", reader.LOOK): True}


def test_a_check_overtakes_pictures_that_wait(client):
    """Check the order in which the reader answers; 36 pictures were in the way of one check."""
    gate, done = threading.Event(), []
    reader = client.app.state.studio.reader

    def work(name):
        gate.wait()
        done.append(name)

    async def ask_all():
        waiting = [asyncio.create_task(reader.ask(work, n)) for n in range(9)]
        await asyncio.sleep(0)
        waiting.append(asyncio.create_task(reader.ask(work, "check", first=True)))
        await asyncio.sleep(0.05)
        gate.set()
        await asyncio.gather(*waiting)

    client.portal.call(ask_all)
    assert done.index("check") <= 2
    assert len(done) == 10


def test_the_servers_own_names(client, folder):
    names = {"../../etc/passwd": "passwd", "C:\\photos\\a.png": "a.png", "": "picture"}
    names |= {"a\0b\n<script>.png": "ab<script>.png", "x" * 5000: "x" * 120}
    for seed, (name, shown) in enumerate(names.items()):
        added = upload(client, photo(seed, 40), name).json()
        assert added["name"] == shown
        assert {path.split(".")[0] for path in left(folder)} >= {added["id"]}
    assert all(set(path.split(".")[0]) <= set("0123456789abcdef") for path in left(folder))


def test_an_unreadable_upload_is_refused_as_on_the_command_line(client, folder):
    before = left(folder)
    for data, said in {
        b"This is text.\n" * 9: "in none of the formats JPEG, PNG",
        b"": "is empty",
        photo()[:60]: "photo.png",
    }.items():
        answer = upload(client, data)
        message = answer.json()["error"]
        assert answer.status_code == 422
        assert message.startswith("photo.png ")
        assert said in message
        assert str(folder) not in message
    assert left(folder) == before


def test_too_many_bytes_are_refused_before_they_are_read(client, folder, monkeypatch):
    monkeypatch.setattr(pictures, "LARGEST", 1000)
    before = left(folder)

    def endless():
        for _ in range(1000):
            yield b"x" * 500

    assert client.post("/api/pictures?name=a.png", content=endless()).status_code == 413
    assert left(folder) == before


def test_bodies_that_stop_coming_end_and_hinder_no_other(client, folder, monkeypatch):
    head = {"host": ADDRESS[7:], "origin": ADDRESS, "cookie": f"studio_{PORT}={TOKEN}"}
    scope = {"type": "http", "method": "POST", "path": "/api/pictures", "client": ("127.0.0.1", 1)}
    scope |= {"headers": [(key.encode(), value.encode()) for key, value in head.items()]}
    before = left(folder)

    async def status(body, is_whole):
        answers, parts = [], [{"type": "http.request", "body": body, "more_body": not is_whole}]

        async def receive():
            return parts.pop() if parts else await asyncio.Event().wait()

        async def send(message):
            answers.append(message)

        await client.app(scope | {"query_string": b"name=a.png"}, receive, send)
        return answers[0]["status"]

    async def beside_others():
        others = [asyncio.create_task(status(b"begun", False)) for _ in range(4)]
        statuses = [await status(photo(9), True)]
        monkeypatch.setattr(access, "PATIENCE", 0.01)
        statuses.append(await asyncio.wait_for(status(b"begun", False), 60))
        assert all(other.cancel() for other in others)  # they still wait
        await asyncio.wait(others)
        return statuses

    assert client.portal.call(beside_others) == [200, 408]
    assert len(left(folder)) == len(before) + 4  # the picture, its note and two JPEGs


def test_an_upload_is_removed_unless_a_run_needs_it(tmp_path):
    with opened(tmp_path) as client:
        kept = upload(client, photo(100)).json()["id"]
        _, waiting = submit(client), submit(client, style=[kept])
        address = f"/api/pictures/{kept}/delete"
        assert (client.post(address).status_code, len(left(tmp_path))) == (409, 4)
        act(client, waiting, "cancel")
        assert [client.post(address).status_code for _ in range(2)] == [200, 404]
        assert client.post("/api/pictures/style-oil/delete").status_code == 403
        assert left(tmp_path) == []
        assert upload(client, photo(100)).json()["id"] == kept


def test_a_photograph_of_a_phone_is_read_or_refused_with_advice(client, monkeypatch):
    heif = needs("studio", "pillow_heif")
    file = io.BytesIO()
    heif.from_pillow(Image.new("RGB", (64, 48), "teal")).save(file, quality=90)
    added = upload(client, file.getvalue(), "IMG_1.HEIC").json()
    assert (added["width"], added["height"]) == (64, 48)
    monkeypatch.setattr(decode, "picture_formats", lambda: ("JPEG", "AVIF"))
    refused = upload(client, file.getvalue() + b"x", "IMG_2.HEIC").json()["error"]
    assert refused.startswith("IMG_2.HEIC is a HEIC picture; save it as JPEG, or run: pip install")


@pytest.mark.slow
def test_a_reader_that_dies_is_a_message_and_is_there_again(tmp_path):
    with opened(tmp_path, processes=True) as client:
        added = upload(client, photo(7)).json()
        client.portal.call(reader.kill, client.app.state.studio.reader._pool)
        for _ in range(3):  # the first request finds the dead reader
            answer = client.get(f"/api/pictures/{added['id']}?side=320")
            if answer.status_code == 200:
                break
            assert "has ended; try again" in answer.json()["error"]
        assert answer.status_code == 200


@pytest.mark.slow
def test_a_look_is_what_the_network_for_any_style_paints(client, folder):
    """Check previews in one and several styles, by their shares, and the errors of bad requests."""
    ids = [upload(client, photo(seed, 48, 64)).json()["id"] for seed in (1, 200)]
    content = upload(client, photo(90, 40, 600)).json()["id"]
    paths = [str(folder / "pictures" / id) for id in ids]
    small = torch.tensor([90, 80, 120]).view(1, 3, 1, 1).expand(1, 3, 34, 512) / 255
    one = {"content": content, "style": ids}
    weight, bright = "objective.content_weight", {"color": "content_luminance"}
    seen = []
    for more, same in (
        ({}, {"strength": 0.9}),
        ({"style_weights": [1, 3], weight: 1.8}, {"style_weights": [1.0, 3.0], "strength": 0.45}),
        ({"style_scale": 0.25, weight: 0.018}, {"style_size": 256, "strength": 1.35}),
        (bright | {weight: 0}, bright | {"strength": 1.5}),
    ):
        exact = {"device": "cpu", "precision": "float32", "color": "style_palette"}
        painted = Painter(ApplyConfig(network="any", style=paths, **exact | same)).paint(small)
        made = sketch(client, **one, **more)
        with Image.open(io.BytesIO(made.content)) as image:
            seen.append(as_picture(image, "look").rgb)
        assert (seen[-1] - painted).abs().mean() < 0.02  # JPEG's error
    for wrong in (
        *({"style": few} for few in ([], ids[:1] * 17)),
        *({"style_weights": some} for some in ([1, 2, 3], [0, 0], [-1, 1], ["nan"])),
        {"style_scale": "a"},
        *({weight: one} for one in (None, "a", [])),
        {"content": None},
    ):
        assert sketch(client, **one | wrong).status_code in (400, 422), wrong
    assert sketch(client, **one | {"content": "none"}).status_code == 404
    assert sketch(client, **one | {"content": "\ud800"}).status_code == 400
    for text in ("", "[]", "{"):
        assert client.get("/api/look", params={"settings": text}).status_code == 400


def test_a_pastiche_brings_back_what_the_page_knows(client, folder, tmp_path):
    """Check settings, and inputs by their hashes; a stranger's text is checked, never resolved."""
    mine = upload(client, photo(5, 40, 40)).json()["id"]
    hashes = {"content": [sha256(ASSETS / "content" / "rocket.jpg")], "protect": ["1" * 64]}
    hashes |= {"style": [sha256(folder / "pictures" / mine)], "features.weights": ["2" * 64]}

    def carried(*words):
        recipe = {"command": shlex.join(["styletransfer", *words])}
        recipe |= {f"sha256 of {key}": " ".join(each) for key, each in hashes.items()}
        xmp = images.xmp_of(json.dumps(recipe))
        images.write(tmp_path / "a.png", torch.zeros(1, 3, 40, 40), xmp=xmp)
        return upload(client, (tmp_path / "a.png").read_bytes()).json().get("recipe")

    words = ["content=rocket.jpg", "size=300", "++region_styles={red:1}", "style_scale=[1,2]"]
    told = carried("train", *words, "objective.content_layers=[relu3_2]", "optimizer.name=adam")
    inputs = {"content": "content-rocket", "style": [mine]}
    layers = {"objective.content_layers": "relu3_2"}
    assert told["settings"] == inputs | layers | {"size": 300, "style_scale": [1, 2]}
    assert told["lost"] == ["optimizer.name", "protect", "region_styles"]
    told = carried("train", "size=many", "color=blue", "steps=[1]", "protect=/etc/passwd")
    assert told == {"settings": inputs, "lost": ["color", "protect", "size", "steps"]}
    for word in ("size=${oc.env:HOME}", "output=/etc/passwd", f"scales={'[' * 900}", "~size"):
        assert carried("train", word) is None
    assert carried("apply", "style=oil.jpg") is None
    hashes["content"] *= 65
    assert carried("train")["settings"] == {"style": [mine]}
