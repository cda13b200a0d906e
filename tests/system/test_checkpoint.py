"""Checkpoints: whole or not at all, verified, and the one before as a fallback."""

import io
import pickle
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


def alone(file):
    file.previous.unlink()
    return file


def test_what_was_saved_is_loaded(file, tmp_path):
    state = Checkpoint(file.path).load()
    assert torch.equal(state.pop("picture"), STATE["picture"])
    assert state == {"step": 3, "list": [1.5, None, float("inf")]}
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint.pt", "checkpoint.previous.pt"}


def test_nothing_to_load(tmp_path):
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt")
    assert not checkpoint.exists()
    with pytest.raises(UserError, match="there is no checkpoint at"):
        checkpoint.load()
    checkpoint.remove()


def test_removed(file, tmp_path):
    assert file.exists()
    file.remove()
    assert not file.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_save_leaves_the_one_before(file):
    """Between its two renames there is no newest file."""
    file.path.unlink()
    assert file.exists()
    assert file.load()["step"] == 2


@pytest.mark.parametrize("place", [0, 30, 60, 100, 200, 3000, -10, -1])
def test_a_flipped_bit_is_found(file, place, caplog):
    data = bytearray(file.path.read_bytes())
    data[place] ^= 1
    file.path.write_bytes(data)
    assert file.load()["step"] == 2
    assert "going on from the one before" in caplog.text
    with pytest.raises(UserError, match=REFUSED):
        alone(file).load()


@pytest.mark.parametrize("size", [0, 1, 20, 26, 28, 70, 92, 1000, -1])
def test_a_truncated_file_is_found(file, size):
    file.path.write_bytes(file.path.read_bytes()[:size])
    assert file.load()["step"] == 2
    with pytest.raises(UserError, match=REFUSED):
        alone(file).load()


def test_both_are_damaged(file):
    for path in (file.path, file.previous):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"checkpoint\.pt is damaged or was tampered with"):
        file.load()


def test_a_foreign_file(file):
    torch.save(STATE, alone(file).path)
    with pytest.raises(UserError, match="is not a checkpoint of this program"):
        file.load()


def test_another_version(file, monkeypatch):
    saved = module.SCHEMA
    monkeypatch.setattr(module, "MAGIC", module.KIND + b"9\n")
    with pytest.raises(UserError, match=rf"checkpoint of another version \({saved}, not") as caught:
        file.load()
    assert "\n" not in str(caught.value)


class Bomb:
    def __reduce__(self):
        return sys.exit, ("executed",)


@pytest.mark.parametrize("has_hash", [False, True])
def test_nothing_is_executed(file, has_hash, monkeypatch):
    """Neither by a stranger's file, nor by one that even has its hash right."""
    content = io.BytesIO()
    torch.save({"step": Bomb()}, content)
    if has_hash:
        monkeypatch.setattr(module.torch, "save", lambda state, to: to.write(content.getvalue()))
        file.save({})
        monkeypatch.undo()
    else:
        data = file.path.read_bytes()
        file.path.write_bytes(data[: module.HEADER] + content.getvalue())
    with pytest.raises(UserError, match=r"damaged|something else") as caught:
        alone(file).load()
    assert "weights_only" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_dictionary(file):
    file.save([1, 2])
    with pytest.raises(UserError, match="something else"):
        alone(file).load()


def test_a_folder_in_its_place(tmp_path):
    (tmp_path / "checkpoint.pt").mkdir()
    with pytest.raises(UserError, match="cannot read the checkpoint"):
        Checkpoint(tmp_path / "checkpoint.pt").load()


@pytest.mark.parametrize("limit", [50, 5000, 15000])
def test_a_full_disk_costs_nothing_but_the_checkpoint(file, limit, tmp_path, monkeypatch, caplog):
    resource = pytest.importorskip("resource")
    before = file.path.read_bytes(), file.previous.read_bytes()
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
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


def test_what_cannot_be_stored_is_our_mistake(file):
    with pytest.raises((AttributeError, pickle.PicklingError)):
        file.save({"function": lambda: None})
    assert file.load()["step"] == 3


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
