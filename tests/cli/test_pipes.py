"""Pipes and scripts: `-` for standard input and output, and what `format=json` prints."""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT, call, picture, refusal
from PIL import Image

from styletransfer.cli.errors import one_line_errors
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
    assert "content=standard input" in shlex.split(recipe["command"])
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


def test_a_run_needs_no_folder_to_write_its_output(desk, capsys):
    """Its own folder is then a temporary one, which a note names; without output= it is refused."""
    Path("outputs").touch()  # as in a folder in which this user may not write
    Path("new").mkdir()
    status, printed = call(capsys, *TINY, "output=new/x.png")
    folder = re.search(r"cannot be made .*; the run's folder is (\S+)", printed.err)[1]
    assert (status, images.read("new/x.png").size) == (0, (21, 32))
    assert Path(folder, "run.json").exists()
    shutil.rmtree(folder)
    assert "cannot write outputs" in refusal(capsys, *TINY)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--help"], "cannot write standard output: No space"),
        (["train", "--help"], "cannot write standard output: No space"),
        ([*TINY, "output=-"], "cannot write the picture to standard output: No space"),
    ],
)
def test_a_full_standard_output_is_named(words, said, desk):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "styletransfer", *words]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert f"error: {said}" in done.stderr


@pytest.mark.parametrize(
    ("encoding", "printed", "read"),
    [("utf-8", "\udcff\u00e4.png", b"\xff\xc3\xa4.png"), ("ascii", "\u00e4.png", rb"\xe4.png")],
)
def test_a_path_of_any_letters_is_printed(encoding, printed, read, monkeypatch):
    """A byte that is not UTF-8 is printed as it is; a letter that an encoding lacks is escaped."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    with one_line_errors():
        print(printed)
    assert stream.buffer.getvalue().rstrip() == read


def test_help_has_the_width_of_the_terminal(capsys, monkeypatch):
    for words in (["--help"], ["train", "--help"]):
        for columns in (40, 60, 300):
            monkeypatch.setenv("COLUMNS", str(columns))
            text = call(capsys, *words)[1].out
            assert max(map(len, text.splitlines())) <= min(columns, 100)
            assert "styletransfer" in text


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
