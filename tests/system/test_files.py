"""Files that are whole or not there, and folders with one run in each."""

import json
import math
import os
import signal
import subprocess
import sys

import pytest

from styletransfer.errors import UserError
from styletransfer.system.files import (
    atomic,
    check_folder,
    is_locked,
    keep_lines,
    locked,
    remove_stale,
    to_json,
)

OWNER = """
import sys, time
from pathlib import Path
from styletransfer.system.files import locked
with locked(Path(sys.argv[1])):
    print("mine", flush=True)
    time.sleep(100)
"""


def test_a_folder_has_one_run(tmp_path):
    with locked(tmp_path):
        assert is_locked(tmp_path)
        with pytest.raises(UserError, match=r"another run is at work in .*another fo"):
            locked(tmp_path).__enter__()
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        raise ZeroDivisionError
    assert not is_locked(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_lock_ends_with_its_owner(tmp_path):
    """However that ends."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert owner.stdout.readline() == b"mine\n"
        assert is_locked(tmp_path)
        with pytest.raises(UserError, match="another run"):
            locked(tmp_path).__enter__()
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.communicate()
    assert not is_locked(tmp_path)
    with locked(tmp_path):
        pass


def test_a_lock_on_a_file_that_is_gone_is_none(tmp_path, monkeypatch):
    """Between opening the file and locking it the owner leaves, and another one comes."""
    real, other = os.open, []

    def slow(path, *flags):
        file = real(path, *flags)
        if not other:
            path.unlink()
            other.append(locked(tmp_path))
            other[0].__enter__()
        return file

    monkeypatch.setattr(os, "open", slow)
    with pytest.raises(UserError, match="another run is at work"):
        locked(tmp_path).__enter__()
    other[0].__exit__(None, None, None)


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    target = tmp_path / "picture.png"
    target.write_bytes(b"older")
    (tmp_path / "link").symlink_to(target)

    def killed():
        with atomic(target) as temporary:
            temporary.write_bytes(b"half")
            os.link(temporary, tmp_path / temporary.name.replace(".tmp", "x"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        killed()
    assert target.read_bytes() == b"older"
    with atomic(tmp_path / "link") as temporary:
        temporary.write_bytes(b"new")
    assert (target.read_bytes(), (tmp_path / "link").is_symlink()) == (b"new", True)
    # What a killed writer has left is removed, and nothing else.
    (half,) = tmp_path.glob(".*x")
    half.rename(tmp_path / (half.name[:-1] + ".tmp"))
    names = {"picture.png", "link", "mine.tmp", ".hidden.tmp"}
    for name in names:
        (tmp_path / name).touch()
    remove_stale(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == names


def test_what_cannot_be_written_is_one_line(tmp_path):
    for name, message in (("a" * 300, "File name too long; choose"), (".", "it is a folder; add")):
        with pytest.raises(UserError, match=message), atomic(tmp_path / name):
            pytest.fail("not reached")
        with pytest.raises(UserError, match=message):
            check_folder(tmp_path / name)
    with pytest.raises(UserError, match="it is a device or pipe; name a file"):
        check_folder(os.devnull)
    check_folder(tmp_path / "new" / "file")
    assert list(tmp_path.iterdir()) == []


def test_lines_are_kept(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_bytes(
        b'{"step": 1}\n{"step": 2}\nnonsense\n\xff\n[]\n{}\n7\n{"step": 1, "x": 2}\n{"step": 1'
    )
    keep_lines(path, lambda line: line["step"] == 1)
    assert path.read_text() == '{"step": 1}\n{"step": 1, "x": 2}\n'


def test_json_has_no_word_for_what_is_not_finite():
    value = {"a": [1.5, math.nan, (math.inf,)], "b": {"c": -math.inf}, "d": "NaN", "e": None}
    parsed = json.loads(to_json(value), parse_constant=pytest.fail)
    assert parsed == {"a": [1.5, None, [None]], "b": {"c": None}, "d": "NaN", "e": None}
    assert to_json({"a": 1}, indent=2) == '{\n  "a": 1\n}'
