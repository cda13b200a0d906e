"""What a result depends on, for the settings of any command, and what of it may differ."""

import pytest
from helpers import check_error, picture, write_pictures

from styletransfer.config import ChangeConfig, FeaturesConfig, TrainConfig
from styletransfer.config.networks import TrainNetworkConfig
from styletransfer.job.load import files_read
from styletransfer.pictures import images
from styletransfer.runs.recipe import check_recipe, recipe, settings, until
from styletransfer.system.files import sha256


@pytest.fixture(autouse=True)
def desk(desk):
    write_pictures("a.png", "b.png", "folder/c.png", "folder/d.png", height=8, width=8)
    return desk


def test_settings_are_by_key_and_files_by_full_path_and_hash(desk):
    changes = [ChangeConfig(3, {"style": "b.png", "size": 9})]
    config = TrainConfig(content="a.png", style=["folder", "gone.png"], output="new.png")
    config.changes, config.resume = changes, "folder"
    made = recipe(config, ["output", "resume"], {"extra": ["1"]}, device="cpu")
    said = made["config"]
    assert said["content"] == str(desk / "a.png")
    assert said["style"] == [str(desk / "folder"), "gone.png"]
    assert (said["output"], said["resume"]) == (str(desk / "new.png"), "folder")
    assert said["changes"] == [{"after": 3, "set": {"style": str(desk / "b.png"), "size": 9}}]
    assert (said["size"], said["optimizer.name"], made["device"]) == (512, "lbfgs", "cpu")
    assert made["files"] == {
        "content": [sha256("a.png")],
        "style": [sha256("folder/c.png"), sha256("folder/d.png")],
        "changes[0].style": [sha256("b.png")],
        "extra": ["1"],
    }
    assert "changes[0].style" not in until(made, 0)["files"]
    assert until(made, 1) == made


def test_a_word_is_no_path_whatever_lies_beside():
    """As in a folder that holds others called content and noise."""
    for name in ("content", "style", "noise", "pretrained", "random", "auto"):
        images.write(f"{name}/picture.png", picture(0, 8, 8))
    for start in ("content", "style", "noise"):
        config = TrainConfig(content="a.png", style="b.png", init=start)
        config.features = FeaturesConfig("vgg19", "random" if start == "style" else "pretrained")
        made = recipe(config)
        assert made["config"]["init"] == start
        assert made["config"]["features.weights"] == config.features.weights
        assert made["files"].keys() == {"content", "style"}
        assert {("content", "a.png"), ("style", "b.png")} == {*files_read(config)}
    config = TrainConfig(content="a.png", style="b.png", init="folder/c.png")
    assert recipe(config)["files"]["init"] == [sha256("folder/c.png")]
    assert ("init", "folder/c.png") in files_read(config)
    assert settings(TrainNetworkConfig(style="a.png"))["start"] == "auto"


def differing(**changes):
    made = recipe(TrainConfig(content="a.png", style="b.png"), device="cpu")
    return made, made | changes


def test_what_differs_is_named():
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


def test_what_changes_the_last_bits_is_a_warning_and_what_is_free_is_nothing(caplog):
    now, then = differing(threads=99, device="cuda")
    then["config"] = then["config"] | {"output": "there.png"}
    check_recipe(then, now, ["output"])
    assert "with threads 99, and goes on with 1: the last bits may differ" in caplog.text
    assert "with device cuda, and goes on with cpu" in caplog.text
    assert len(caplog.records) == 2
    check_error(r"output=None differs from the run's own output=", check_recipe, then, now)
