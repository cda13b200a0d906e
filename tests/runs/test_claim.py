"""The folder of a result belongs to one command, which claims it before it writes anything."""

import shutil
from pathlib import Path

import pytest
from helpers import call, files_in, largest_file, record_of, refusal, status_of, stop_after

from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.runs.claim import claimed, made_by
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.locks import locked

pytestmark = pytest.mark.usefixtures("signals", "tiny_vgg")

TINY = ["experiment=tiny", "content=content.png", "style=style.png", "steps=3"]


def train(*words):
    return status_of("train", *TINY, *words)


@pytest.fixture
def ran(desk):
    """Return a folder with a finished run, `r`, and the pictures it was made of."""
    assert train("hydra.run.dir=r") == 0
    return desk


# A log that has a line of the refused command.
LOGS = ("train.log", "train_network.log")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["train", *TINY, "seed=1", "hydra.run.dir=r"],
        ["train", *TINY, "seed=1", 'hydra.run.dir="r"'],
        ["train", *TINY, "seed=1", "++hydra.run.dir=r"],
        ["train", *TINY, "seed=1", "hydra.run.dir=${oc.env:FOLDER}"],
        ["train", *TINY, "size=0", "hydra.run.dir=r"],
        ["train", *TINY, "size=0", "++hydra.run.dir=r"],
        ["train", *TINY, "seed=1", "hydra.run.dir=r", "resume=auto"],
        ["compare", *TINY, "hydra.run.dir=r"],
        ["explain", *TINY, "hydra.run.dir=r"],
        ["train_network", "style=style.png", "pictures=r", "hydra.run.dir=r"],
    ],
)
def test_a_used_folder_is_refused_and_stays(words, ran, capsys, monkeypatch):
    monkeypatch.setenv("FOLDER", "r")
    before = files_in("r")
    refusal(capsys, *words)
    after = files_in("r")
    assert {name: after[name] for name in after if name not in LOGS} == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pastiche.png", "content_resized.png", "checkpoint.pt"])
def test_no_file_of_the_user_is_replaced(name, desk, capsys):
    Path(name).write_bytes(b"my own")
    line = refusal(capsys, "train", *TINY, "hydra.run.dir=.")
    assert f"holds {name} already; choose another folder" in line
    assert Path(name).read_bytes() == b"my own"
    assert sorted(files_in(".")) == sorted([name, "content.png", "style.png"])


def test_a_folder_with_other_files_is_a_runs_too(desk):
    assert train("hydra.run.dir=.") == 0
    assert images.read("pastiche.png").size == (24, 32)


def test_what_a_killed_run_has_begun_is_begun_again(desk):
    """It was killed after Hydra's files were written, and before run.json."""
    Path("r/.hydra").mkdir(parents=True)
    Path("r/.hydra/overrides.yaml").write_text("- seed=1\n")
    Path("r/train.log").touch()
    assert train("hydra.run.dir=r") == 0
    assert "seed" not in Path("r/.hydra/overrides.yaml").read_text()


def test_a_second_run_waits_for_no_first_one(desk):
    with locked(Path()), pytest.raises(UserError, match="another run is at work"):
        claimed(Path(), []).__enter__()
    with made_by({"a.yaml": "a"}), claimed(Path("r"), []):
        assert Path("r/.hydra/a.yaml").read_text() == "a"
        assert Path("r/.lock").exists()


@pytest.mark.slow
def test_a_sweep_leaves_another_sweep_alone(desk, capsys):
    sweep = ["train", *TINY, "hydra.sweep.dir=s", "-m"]
    assert call(capsys, *sweep, "seed=1,2")[0] == 0
    before = files_in("s")
    assert "s holds a sweep of other settings" in refusal(capsys, *sweep, "seed=3,4")
    assert files_in("s") == before
    status, printed = call(capsys, *sweep, "seed=1,2")
    assert (status, "add resume=auto to go on" in printed.err) == (1, True)
    after = files_in("s")
    assert {name for name in before if after[name] != before[name]} <= {"multirun.yaml"}
    assert after.keys() == before.keys()
    assert call(capsys, *sweep, "seed=1,2", "resume=auto")[0] == 0


def test_a_picture_is_written_though_the_folder_is_gone(desk, monkeypatch):
    """The log's first line is a warning that the metrics cannot be written."""
    real = images.write

    def gone(path, *args, **options):
        if Path(path).name == "out.png":
            shutil.rmtree("r")
            Path("r").write_text("no folder any more")
        real(path, *args, **options)

    monkeypatch.setattr(images, "write", gone)
    assert train("hydra.run.dir=r", "output=out.png") == 0
    assert images.read("out.png").size == (24, 32)


@pytest.mark.slow
def test_a_full_disk_at_the_end_keeps_the_checkpoint(desk, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(2, patch)
        assert train("hydra.run.dir=r") == 143
    write = images.write

    def full(path, *args, **options):
        write(path, *args, **options)
        limit.__enter__()

    limit = largest_file(10)
    with monkeypatch.context() as patch:
        patch.setattr(images, "write", full)
        status_of("train", "resume=r")
    limit.__exit__(None, None, None)
    assert record_of("r")["status"] == "running"
    assert Checkpoint(Path("r/checkpoint.pt")).load()["run"]["steps"] == 2
    assert status_of("train", "resume=r") == 0
    assert record_of("r")["status"] == "finished"


def test_a_full_disk_is_told_with_the_name_of_a_file(desk, capsys):
    with largest_file(1000):
        status, printed = call(capsys, "compare", *TINY, "hydra.run.dir=c")
    assert (status, "cannot write c" in printed.err.replace(f"{desk}/", "")) == (1, True)
