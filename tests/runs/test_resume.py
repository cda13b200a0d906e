"""Resuming runs that were stopped, without any loss."""

import json
import os
import signal
from pathlib import Path

import pytest
import torch
from helpers import (
    files_in,
    metrics_of,
    press,
    record_of,
    refusal,
    status_of,
    stop_after,
    write_pictures,
)

from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.files import mark_of
from styletransfer.system.locks import LOCK, locked

pytestmark = pytest.mark.usefixtures("signals", "tiny_vgg")


@pytest.fixture
def started(desk):
    """Return a folder with a run of 12 steps, `whole`, and one stopped after 8, `run`."""
    assert call(*arguments("hydra.run.dir=whole")) == 0
    with pytest.MonkeyPatch.context() as patch:
        stop_after(8, patch)
        assert call(*arguments("hydra.run.dir=run")) == 143
    assert steps_of("run") == [*range(1, 9)]
    return desk


def arguments(*more, steps=12):
    words = ["experiment=tiny", "content=content.png", "style=style.png"]
    return [*words, f"steps={steps}", *more]


def call(*words):
    return status_of("train", *words)


def steps_of(folder):
    return [line["step"] for line in metrics_of(folder)]


def assert_finished(folder="run", like="whole"):
    for name in ("pastiche.png", "metrics.jsonl"):
        assert Path(folder, name).read_bytes() == Path(like, name).read_bytes()
    assert not list(Path(folder).glob("checkpoint*"))
    assert record_of(folder)["status"] == "finished"


@pytest.mark.slow
def test_resume_without_a_checkpoint_starts_again_and_says_so(started, capsys):
    Path("run", "checkpoint.pt").unlink()
    assert call("resume=run") == 0
    printed = capsys.readouterr()
    told = "run holds no checkpoint; starting again at the first step"
    assert told in printed.out + printed.err
    assert_finished()


@pytest.mark.slow
def test_resume_takes_the_runs_settings_from_another_folder(started, monkeypatch):
    config = Path("run", ".hydra", "config.yaml").read_bytes()
    Path("elsewhere").mkdir()
    monkeypatch.chdir(started / "elsewhere")
    assert call("resume=../run") == 0
    assert not Path("outputs").exists()
    monkeypatch.chdir(started)
    assert_finished()
    assert Path("run", ".hydra", "config.yaml").read_bytes() == config


@pytest.mark.slow
def test_auto_goes_on_and_ends(started, capsys):
    write_pictures("content/new.png", height=8, width=8)  # not what init=content means
    words = arguments("resume=auto", "hydra.run.dir=run")
    assert call(*words) == 0
    assert_finished()
    before = Path("run", "run.json").stat().st_mtime_ns
    capsys.readouterr()
    assert call(*words) == 0
    assert capsys.readouterr().out.startswith("already finished\n")
    assert Path("run", "run.json").stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_stop_that_was_asked_for_leaves_what_a_signal_leaves(started, capsys):
    """Check that the pictures are equal, and that resuming gives the uninterrupted picture."""
    assert call(*arguments("hydra.run.dir=asked", "stop_after=8")) == 0
    assert f"go on with resume={started / 'asked'}" in capsys.readouterr().out
    asked, stopped, whole = (Path(name) / "pastiche.png" for name in ("asked", "run", "whole"))
    assert asked.read_bytes() == stopped.read_bytes() != whole.read_bytes()
    assert record_of(asked.parent)["steps"] == 8
    assert call("resume=asked") == 0
    assert asked.read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_a_finished_run_whose_picture_is_lost_begins_afresh(started):
    assert call("resume=run") == 0
    Path("run/pastiche.png").unlink()
    assert call("resume=run") == 0
    assert_finished()


def stopped_with(output):
    """Leave a run that was stopped after 1 of 2 steps, `run`, whose picture is at `output`."""
    assert call(*arguments("hydra.run.dir=run", f"output={output}", "stop_after=1", steps=2)) == 0


