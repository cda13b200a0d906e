"""Runs on disk: what Delete removes, links in the studio's folder, and damaged records."""

import json
import math

import pytest
from helpers import composed, files_in
from PIL import Image
from studio.studios import opened

from styletransfer.runs import recipe
from styletransfer.studio.runs import FILM, WRITTEN


@pytest.fixture
def client(tmp_path):
    with opened(tmp_path / "studio") as client:
        yield client


@pytest.fixture
def root(tmp_path):
    (tmp_path / "studio").mkdir()
    return tmp_path / "studio"


def make_run(folder, picture="pastiche.tiff", **settings):
    """Write the folder of a finished run with all files that runs make; return it."""
    for name in WRITTEN:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("made by the run")
    (folder / ".lock").unlink()
    for name in ("pastiche.png", "content_resized.png"):
        Image.new("RGB", (32, 24), "teal").save(folder / name)
    config = recipe.settings(composed("train")) | settings
    record = {"status": "finished", "picture": str(folder / picture), "config": config}
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def delete(client, id):
    return client.post(f"/api/runs/{id}/delete")


@pytest.mark.parametrize("picture", ["pastiche.tiff", "mine.png", FILM])
def test_delete_removes_all_that_the_run_has_made(picture, root, client):
    folder = make_run(root / "a", picture)
    (folder / picture).write_text("made by the run")
    (folder / ".0123456789abcdef.tmp").write_text("of a killed run")
    answer = delete(client, "a")
    assert (answer.status_code, answer.json()) == (200, {"id": "a", "kept": []})
    assert not folder.exists()
    assert client.get("/api/runs").json() == []


def test_delete_leaves_what_the_run_has_not_made(root, client):
    folder = make_run(root / "a")
    mine = ["retouched.psd", "pastiche2.png", ".notes", ".hydra/mine.yaml", "print/a.pdf"]
    for name in mine:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("mine")
    assert delete(client, "a").json()["kept"] == [
        ".hydra",
        ".notes",
        "pastiche2.png",
        "print",
        mine[0],
    ]
    assert sorted(files_in(folder)) == sorted([*mine[:3], *mine[3:]])
    assert client.get("/api/runs").json() == []


def test_delete_leaves_an_output_elsewhere(root, client, tmp_path):
    make_run(root / "a", "../../elsewhere.png")
    (tmp_path / "elsewhere.png").write_text("the finished picture")
    assert delete(client, "a").status_code == 200
    assert (tmp_path / "elsewhere.png").exists()


def test_what_cannot_be_deleted_is_told(root, client):
    folder = make_run(root / "a")
    (folder / "metrics.jsonl").unlink()
    (folder / "metrics.jsonl").mkdir()
    answer = delete(client, "a")
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(f"cannot delete {folder / 'metrics.jsonl'}: ")
    assert [run["id"] for run in client.get("/api/runs").json()] == ["a"]


@pytest.mark.slow
def test_a_run_that_is_a_link_is_not_deleted(root, client, tmp_path):
    elsewhere = make_run(tmp_path / "elsewhere")
    before = files_in(elsewhere)
    (root / "a").symlink_to(elsewhere)
    answer = delete(client, "a")
    assert answer.status_code == 409
    assert "a links to a folder elsewhere; remove the link by hand" in answer.json()["error"]
    assert files_in(elsewhere) == before


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("film", FILM),
        ("picture", "pastiche.png"),
        ("download", "pastiche.png"),
        ("content", "content_resized.png"),
    ],
)
def test_a_part_of_a_run_that_links_elsewhere_is_not_served(part, name, root, client, tmp_path):
    folder = make_run(root / "a")
    assert client.get(f"/api/runs/a/{part}").status_code == 200
    Image.new("RGB", (32, 24), "red").save(tmp_path / "secret.png")
    (folder / name).unlink()
    assert client.get(f"/api/runs/a/{part}").status_code == 404
    (folder / name).symlink_to(tmp_path / "secret.png")
    assert client.get(f"/api/runs/a/{part}").status_code == 404


def test_an_upload_that_links_elsewhere_is_not_served(root, tmp_path):
    Image.new("RGB", (32, 24), "red").save(tmp_path / "secret.png")
    (root / "pictures").mkdir()
    (root / "pictures" / ("1" * 32)).symlink_to(tmp_path / "secret.png")
    note = {"name": "a.png", "width": 32, "height": 24}
    (root / "pictures" / f"{'1' * 32}.json").write_text(json.dumps(note))
    (root / "pictures" / ".mine.upload").write_text("a file of somebody")
    with opened(root) as client:
        assert client.get(f"/api/pictures/{'1' * 32}").status_code == 404
    assert (root / "pictures" / ".mine.upload").exists()


def test_damaged_notes_of_uploads_are_passed_over(root):
    (root / "pictures").mkdir()
    notes = ["", "[]", "{", '{"name": 1}', '{"name": "a", "width": 1e999, "height": 1}']
    notes.append('{"name": "a", "width": 9, "height": 9, "frames": []}')
    for number, note in enumerate(notes):
        (root / "pictures" / (str(number) * 32)).write_bytes(b"x")
        (root / "pictures" / (str(number) * 32 + ".json")).write_text(note)
    with opened(root) as client:
        kinds = {one["kind"] for one in client.get("/api/pictures").json()}
    assert kinds == {"content", "style"}


@pytest.mark.parametrize("value", ["\ud800", math.nan, math.inf])
def test_a_record_with_any_text_or_number_is_shown(value, root, client):
    make_run(root / "a", color=value, size=value)
    answer = client.get("/api/runs")
    assert answer.status_code == 200
    assert [run["id"] for run in answer.json()] == ["a"]
