"""A command never overwrites a file that it reads."""

from pathlib import Path

import pytest
from helpers import check_kept, files_in, refusal, write_pictures

from styletransfer.runs.record import write_record

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


@pytest.mark.parametrize(
    ("words", "read", "ending"),
    [
        (["train", *TINY, *MASKS], GIVEN, ".png"),
        (["mix", "run"], [*KEPT, "photo.png"], ".png"),
        (["gallery", "run"], ["run/pastiche.png", "photo.png"], ".html"),
    ],
)
def test_no_command_writes_over_what_it_reads(words, read, ending, desk, capsys):
    check_kept(capsys, words, read, ending)


def test_a_file_is_known_by_its_name_a_link_and_a_linked_folder(desk, capsys):
    Path("linked").symlink_to(desk)
    Path("link.png").symlink_to("photo.png")
    before = files_in(".")
    for output in ("photo.png", "link.png", "linked/photo.png"):
        assert "would overwrite" in refusal(capsys, "mix", "run", f"output={output}")
        assert files_in(".") == before, output