@pytest.mark.parametrize("output", ["run/pastiche.png", "out.png"])
def test_what_a_process_killed_at_the_end_of_its_run_has_left(output, desk, capsys):
    stopped_with(output)
    checkpoint, folder = Path("run/checkpoint.pt").read_bytes(), Path("run").absolute()
    assert call("resume=run", "stop_after=0") == 0
    expected = files_in(desk)
    locks = [folder / LOCK, Path(output).with_name(f".{mark_of(Path(output))}{LOCK}")]
    for words in (["resume=run"], arguments(f"hydra.run.dir={folder}", "resume=auto", steps=2)):
        (folder / "checkpoint.pt").write_bytes(checkpoint)
        for lock in locks:
            lock.touch()
        assert call(*words, f"output={output}", "dry_run=true") == 0
        assert files_in(desk).keys() > expected.keys()  # a dry run changes nothing
        with locked(folder):  # by the process that finishes the run
            assert call(*words, f"output={output}") == 0
            assert (folder / "checkpoint.pt").exists()
        assert call(*words, f"output={output}") == 0
        assert capsys.readouterr().out.count("already finished\n") == 2
        assert files_in(desk) == expected


def test_a_run_goes_on_to_its_own_output(desk):
    """It replaces the picture that it has written, also after a kill, and may be told to."""
    stopped_with("out.png")
    first = Path("out.png").read_bytes()
    assert call("resume=run", "stop_after=1") == 0  # as if it were killed then
    record = json.loads(Path("run/run.json").read_text()) | {"status": "running"}
    Path("run/run.json").write_text(json.dumps(record))
    assert call("resume=run", "stop_after=0") == 0
    assert Path("out.png").read_bytes() != first
    assert record_of("run")["picture"] == str(desk / "out.png")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["photo.png", "linked/photo.png", "run/linked.png"])
def test_no_record_names_a_file_to_replace(name, desk, capsys):
    """A run's folder from somebody else may name any file as its output, or hold a link to it."""
    Path("photo.png").write_bytes(b"my own")
    Path("linked").symlink_to(".")
    stopped_with("out.png")
    if name.startswith("run"):
        Path(name).symlink_to("../photo.png")
    record = record_of("run")
    record["config"]["output"] = str(desk / name)
    Path("run/run.json").write_text(json.dumps(record))
    assert f"add output={desk / name} to replace it" in refusal(capsys, "train", "resume=run")
    assert Path("photo.png").read_bytes() == b"my own"
    Path("photo.png").unlink()
    assert call("resume=run") == 0
    assert images.read("photo.png").size == (24, 32)


@pytest.mark.slow
def test_no_write_into_a_run_goes_through_a_link(desk, capsys):
    Path("mine").write_bytes(b"my own")
    stopped_with("run/out.png")
    Path("run/train.log").symlink_to("../mine")
    for name in ("metrics.jsonl", "pastiche.png", "content_resized.png", "checkpoint.pt"):
        Path("run", name).rename("kept")
        Path("run", name).symlink_to("../mine" if name != "checkpoint.pt" else "../kept")
        assert f"run/{name} is a link to" in refusal(capsys, "train", "resume=run")
        Path("run", name).unlink()
        Path("kept").rename(Path("run", name))
    assert call("resume=run") == 0
    assert Path("mine").read_bytes() == b"my own"


@pytest.mark.slow
def test_what_is_no_runs_checkpoint_or_anothers(started, capsys):
    """Check a foreign checkpoint and edited ones."""
    checkpoint = Checkpoint(Path("run", "checkpoint.pt"))
    whole = checkpoint.load()
    run = whole["run"] | {"steps": [1]}
    for wrong in ({"recipe": {}}, whole | {"seconds": {}}, whole | {"run": run}):
        checkpoint.save(wrong)
        assert "is no run's checkpoint; start afresh" in refusal(capsys, "train", "resume=run")
        assert record_of("run")["status"] == "stopped"


@pytest.mark.slow
def test_what_differs_is_named(started, capsys):
    """A refused command changes no file of the run, not even Hydra's, but for its log."""
    before = sorted(started.rglob("*")), files_in("run/.hydra")
    for words, message in (
        (["resume=nowhere"], "nowhere is not the folder of a run: it holds no run.json"),
        (["resume=run", "optimizer=adam"], "goes on with the run's own settings; leave optimizer="),
        (["resume=run", "experiment=tiny"], "own settings; leave experiment= out"),
        (["resume=auto", *arguments("hydra.run.dir=run", steps=13)], "steps=13 differs from the"),
    ):
        assert message in refusal(capsys, "train", *words)
    assert (sorted(started.rglob("*")), files_in("run/.hydra")) == before
    os.chdir("run")
    assert "size=0" in refusal(capsys, "train", "size=0", "hydra.run.dir=.")
    os.chdir("..")
    assert files_in("run/.hydra") == before[1]


