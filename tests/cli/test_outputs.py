"""Outputs of every command: a command never overwrites a file that it reads."""

import os
from pathlib import Path

import pytest
from film_files import make
from helpers import files_in, picture, refusal, style_network, write_pictures

from styletransfer.networks import file
from styletransfer.networks.johnson import Architecture
from styletransfer.runs import write_record

TINY = ["experiment=tiny", "content=photo.png", "style=painting.png", "size=16", "steps=1"]
FILM = ["experiment=tiny", "content=film.mp4", "style=painting.png", "size=32"]
MASKS = ["init=start.png", "protect=mask.png", "content_regions=left.png"]
GIVEN = ["photo.png", "painting.png", "start.png", "mask.png", "left.png"]
# Command -> its arguments without output=, the files it reads, and its output's extension.
CASES = {
    "train": ([*TINY, *MASKS], GIVEN, ".png"),
    "compare": ([*TINY, "rounds=1"], ["photo.png", "painting.png"], ".png"),
    "film": (FILM, ["film.mp4", "painting.png"], ".mp4"),
    "apply": (["network=net.onnx", "input=photo.png"], ["net.onnx", "photo.png"], ".png"),
    "apply film": (["network=net.onnx", "input=film.mp4"], ["net.onnx", "film.mp4"], ".mp4"),
    "export": (["network=net.onnx"], ["net.onnx"], ".onnx"),
    "mix": (["run"], ["run/pastiche.png", "run/content_resized.png", "photo.png"], ".png"),
    "gallery": (["run"], ["run/pastiche.png", "photo.png"], ".html"),
}


@pytest.fixture
def desk(here):
    """Return a folder with every file that the commands read."""
    file.write(Path("net.onnx"), style_network(Architecture((3, 4, 5), 1), 1), ["oil"])
    kept = ("run/pastiche.png", "run/content_resized.png")
    write_pictures(*GIVEN, *kept, height=12, width=16)
    config = {"content": str(here / "photo.png"), "style": "painting.png"}
    write_record(Path("run"), {"config": config}, "finished", Path("run/pastiche.png"), seconds=1.0)
    return here


def check_refused(capsys, words, output):
    before = files_in(".")
    assert "would overwrite" in refusal(capsys, *words, f"output={output}"), output
    assert files_in(".") == before, output


@pytest.mark.parametrize("case", CASES)
def test_no_command_writes_over_what_it_reads(case, desk, capsys):
    words, read, ending = CASES[case]
    if any(name.endswith(".mp4") for name in read):
        make(desk / "film.mp4", [picture(seed, 36, 48).float() for seed in range(2)])
    for number, name in enumerate(read):
        os.link(name, f"out{number}{ending}")
        check_refused(capsys, [case.split()[0], *words], f"out{number}{ending}")


def test_a_file_is_known_by_its_name_a_link_and_a_linked_folder(desk, capsys):
    Path("linked").symlink_to(desk)
    Path("link.png").symlink_to("photo.png")
    for output in ("photo.png", "link.png", "linked/photo.png"):
        check_refused(capsys, ["mix", "run"], output)
