"""Checkpoints, files and folders: complete writes, verified reads, one run per folder."""

import errno
import json
import math
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from helpers import ROOT, begun, check_error, largest_file

from styletransfer.errors import UserError
from styletransfer.system import checkpoint as module
from styletransfer.system import files, locks, outputs
from styletransfer.system.checkpoint import Checkpoint

STATE = {"step": 3, "picture": torch.arange(5000.0), "list": [1.5, None, float("inf")]}
HOLD = """
import sys, time
from pathlib import Path
from styletransfer.system.locks import locked

with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""
WRITE = """
import sys, time
from styletransfer.system.files import atomic
from styletransfer.system.locks import output_locked

with output_locked(sys.argv[1]), atomic(sys.argv[1]) as temporary:
    temporary.touch()
    print("begun", flush=True)
    time.sleep(600)
"""
REFUSED = "is damaged, or no checkpoint of this version; start afresh"


@pytest.fixture
def file(tmp_path):
    """Return a saved checkpoint at step 3."""
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt")
    checkpoint.save(STATE)
    return checkpoint


def test_a_saved_state_is_loaded_until_it_is_removed(file, tmp_path):
    state = Checkpoint(file.path).load()
    assert torch.equal(state.pop("picture"), STATE["picture"])
    assert state == {"step": 3, "list": [1.5, None, float("inf")]}
    for _ in range(2):
        file.remove()
        assert (file.exists(), [*tmp_path.iterdir()]) == (False, [])
    check_error("there is no checkpoint at", file.load)


def test_a_flipped_bit_or_a_lost_end_is_found(file):
    whole = file.path.read_bytes()
    tensor = whole.index(STATE["picture"].numpy().tobytes())
    damaged = [whole[:0], whole[:tensor], whole[:-1]]
    for place in (0, tensor, tensor + 9999):
        damaged.append(bytearray(whole))
        damaged[-1][place] ^= 1
    for data in damaged:
        file.path.write_bytes(data)
        check_error(REFUSED, file.load)


def test_a_file_of_another_kind_or_version_is_refused(file, monkeypatch, tmp_path):
    written = module.SCHEMA
    monkeypatch.setattr(module, "SCHEMA", written + 1)
    check_error(rf"of another version \({written}, not {written + 1}\)", file.load)
    file.save([1, 2])
    check_error(REFUSED, file.load)
    torch.save(STATE, file.path)
    check_error(REFUSED, file.load)
    file.path.write_bytes(b"styletransfer checkpoint 2\n" + file.path.read_bytes())
    check_error(REFUSED, file.load)
    (tmp_path / "folder.pt").mkdir()
    check_error("cannot read the checkpoint", Checkpoint(tmp_path / "folder.pt").load)


def test_loading_executes_nothing(file):
    class Bomb:
        def __reduce__(self):
            return sys.exit, ("executed",)

    torch.save({"schema": module.SCHEMA, "state": {"step": Bomb()}}, file.path)
    check_error(REFUSED, file.load)


def test_a_full_disk_costs_nothing_but_the_checkpoint(file, tmp_path, monkeypatch, caplog):
    before = file.path.read_bytes()
    with largest_file(15000):
        with pytest.raises(UserError, match=r"cannot write .*checkpoint\.pt: File too large"):
            file.save(STATE | {"step": 4})
        file.every = 60
        file.try_to_save(STATE | {"step": 4})
    monkeypatch.setattr(time, "monotonic", lambda: float("inf"))
    assert not file.is_due()
    assert caplog.text.count("going on without checkpoints") == 1
    assert file.path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_when_a_save_is_due(tmp_path, monkeypatch):
    """Check that saves come every `every` seconds and take at most 1/20 of the time."""
    now, takes = [100.0], iter([1, 10, 0])
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt", every=60)

    def slow(state, file):
        now[0] += next(takes)

    monkeypatch.setattr(torch, "save", slow)
    due = []
    for _ in range(3):
        while not checkpoint.is_due():
            now[0] += 1
        due.append(now[0])
        checkpoint.save({})
    assert due == [160, 221, 431]
    assert not Checkpoint(tmp_path / "checkpoint.pt", every=0).is_due()


def test_a_folder_has_one_run(tmp_path):
    with locks.locked(tmp_path):
        assert locks.is_locked(tmp_path)
        check_error(r"another run is at work in .*another fo", locks.locked(tmp_path).__enter__)
    with pytest.raises(ZeroDivisionError), locks.locked(tmp_path):
        raise ZeroDivisionError
    assert not locks.is_locked(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_run_leaves_its_folder_unlocked(tmp_path):
    holder = begun(sys.executable, "-c", HOLD, str(tmp_path), env={"PYTHONPATH": str(ROOT)})
    assert holder.stdout.readline() == "held\n"
    assert locks.is_locked(tmp_path)
    holder.kill()
    holder.communicate()
    assert not locks.is_locked(tmp_path)
    with locks.locked(tmp_path):
        assert locks.is_locked(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    target, link = tmp_path / "picture.png", tmp_path / "link"
    target.write_bytes(b"older")
    link.symlink_to(target)
    with suppress(ZeroDivisionError), files.atomic(target) as temporary:
        temporary.write_bytes(b"half")
        os.link(temporary, tmp_path / "half")
        raise ZeroDivisionError
    assert target.read_bytes() == b"older"
    with files.atomic(link) as written:
        written.write_bytes(b"new")
    assert (target.read_bytes(), link.is_symlink()) == (b"new", True)
    # Only the temporary file of a killed writer is removed.
    (tmp_path / "half").rename(temporary)
    names = {"picture.png", "link", "mine.tmp", ".hidden.tmp"}
    for name in names:
        (tmp_path / name).touch()
    locks.remove_stale(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == names


def test_what_a_killed_command_left_goes_and_is_named(tmp_path, caplog):
    """The next command for the same output removes it; the files of another output stay."""
    ours, other = tmp_path / "new" / "\u00e9.png", tmp_path / "new" / "other.png"
    for output in (ours, other):
        holder = begun(sys.executable, "-c", WRITE, str(output), env={"PYTHONPATH": str(ROOT)})
        assert holder.stdout.readline() == "begun\n"
        holder.kill()
        holder.communicate()
    left = {*ours.parent.glob(".*.tmp")}
    assert len(left) == 2
    with locks.output_locked(ours):
        pass
    (stays,) = ours.parent.glob(".*.tmp")
    (gone,) = left - {stays}
    assert f"removed {gone}, which a killed command has left" in caplog.text
    assert str(stays) not in caplog.text
    with locks.output_locked(other):
        pass
    assert list(ours.parent.iterdir()) == []


def test_a_folder_is_tidied_around_an_output_at_work(tmp_path):
    """Whoever tidies the folder leaves the temporary file of an output that is being written."""
    with locks.output_locked(tmp_path / "a.png"), files.atomic(tmp_path / "a.png") as temporary:
        temporary.write_bytes(b"whole")
        locks.remove_stale(tmp_path)
    assert (tmp_path / "a.png").read_bytes() == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_an_output_that_fails_leaves_no_new_folder(tmp_path):
    with pytest.raises(ZeroDivisionError), locks.output_locked(tmp_path / "a" / "b" / "c.png"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_windows_waits_for_a_program_that_reads_a_file(tmp_path, monkeypatch):
    """A file that is open there, as one that the studio sends, cannot be replaced."""
    target, tries, real = tmp_path / "a.png", [], Path.replace

    def replace(path, to):
        tries.append(path)
        if len(tries) < 3:
            raise PermissionError(13, "Access is denied")
        return real(path, to)

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(files.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(sys, "platform", "win32")
    with files.atomic(target) as temporary:
        temporary.write_bytes(b"new")
    assert (target.read_bytes(), len(tries)) == (b"new", 3)


def test_what_cannot_be_written_is_one_line(tmp_path):
    for name, message in (("a" * 300, "File name too long; choose"), (".", "it is a folder; add")):
        with pytest.raises(UserError, match=message), files.atomic(tmp_path / name):
            pytest.fail("not reached")
        check_error(message, outputs.check_folder, tmp_path / name)
    with pytest.raises(UserError, match="No space left on device"), files.atomic(tmp_path / "a"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    check_error("it is a device or pipe; name a file", outputs.check_folder, os.devnull)
    outputs.check_folder(tmp_path / "new" / "file")
    assert list(tmp_path.iterdir()) == []


def test_lines_are_kept_and_json_has_no_infinite_numbers(tmp_path, monkeypatch):
    path, kept, cut = tmp_path / "lines.jsonl", b'{"step": 1}\n{"step": 1, "x": 2}\n', b'{"step": 1'
    path.write_bytes(b'{"step": 2}\nnonsense\n\xff\n[]\n{}\n7\n' + kept + cut)
    files.keep_lines(path, lambda line: line["step"] == 1)
    assert path.read_bytes() == kept
    monkeypatch.setattr(files, "LONGEST_LINE", 40)
    path.write_bytes(b" " * 40 + kept + b'{"step": 1}' + b" " * 40)
    files.keep_lines(path, lambda line: line["step"] == 1)
    assert path.read_bytes() == b'{"step": 1, "x": 2}\n'
    value = {"a": [1.5, math.nan, (math.inf,)], "b": {"c": -math.inf}, "d": "NaN", "e": None}
    parsed = json.loads(files.to_json(value), parse_constant=pytest.fail)
    assert parsed == {"a": [1.5, None, [None]], "b": {"c": None}, "d": "NaN", "e": None}