@pytest.mark.slow
def test_what_changes_no_pixel_may_differ(started, capsys, monkeypatch):
    before = sorted(started.rglob("*"))
    assert call("resume=run", "dry_run=true") == 0
    assert "32 x 24: 6 steps" in capsys.readouterr().out
    assert sorted(started.rglob("*")) == before
    checkpoint = Checkpoint(Path("run", "checkpoint.pt"))
    checkpoint.save(checkpoint.load() | {"seconds": 1000.0})
    monkeypatch.setattr(torch, "get_num_threads", lambda: 99)
    words = ["checkpoint_every=0", "output=new.png"]
    assert call("resume=run", *words) == 0
    assert "threads 1, and goes on with 99: the last bits may differ" in capsys.readouterr().out
    assert Path("new.png").read_bytes() == Path("whole", "pastiche.png").read_bytes()
    assert record_of("run")["seconds"] >= 1000


def test_signals_while_files_are_written_wait(desk, monkeypatch):
    """Check that picture and checkpoint are complete when signals come while they are written."""
    stop_after(5, monkeypatch, signal.SIGINT)
    write, save = images.write, Checkpoint.save

    def pressed_while_writing(*args, **options):
        press(signal.SIGINT)
        write(*args, **options)
        press()

    def pressed_while_saving(self, state):
        assert len(steps_of("run")) == state["run"]["steps"]  # metrics are written first
        press(signal.SIGINT)
        save(self, state)
        press(signal.SIGINT)

    monkeypatch.setattr(images, "write", pressed_while_writing)
    monkeypatch.setattr(Checkpoint, "save", pressed_while_saving)
    assert call(*arguments("hydra.run.dir=run")) == 130
    assert images.read("run/pastiche.png").size == (24, 32)
    assert Checkpoint(Path("run", "checkpoint.pt")).load()["run"]["steps"] == 5


def test_a_signal_that_comes_too_late_stops_nothing_but_is_told(desk, monkeypatch, capsys):
    stop_after(12, monkeypatch, signal.SIGINT)
    assert call(*arguments("hydra.run.dir=a")) == 130
    assert images.read("a/pastiche.png").size == (24, 32)
    assert capsys.readouterr().out.splitlines()[-1].endswith("pastiche.png")


@pytest.mark.slow
def test_checkpoints_that_are_not_wanted_or_cannot_be_written(desk, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        stop_after(5, patch)
        assert call(*arguments("hydra.run.dir=without", "checkpoint_every=0")) == 143
    assert "resume" not in capsys.readouterr().out
    assert not Path("without", "checkpoint.pt").exists()

    def full(self, state):
        raise UserError("cannot write checkpoint.pt")

    monkeypatch.setattr(Checkpoint, "save", full)
    assert call(*arguments("hydra.run.dir=run", "checkpoint_every=1e-9")) == 0
    assert capsys.readouterr().out.count("going on without checkpoints") == 1
    assert images.read("run/pastiche.png").size == (24, 32)


def test_an_unwritable_picture_goes_into_the_run_folder(desk, monkeypatch, capsys):
    real = images.write

    def full(path, *args, **options):
        if Path(path).name == "out.png":
            raise UserError(f"cannot write {path}: No space left on device")
        real(path, *args, **options)

    monkeypatch.setattr(images, "write", full)
    assert call(*arguments("hydra.run.dir=run", "output=out.png")) == 1
    printed = capsys.readouterr()
    path = printed.out.splitlines()[-1]
    told = f"cannot write out.png: No space left on device; the picture is at {path} instead"
    assert printed.err.rstrip().endswith(f"error: {told}")
    assert Path(path) == Path("run/pastiche.png").absolute()
    assert images.read(path).size == (24, 32)
    assert record_of("run")["status"] == "gave up"
