"""Pipes and scripts: `-` for standard input and output, and what `format=json` prints."""

import io
import json
import shlex
import sys
from pathlib import Path

import pytest
from helpers import call, picture, refusal
from PIL import Image

from styletransfer.pictures import images
from styletransfer.runs.recipe import carried
from styletransfer.system.files import sha256

pytestmark = pytest.mark.usefixtures("tiny_vgg")
TINY = ("train", "experiment=tiny", "device=cpu")


def pipe(monkeypatch, data):
    """Make `data` the standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_picture_goes_through_pipes(desk, monkeypatch, capsysbinary):
    """Words go to standard error; the picture is that of files, and says what it was made of."""
    images.write("photo.png", picture(3, 24, 32))
    assert call(capsysbinary, *TINY, "content=photo.png", "output=file.png")[0] == 0
    pipe(monkeypatch, Path("photo.png").read_bytes())
    status, printed = call(capsysbinary, *TINY, "content=-", "output=-")
    assert status == 0
    made = Image.open(io.BytesIO(printed.out))
    assert made.format == "PNG"
    assert made.tobytes() == Image.open("file.png").tobytes()
    assert printed.err.splitlines()[-1] == b"-"
    assert b"6 steps" in printed.err
    Path("piped.png").write_bytes(printed.out)
    recipe = carried(Path("piped.png"))
    assert "content='standard input'" in shlex.split(recipe["command"])
    assert "output" not in recipe["command"]
    assert recipe["sha256 of content"] == sha256("photo.png")


def test_what_cannot_go_through_a_pipe_is_told(desk, monkeypatch, capsys):
    for data, words in ((b"", "standard input is empty"), (b"no picture", "is damaged, or in")):
        pipe(monkeypatch, data)
        assert words in refusal(capsys, *TINY, "content=-", "output=out.png")
    terminal = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    assert "content=- reads a picture from" in refusal(capsys, *TINY, "content=-")
    pipe(monkeypatch, b"")
    assert "several jobs" in refusal(capsys, *TINY, "-m", "seed=1,2", "output=-")
    assert not Path("out.png").exists()


def test_an_error_leaves_standard_output_empty(desk, capsysbinary):
    status, printed = call(capsysbinary, *TINY, "content=none.png", "output=-")
    assert (status, printed.out) == (1, b"")


def test_a_run_is_told_as_json(desk, capsys):
    words = (*TINY, "hydra.run.dir=run", "format=json", "resume=auto")
    status, printed = call(capsys, *words)
    assert status == 0
    told = json.loads(printed.out)
    run = json.loads(Path("run/run.json").read_text())
    assert {key: told[key] for key in ("status", "picture", "seconds", "steps")} == {
        key: run[key] for key in ("status", "picture", "seconds", "steps")
    }
    assert told["losses"]["total"] > 0
    again = json.loads(call(capsys, *words)[1].out)
    assert again == {key: told[key] for key in ("status", "picture", "folder")}
