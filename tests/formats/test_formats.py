"""File names: the files of a folder that are pictures, and those that are ignored."""

from pathlib import Path

from helpers import needs
from PIL import Image

from styletransfer.formats.folders import in_folder, picture_extensions
from styletransfer.pictures import images


def test_every_listed_extension_can_be_read():
    known = Image.registered_extensions()
    assert {known[extension] for extension in picture_extensions()} <= {*Image.OPEN}
    usual = ".jpg .jpeg .png .webp .tif .tiff .bmp .gif .avif"
    assert {*usual.split()} <= {*picture_extensions()}


def test_heic_of_a_folder_is_read_if_the_plugin_is_installed(tmp_path):
    heif = needs("studio", "pillow_heif")
    heif.from_pillow(Image.new("RGB", (16, 16), "teal")).save(tmp_path / "a.HEIC")
    (name,) = in_folder(tmp_path)
    assert images.read(name).size == (16, 16)


def test_hidden_files_of_a_folder_are_passed_over(tmp_path, caplog):
    Image.new("RGB", (16, 16), "teal").save(tmp_path / "a.png")
    for name in ("._a.png", ".hidden.jpg", "._", ".DS_Store"):
        (tmp_path / name).write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X")
    assert [Path(name).name for name in in_folder(tmp_path)] == ["a.png"]
    assert not caplog.records


def test_other_files_of_a_folder_are_named_once(tmp_path, caplog, monkeypatch):
    for name in ("b.PNG", "a.avif", ".hidden", "notes.txt", "c.heic", *"23456"):
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    monkeypatch.setattr(
        "styletransfer.formats.folders.picture_extensions", lambda: (".avif", ".png")
    )
    for _ in range(2):
        assert [Path(name).name for name in in_folder(tmp_path)] == ["a.avif", "b.PNG"]
    (record,) = caplog.records
    others = "passed over 2, 3, 4, 5, 6 and 2 more"
    assert record.getMessage() == f"{tmp_path}: {others}"
