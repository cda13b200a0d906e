"""Checkpoints: whole or not at all, verified, and the one before as a fallback."""

import io
import sys
import time

import pytest
import torch

from styletransfer.errors import UserError
from styletransfer.system import checkpoint as module
from styletransfer.system.checkpoint import Checkpoint

STATE = {"step": 3, "picture": torch.arange(5000.0), "list": [1.5, None, float("inf")]}
REFUSED = r"damaged|not a checkpoint|another version"


@pytest.fixture
def file(tmp_path):
    """A checkpoint at step 3, after one at step 2."""
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt")
    checkpoint.save(STATE | {"step": 2})
    checkpoint.save(STATE)
    return checkpoint


def test_what_was_saved_is_loaded_until_it_is_removed(file, tmp_path):
    state = Checkpoint(file.path).load()
    assert torch.equal(state.pop("picture"), STATE["picture"])
    assert state == {"step": 3, "list": [1.5, None, float("inf")]}
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint.pt", "checkpoint.previous.pt"}
    for _ in range(2):
        file.remove()
        assert (file.exists(), [*tmp_path.iterdir()]) == (False, [])
    with pytest.raises(UserError, match="there is no checkpoint at"):
        file.load()


def test_a_killed_save_leaves_the_one_before(file):
    """Between its two renames there is no newest file."""
    file.path.unlink()
    assert file.exists()
    assert file.load()["step"] == 2


def test_a_flipped_bit_or_a_lost_end_is_found(file, caplog):
    whole = file.path.read_bytes()
    damaged = []
    for place in (0, 27, 60, 100, 3000, -1):
        flipped = bytearray(whole)
        flipped[place] ^= 1
        damaged += [flipped, whole[:place]]
    for data in damaged:
        file.path.write_bytes(data)
        assert file.load()["step"] == 2
    assert caplog.text.count("going on from the one before") == len(damaged)
    file.previous.unlink()
    for data in damaged:
        file.path.write_bytes(data)
        with pytest.raises(UserError, match=REFUSED):
            file.load()


def test_what_is_no_checkpoint_of_this_version(file, monkeypatch, tmp_path):
    file.save([1, 2])
    file.previous.unlink()
    with pytest.raises(UserError, match="something else"):
        file.load()
    monkeypatch.setattr(module, "MAGIC", module.KIND + b"9\n")
    with pytest.raises(UserError, match=rf"of another version \({module.SCHEMA}, not"):
        file.load()
    torch.save(STATE, file.path)
    with pytest.raises(UserError, match="is not a checkpoint of this program"):
        file.load()
    (tmp_path / "folder.pt").mkdir()
    with pytest.raises(UserError, match="cannot read the checkpoint"):
        Checkpoint(tmp_path / "folder.pt").load()


def test_nothing_is_executed(file, monkeypatch):
    """Neither by a stranger's file, nor by one that even has its hash right."""

    class Bomb:
        def __reduce__(self):
            return sys.exit, ("executed",)

    content = io.BytesIO()
    torch.save({"step": Bomb()}, content)
    file.previous.unlink()
    file.path.write_bytes(file.path.read_bytes()[: module.HEADER] + content.getvalue())
    with pytest.raises(UserError, match="damaged"):
        file.load()
    monkeypatch.setattr(module.torch, "save", lambda state, to: to.write(content.getvalue()))
    file.save({})
    file.previous.unlink()
    with pytest.raises(UserError, match="something else") as caught:
        file.load()
    assert "weights_only" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_full_disk_costs_nothing_but_the_checkpoint(file, tmp_path, monkeypatch, caplog):
    resource = pytest.importorskip("resource")
    before = file.path.read_bytes(), file.previous.read_bytes()
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (15000, old[1]))
    try:
        with pytest.raises(UserError, match=r"cannot write .*checkpoint\.pt: File too large"):
            file.save(STATE | {"step": 4})
        file.every = 60
        file.try_to_save(STATE | {"step": 4})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    monkeypatch.setattr(time, "monotonic", lambda: float("inf"))
    assert not file.is_due()
    assert caplog.text.count("going on without checkpoints") == 1
    assert (file.path.read_bytes(), file.previous.read_bytes()) == before
    assert len(list(tmp_path.iterdir())) == 2


def test_when_a_save_is_due(tmp_path, monkeypatch):
    """After `every` seconds, and never for more than one twentieth of the time."""
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
