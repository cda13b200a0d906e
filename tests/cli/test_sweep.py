"""Sweeps in this process: what makes one, what is refused before the first job, how they end."""

from pathlib import Path

import pytest
from helpers import picture
from hydra.errors import MissingConfigException

from styletransfer.cli import main
from styletransfer.commands.gallery.runs import Unreadable, find_runs
from styletransfer.pictures import images
from styletransfer.settings.check import explain

TINY = ["experiment=tiny", "steps=2", "scales=1"]


@pytest.fixture
def desk(tmp_path, monkeypatch, tiny_vgg):
    """A folder with a style, and photographs in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("style.png", "photos [1]/b.png", "photos [1]/a,b.PNG")):
        images.write(Path(name), picture(seed, 24, 32))
    Path("photos [1]/notes.txt").touch()
    Path("empty").mkdir()
    return tmp_path


def train(capsys, *arguments):
    """Run `styletransfer train`; return its status and what it printed."""
    status = 0
    try:
        main(["train", *TINY, *arguments])
    except SystemExit as exit:
        status = exit.code
    return status, capsys.readouterr()


def contents():
    """The names of the contents that were painted, in the order of the jobs."""
    overrides = sorted(Path().rglob(".hydra/overrides.yaml"))
    lines = [line for path in overrides for line in path.read_text().splitlines()]
    return [line.partition("content=")[2].strip("'") for line in lines if "content=" in line]


@pytest.mark.parametrize(
    "content",
    ["photos [1]", "photos [1]/", "photos [1]/*", "*/*.[pP]*", "photos ?1]/*", "**/*b.*"],
)
def test_each_picture_of_a_folder_is_a_job(content, desk, capsys):
    fits = "*.[pP]*" not in content  # brackets are letters
    status, printed = train(capsys, f"content={content}", "style=style.png")
    assert status == (0 if fits else 1)
    if fits:
        assert printed.out.endswith("2 of 2 jobs succeeded\n")
        assert [Path(name).name for name in contents()] == ["a,b.PNG", "b.png"]
        assert len([*Path().rglob("pastiche.png")]) == 2


def test_folders_and_pictures_beside_each_other(desk, capsys):
    words = ["content=style.png,photos [1]/b*", "style='style.png'", "seed=1,2"]
    assert train(capsys, "-m", *words)[0] == 0
    names = ["style.png"] * 2 + ["photos [1]/b.png"] * 2
    assert contents() == names


def test_a_file_of_that_very_name_is_a_file(desk, capsys):
    for name in ("a*.png", "ab.png"):
        images.write(Path(name), picture(0, 24, 32))
    status, printed = train(capsys, "content=a*.png", "style=style.png", "dry_run=true")
    assert (status, "jobs succeeded" in printed.out) == (0, False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["content=empty"], "content=empty: there is no picture in that folder (.jpg, "),
        (["content=photos/*.jpg"], "content=photos/*.jpg: no picture has a name like that"),
        (["content=style.png,*.gif", "-m"], "content=style.png,*.gif: no picture has a name"),
        (["content=photos [1]", "output=a.png"], "all jobs of a sweep would write a.png"),
        (["hydra/launcher=joblib"], "hydra/launcher=joblib is for sweeps; add --multirun"),
        (["-m", "hydra/launcher=slurm", "seed=1,2"], "unknown hydra/launcher 'slurm'; there are"),
        (["-m", "seed=1,2", "region_styles={red:1},{red:[2]}"], "region_styles.red=[2] must be a"),
        (["-m", "seed=1,99999999999999999999"], "seed=99999999999999999999 is too large"),
        (["-m", "--run", "seed=1,2"], "--run is for one job, and --multirun for a sweep"),
        (["-m", "seed=1,2", "hydra.sweeper._target_=a.B"], "only Hydra's own sweeper is used here"),
        (["-m", "seed=1,2", "--config-dir", "gone"], "Additional config directory 'gone'"),
    ],
)
def test_refused_before_the_first_job(words, message, desk, capsys):
    before = sorted(desk.rglob("*"))
    status, printed = train(capsys, *words)
    assert (status, len(printed.err.splitlines())) == (1, 1)
    assert printed.err.startswith(f"error: {message}")
    assert sorted(desk.rglob("*")) == before


@pytest.mark.parametrize(
    ("launcher", "extra"), [("joblib", "sweep"), ("submitit_slurm", "sweep"), ("ray", "ray")]
)
def test_a_launcher_that_is_not_installed(launcher, extra):
    missing = MissingConfigException("", f"hydra/launcher/{launcher}", ["basic"])
    advice = f"pip install 'styletransfer[{extra}]'"
    assert explain(missing, "train") == f"hydra/launcher={launcher} is not installed; run: {advice}"


def test_a_mistake_of_ours_in_one_job_keeps_its_traceback(desk, capsys, monkeypatch):
    def mistaken(config, folder):
        if config.seed == 1:
            raise ZeroDivisionError("ours")
        (folder / "made").touch()

    monkeypatch.setattr("styletransfer.commands.train.command.main", mistaken)
    status, printed = train(capsys, "-m", "seed=0,1,2", "hydra.sweep.dir=sweep")
    assert status == 1
    assert "ZeroDivisionError: ours" in printed.err
    assert printed.err.splitlines()[-1] == (
        "error: 2 of 3 jobs succeeded; failed: #1; why is in error.txt in their folders under "
        f"{desk / 'sweep'}"
    )
    assert "Traceback" in Path("sweep/1/error.txt").read_text()
    assert Path("sweep/0/made").exists()
    assert Path("sweep/2/made").exists()


def test_what_failed_once_and_then_succeeds(desk, capsys):
    words = ["-m", "content='photos [1]/b.png'", "style=style.png,late.png"]
    again = [*words, "hydra.sweep.dir=sweep", "resume=auto"]
    assert train(capsys, *again)[0] == 1
    assert Path("sweep/1/error.txt").read_text() == "late.png does not exist; check the path\n"
    assert find_runs([Path("sweep")])[1] == [
        Unreadable("1", "late.png does not exist; check the path")
    ]
    painted = Path("sweep/0/pastiche.png").stat().st_mtime_ns
    images.write(Path("late.png"), picture(5, 24, 32))
    status, printed = train(capsys, *again)
    assert (status, "already finished" in printed.out) == (0, True)
    assert Path("sweep/0/pastiche.png").stat().st_mtime_ns == painted
    assert Path("sweep/1/pastiche.png").exists()
    assert not Path("sweep/1/error.txt").exists()
