"""Outputs of every command: a command never overwrites a file that it reads."""

import os
from itertools import product
from pathlib import Path

import pytest
from film_files import make
from helpers import files_in, picture, style_network, write_pictures

from styletransfer import cli
from styletransfer.networks import Architecture, file
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


@pytest.mark.parametrize("case", CASES)
def test_no_command_writes_over_what_it_reads(case, desk, capsys):
    """Check the file's own name, a symbolic link, a path through a linked folder, a hard link."""
    words, read, ending = CASES[case]
    if any(name.endswith(".mp4") for name in read):
        make(desk / "film.mp4", [picture(seed, 36, 48).float() for seed in range(2)])
    (desk / "linked").symlink_to(desk)
    for number, (name, way) in enumerate(product(read, ("itself", "link", "folder", "second"))):
        output = Path(f"out{number}{ending}")
        if way in ("itself", "folder"):
            if not name.endswith(ending):
                continue
            output = Path(name) if way == "itself" else Path("linked") / name
        elif way == "link":
            output.symlink_to(name)
        else:
            os.link(name, output)
        before = files_in(desk)
        with pytest.raises(SystemExit) as end:
            cli.main([case.split()[0], *words, f"output={output}"])
        assert end.value.code == 1, (name, way)
        assert "would overwrite" in capsys.readouterr().err, (name, way)
        assert files_in(desk) == before, (name, way)
        if way in ("link", "second"):
            output.unlink()
