"""A command never overwrites a file that it reads."""

from pathlib import Path

import pytest
from helpers import (
    check_error,
    check_kept,
    check_one_writer,
    check_too_large,
    files_in,
    refusal,
    write_pictures,
)

from styletransfer.pictures import color
from styletransfer.runs.record import write_record
from styletransfer.system import outputs
from styletransfer.system.outputs import check_outputs

TINY = ["experiment=tiny", "content=photo.png", "style=painting.png", "size=16", "steps=1"]
MASKS = ["init=start.png", "protect=mask.png", "content_regions=left.png"]
GIVEN = ["photo.png", "painting.png", "start.png", "mask.png", "left.png"]
KEPT = ["run/pastiche.png", "run/content_resized.png"]


@pytest.fixture
def desk(here):
    """Return a folder with pictures and a finished run."""
    write_pictures(*GIVEN, *KEPT, height=12, width=16)
    config = {"content": str(here / "photo.png"), "style": "painting.png"}
    write_record(Path("run"), {"config": config}, "finished", Path("run/pastiche.png"), seconds=1.0)
    return here


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "read", "ending"),
    [
        (["train", *TINY, *MASKS], GIVEN, ".png"),
        (["mix", "run"], [*KEPT, "photo.png"], ".png"),
    ],
)
def test_an_output_is_no_input_and_has_one_writer(words, read, ending, desk, capsys):
    check_kept(capsys, words, read, ending)
    check_one_writer(capsys, [word for word in words if word not in MASKS], ending)


@pytest.mark.parametrize(
    "words", [["train", *TINY, "dry_run=true"], ["train", *TINY], ["mix", "run"]]
)
def test_a_picture_too_large_for_its_format_is_refused(words, desk, capsys, monkeypatch):
    monkeypatch.setattr(color, "mixed", pytest.fail)
    check_too_large(capsys, monkeypatch, words, ".webp")


def test_a_file_is_known_by_its_name_a_link_and_a_linked_folder(desk, capsys):
    Path("linked").symlink_to(desk)
    Path("link.png").symlink_to("photo.png")
    before = files_in(".")
    for output in ("photo.png", "link.png", "linked/photo.png"):
        assert "would overwrite" in refusal(capsys, "mix", "run", f"output={output}")
        assert files_in(".") == before, output


@pytest.mark.slow
@pytest.mark.parametrize("name", ["checkpoint.pt", "metrics.jsonl", "run.json", "pastiche.png"])
def test_no_input_is_a_file_that_a_run_keeps_for_itself(name, desk, capsys, monkeypatch):
    """The input is a link to the file, which a run in that folder would write; nothing is read."""
    monkeypatch.setattr("styletransfer.job.prepare.Sources.read", pytest.fail)
    Path("used").mkdir()
    Path("photo.png").rename(Path("used", name))
    Path("photo.png").symlink_to(Path("used", name))
    before = files_in("used")
    refusal(capsys, "train", *TINY, "hydra.run.dir=used", "resume=auto")
    assert files_in("used") == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["content_resized.png", "checkpoint.png", "run.json"])
def test_an_output_is_no_other_file_of_the_run(name, desk, capsys):
    Path("new").mkdir()
    Path("link.png").symlink_to(Path("new", name if name != "checkpoint.png" else "checkpoint.pt"))
    line = refusal(capsys, "train", *TINY, "hydra.run.dir=new", "output=link.png")
    assert "two results would become" in line


def test_outputs_that_differ_in_case_are_asked_of_the_folder(here, monkeypatch):
    """A folder may take x.png and X.png, or two forms of one accent, for one file."""
    (here / "a").touch()
    ignores_case = (here / "A").exists()
    assert outputs.is_one_file(str(here / "x.png"), str(here / "X.png")) == ignores_case
    assert outputs.is_one_file(str(here / "new/x/y"), str(here / "new/X/y")) == ignores_case
    for pair in (("x.png", "X.png"), ("\u00e9.png", "e\u0301.png"), ("d/x.png", "D/x.png")):
        for together in (True, False):
            monkeypatch.setattr(outputs, "is_one_file", lambda one, other, both=together: both)
            if together:
                check_error("two results would become", check_outputs, pair, [])
            else:
                check_outputs(pair, [])
