"""Uploads: what is kept, under which name, and what is refused before it costs anything."""

import io
import json
import struct
import zlib

import pytest
from helpers import picture
from PIL import Image
from studios import opened

from styletransfer.pictures import images
from styletransfer.studio import pictures


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def client(folder):
    with opened(folder) as client:
        yield client


def photo(seed=0, height=24, width=32, kind="PNG"):
    buffer = io.BytesIO()
    red = Image.new("RGB", (width, height), (seed % 256, 80, 120))
    red.save(buffer, kind)
    return buffer.getvalue()


def upload(client, data, name="photo.png"):
    return client.post("/api/pictures", params={"name": name}, content=data)


def left(folder):
    """The files of uploads, without their suffixes."""
    there = folder / "pictures"
    return sorted(path.name for path in there.iterdir()) if there.is_dir() else []


def test_bundled_pictures_come_first(client):
    found = client.get("/api/pictures").json()
    assert {"content-coffee", "style-oil"} <= {entry["id"] for entry in found}
    assert [entry["kind"] for entry in found] == sorted(entry["kind"] for entry in found)
    assert all(set(entry) == {"id", "name", "width", "height", "kind"} for entry in found)


def test_an_upload_is_kept_by_its_bytes_and_shown_small(client, folder):
    data = photo(1, 300, 400)
    first = upload(client, data, "été.png").json()
    assert {**first, "id": ""} == {"id": "", "name": "été.png", "width": 400, "height": 300}
    again = upload(client, data, "another name.png").json()
    assert again["id"] == first["id"]
    assert (folder / "pictures" / first["id"]).read_bytes() == data
    small = client.get(f"/api/pictures/{first['id']}", params={"side": 200})
    assert small.headers["content-type"] == "image/jpeg"
    with Image.open(io.BytesIO(small.content)) as image:
        assert max(image.size) == 160
        red, green, blue = image.getpixel((5, 5))
        assert abs(red - 1) + abs(green - 80) + abs(blue - 120) < 12


def test_uploads_are_there_after_a_restart(client, folder, tmp_path):
    found = upload(client, photo(2)).json()
    with opened(folder) as restarted:
        assert found["id"] in {entry["id"] for entry in restarted.get("/api/pictures").json()}
        assert restarted.get(f"/api/pictures/{found['id']}").status_code == 200


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\photos\\a.png", "a.png"),
        ("", "picture"),
        ("a\0b\n<script>.png", "ab<script>.png"),
        ("x" * 5000, "x" * 120),
    ],
)
def test_the_servers_own_names(client, folder, name, kept):
    found = upload(client, photo(sum(map(ord, kept)) % 200, 40), name).json()
    assert found["name"] == kept
    assert {path.split(".")[0] for path in left(folder)} >= {found["id"]}
    assert all(set(path.split(".")[0]) <= set("0123456789abcdef") for path in left(folder))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"This is text.\n" * 9, "is no JPEG, PNG"),
        (b"", "is empty"),
        (photo()[:60], "photo.png"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is no JPEG, PNG"),
    ],
)
def test_what_is_no_picture_is_refused_in_the_words_of_the_command_line(client, folder, data, said):
    before = left(folder)
    answer = upload(client, data)
    assert answer.status_code == 422
    message = answer.json()["error"]
    assert said in message
    assert message.startswith("photo.png ")
    assert str(folder) not in message
    assert left(folder) == before


def bomb(side):
    """A PNG of a few bytes that says it has side x side pixels."""

    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(1000))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def test_a_picture_that_says_it_is_enormous(client, folder):
    before = left(folder)
    answer = upload(client, bomb(100_000))
    assert answer.status_code == 422
    assert "more than the limit" in answer.json()["error"]
    assert left(folder) == before


def test_too_many_bytes_are_refused_before_they_are_read(client, folder, monkeypatch):
    monkeypatch.setattr(pictures, "LARGEST", 1000)
    before = left(folder)
    answer = client.post(
        "/api/pictures?name=a.png", content=b"", headers={"content-length": str(2**40)}
    )
    assert answer.status_code == 413
    for length in ("9" * 5000, "-1", "1e3", ""):
        headers = {"content-length": length}
        assert client.post("/api/pictures", content=b"", headers=headers).status_code == 413
    assert left(folder) == before


def test_too_many_bytes_of_no_declared_length(client, folder, monkeypatch):
    monkeypatch.setattr(pictures, "LARGEST", 1000)
    before, sent = left(folder), []

    def endless():
        for _ in range(1000):
            sent.append(1)
            yield b"x" * 500

    answer = client.post("/api/pictures?name=a.png", content=endless())
    assert answer.status_code == 413
    assert left(folder) == before


def test_the_number_and_the_bytes_of_all_uploads_are_bounded(tmp_path, monkeypatch):
    with opened(tmp_path) as client:
        assert upload(client, photo(100)).status_code == 200
        monkeypatch.setattr(pictures, "MOST", 1)
        assert upload(client, photo(101)).status_code == 507
        monkeypatch.setattr(pictures, "MOST", 10)
        monkeypatch.setattr(pictures, "TOTAL", 10)
        assert upload(client, photo(102)).status_code == 507
    assert len(left(tmp_path)) == 2


def test_damaged_notes_and_half_uploads_cost_nothing(tmp_path):
    there = tmp_path / "pictures"
    there.mkdir()
    (there / ".0123.upload").write_bytes(b"half")
    (there / "aa.json").write_text("{")
    (there / "bb.json").write_text(json.dumps({"name": "gone", "width": 1, "height": 1}))
    with opened(tmp_path) as client:
        assert {entry["kind"] for entry in client.get("/api/pictures").json()} == {
            "content",
            "style",
        }
    assert not (there / ".0123.upload").exists()


@pytest.mark.parametrize("side", ["-1", "x", "1e9", "9999999999", "", "٣"])
def test_sides_that_are_none(client, side):
    assert client.get("/api/pictures/style-oil", params={"side": side}).status_code in (200, 400)
    assert client.get("/api/pictures/style-oil", params={"side": "-1"}).status_code == 400


def test_a_reader_that_dies_is_a_message_and_is_there_again(client, folder):
    answers = client.app.state.studio.reader
    gone = upload(client, photo(7)).json()
    client.portal.call(answers.worker.kill)
    for _ in range(3):  # the one that died of it, and those after
        answer = client.get(f"/api/pictures/{gone['id']}?side=320")
        if answer.status_code == 200:
            break
        assert "was killed" in answer.json()["error"]
    assert answer.status_code == 200


def test_transparent_and_deep_pictures(client, tmp_path):
    images.write(tmp_path / "deep.png", picture(3), picture(4)[:, :1], bit_depth=16)
    found = upload(client, (tmp_path / "deep.png").read_bytes()).json()
    assert (found["width"], found["height"]) == (20, 16)
    assert client.get(f"/api/pictures/{found['id']}").status_code == 200
