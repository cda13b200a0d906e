"""Sweeps in this process: arguments that start one, errors before the first job, and the end."""

from pathlib import Path

import pytest
from helpers import call, picture, refusal, write_pictures
from hydra.errors import MissingConfigException
from omegaconf import OmegaConf

from styletransfer.cli.arguments import parse
from styletransfer.errors import pip_install
from styletransfer.pictures import images
from styletransfer.runs.folder import read_run
from styletransfer.settings import TrainConfig
from styletransfer.settings.refusals import explain
from styletransfer.settings.registry import commands

TINY = ["experiment=tiny", "steps=2", "scales=1"]


@pytest.fixture
def desk(desk, tiny_vgg):
    """Return a folder with a style image, and a folder of photographs in it."""
    write_pictures("style.png", "photos [1]/b.png", "photos [1]/a,b.PNG")
    Path("photos [1]/notes.txt").touch()
    Path("empty").mkdir()
    return desk


def train(capsys, *words):
    return call(capsys, "train", *TINY, *words)


def test_each_picture_of_a_folder_is_a_job(desk):
    arguments = parse(["content=photos [1]"], TrainConfig)
    assert arguments.multirun
    assert arguments.overrides == ["content='photos [1]/a,b.PNG','photos [1]/b.png'"]
    write_pictures("a*.png", "ab.png")
    arguments = parse(["content=a*.png"], TrainConfig)
    assert (arguments.overrides, arguments.multirun) == (["content=a*.png"], False)


@pytest.mark.slow
def test_folders_and_pictures_beside_each_other(desk, capsys):
    Path("photos [1]/a,b.PNG").rename("photos [1]/${x}.PNG")
    words = ["-m", "content=style.png,photos [1]", "style='style.png'", "seed=1"]
    status, printed = train(capsys, *words)
    assert (status, printed.out.endswith("3 of 3 jobs succeeded\n")) == (0, True)
    jobs = sorted(Path("outputs/sweep").glob("*/*/[0-9]*"))
    assert [job.name for job in jobs] == ["0", "1", "2"]
    assert all((job / "pastiche.png").exists() for job in jobs)
    records = [OmegaConf.load(job / ".hydra/config.yaml") for job in jobs]
    contents = [OmegaConf.to_object(record)["content"] for record in records]
    assert contents == ["style.png", "photos [1]/${x}.PNG", "photos [1]/b.png"]
    assert [read_run(job).steps for job in jobs] == [2, 2, 2]


NAME = "${hydra.job.name}"
NAMED = "${hydra.job.override_dirname}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["content=empty"], "content=empty: there is no picture in that folder (.apng, "),
        (["content=photos [1]", "output=a.png"], "several jobs of a sweep would write a.png"),
        (["-m", "seed=1,2", "output=a.png"], "several jobs of a sweep would write a.png"),
        (["-m", "seed=1,2", "output=a.png,b.png"], "several jobs of a sweep would write a.png,b"),
        (["-m", "output=a.png,a.png"], "several jobs of a sweep would write a.png,a.png; leave "),
        (["-m", "seed=1,2", "hydra.sweep.subdir=x"], "hydra.sweep.subdir=x gives several"),
        (["-m", "seed=1,2", f"hydra.sweep.subdir={NAME}"], f"hydra.sweep.subdir={NAME} gives"),
        (["-m", "seed=1,1", "hydra.sweep.subdir=${seed}"], "hydra.sweep.subdir=${seed} gives"),
        (["-m", "seed=1,1", f"hydra.sweep.subdir={NAMED}"], f"hydra.sweep.subdir={NAMED} gives"),
        (["-m", "seed=1,2", "hydra.sweep={subdir:x}"], "hydra.sweep.subdir={subdir:x} gives"),
        (["-m", "size=24,big"], "size: Value 'big' of type 'str' could not be converted"),
        (["-m", "seed=glob(*)"], "there is no job: a key is to be swept over no value"),
        (["-m", "seed=1,2", "hydra.sweeper._target_=a.B"], "Invalid plugin 'a.B'"),
    ],
)
def test_refused_before_the_first_job(words, message, desk, capsys):
    before = sorted(desk.rglob("*"))
    assert refusal(capsys, "train", *TINY, *words).startswith(f"error: {message}")
    assert sorted(desk.rglob("*")) == before


def test_a_launcher_that_is_not_installed():
    for launcher, extra in (("joblib", "sweep"), ("submitit_slurm", "sweep"), ("ray", "ray")):
        missing = MissingConfigException("", f"hydra/launcher/{launcher}", ["basic"])
        said = f"{launcher} is not installed; run: {pip_install(extra)}"
        assert explain(missing) == f"hydra/launcher={said}"


@pytest.mark.slow
def test_ctrl_c_ends_a_sweep(desk, capsys, monkeypatch):
    jobs = []

    def interrupted(config, folder):
        jobs.append(folder)
        raise KeyboardInterrupt

    monkeypatch.setattr(commands()["train"], "code", interrupted)
    status, printed = train(capsys, "-m", "seed=1,2")
    assert (status, printed.err, len(jobs)) == (130, "error: interrupted\n", 1)
    assert not Path("outputs").exists()


@pytest.mark.slow
def test_what_failed_once_and_then_succeeds(desk, capsys):
    words = ["-m", "content='photos [1]/b.png'", "style=style.png,late.png"]
    again = [*words, "hydra.sweep.dir=sweep", "resume=auto"]
    assert train(capsys, *again)[0] == 1
    assert Path("sweep/1/error.txt").read_text() == "late.png does not exist; check the path\n"
    painted = Path("sweep/0/pastiche.png").stat().st_mtime_ns
    images.write(Path("late.png"), picture(5, 24, 32))
    status, printed = train(capsys, *again)
    assert (status, "already finished" in printed.out) == (0, True)
    assert Path("sweep/0/pastiche.png").stat().st_mtime_ns == painted
    assert Path("sweep/1/pastiche.png").exists()
    assert not Path("sweep/1/error.txt").exists()
