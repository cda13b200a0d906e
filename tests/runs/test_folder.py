"""The files of a recorded run: reading them, and the recipe that decides the result."""

import json

import pytest
import torch
from helpers import check_error, picture, write_pictures

from styletransfer.job.sources import files_read
from styletransfer.pictures import images
from styletransfer.runs import folder as module
from styletransfer.runs.folder import read_run
from styletransfer.runs.recipe import recipe
from styletransfer.runs.record import write_record
from styletransfer.runs.resume import check_recipe
from styletransfer.settings import FeaturesConfig, TrainConfig
from styletransfer.system.files import sha256

RECIPE = {"version": "1", "config": {"size": 32}}
DEEP = "[" * 10**5
GOOD = {"status": "finished", "picture": "/a.png", "seconds": 1, "config": {}}


def test_what_is_recorded_is_read(tmp_path):
    write_record(tmp_path, RECIPE, "finished", tmp_path / "out.png", seconds=1.5)
    run = read_run(tmp_path)
    assert (run.status, run.settings, run.seconds) == ("finished", {"size": 32}, 1.5)
    assert run.output == tmp_path / "out.png"
    assert run.content == tmp_path / "content_resized.png"
    assert run.typed is None
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra/overrides.yaml").write_text("- size=32\n- seed=1\n")
    assert run.typed == ("size=32", "seed=1")
    for text in (DEEP[:1000], "- &a [1]\n- &b [*a, *a]\n" * 9 + "- size=1\n" * 20_000):
        (tmp_path / ".hydra/overrides.yaml").write_text(text)
        assert run.typed is None


def test_a_record_of_more_bytes_than_largest_is_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 200)
    (tmp_path / "run.json").write_text(json.dumps(GOOD) + " " * 300)
    check_error("run.json is damaged", read_run, tmp_path)


def test_a_record_that_cannot_be_written_is_one_line(tmp_path, caplog):
    (tmp_path / "run.json").mkdir()
    write_record(tmp_path, RECIPE, "running", tmp_path / "out.png")
    assert "it is a folder; add a file name; going on without" in caplog.text


def test_a_damaged_record_is_one_line(tmp_path):
    for text in (
        *("", "{", "[]", "{}", DEEP, "\xff\xfe"),
        *(json.dumps(GOOD | {key: 3}) for key in ("picture", "config", "status")),
    ):
        (tmp_path / "run.json").write_bytes(text.encode("latin-1"))
        check_error(r"run\.json is damaged; start afresh", read_run, tmp_path)
    (tmp_path / "run.json").write_text(json.dumps(GOOD | {"seconds": "3"}))
    assert read_run(tmp_path).seconds is None
    (tmp_path / "run.json").unlink()
    for folder in (tmp_path, tmp_path / "nowhere"):
        check_error(r"is not the folder of a run: it holds no run\.json", read_run, folder)


@pytest.fixture
def desk(desk):
    write_pictures("a.png", "b.png", "folder/c.png", "folder/d.png", height=8, width=8)
    return desk


def test_settings_are_by_key_and_files_by_full_path_and_hash(desk):
    config = TrainConfig(content="a.png", style=["folder", "gone.png"], output="new.png")
    config.resume = "folder"
    made = recipe(config, ["output", "resume"], device=torch.device("cpu"))
    said = made["config"]
    assert said["content"] == str(desk / "a.png")
    assert said["style"] == [str(desk / "folder"), "gone.png"]
    assert (said["output"], said["resume"]) == (str(desk / "new.png"), "folder")
    assert (said["size"], said["optimizer.name"], made["device"]) == (512, "lbfgs", "cpu")
    assert made["files"] == {
        "content": [sha256("a.png")],
        "style": [sha256("folder/c.png"), sha256("folder/d.png")],
    }


def test_a_word_is_no_path_whatever_lies_beside(desk):
    """Check words such as init=noise in a folder that has subfolders of the same names."""
    for name in ("noise", "pretrained"):
        images.write(f"{name}/picture.png", picture(0, 8, 8))
    config = TrainConfig(content="a.png", style="b.png", init="noise")
    config.features = FeaturesConfig("vgg19", "pretrained")
    made = recipe(config)
    assert (made["config"]["init"], made["config"]["features.weights"]) == ("noise", "pretrained")
    assert made["files"].keys() == {"content", "style"}
    assert {("content", "a.png"), ("style", "b.png")} == {*files_read(config)}
    config = TrainConfig(content="a.png", style="b.png", init="folder/c.png")
    assert recipe(config)["files"]["init"] == [sha256("folder/c.png")]
    assert ("init", "folder/c.png") in files_read(config)


def differing(**changes):
    made = recipe(TrainConfig(content="a.png", style="b.png"), device=torch.device("cpu"))
    return made, made | changes


def test_what_differs_is_named(desk):
    for changes, words in (
        ({"version": "0"}, "was begun by version 0, and this is "),
        ({"config": {}}, "has the settings of another version"),
        ({"files": {"content": ["0"]}}, r"content=.*a.png has changed since the run began"),
        ({"files": None}, "no run's record"),
    ):
        now, then = differing(**changes)
        check_error(words, check_recipe, then, now)
    for nothing in ({}, None):
        check_error("no run's record", check_recipe, nothing, now)
