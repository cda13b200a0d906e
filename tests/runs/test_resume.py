"""Nothing is lost: runs that are killed, stopped, damaged or shared, and what goes on after them.

The script runs in processes of its own where it is killed, and in this one elsewhere.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from helpers import ROOT, picture

from styletransfer import cli
from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.runs import recipe as record
from styletransfer.runs.watchers import Metrics
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.lock import locked

SCRIPT = ROOT / "scripts" / "train.py"

pytestmark = pytest.mark.usefixtures("signals")


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("content.png", "style.png")):
        images.write(name, picture(seed, 24, 32))
    return tmp_path


def arguments(*more, steps=12):
    return [
        "experiment=tiny",
        "content=content.png",
        "style=style.png",
        f"steps={steps}",
        "snapshot_every=0",
        *more,
    ]


def call(script, monkeypatch, capsys, *overrides):
    """Run the script in this process; return its exit status and what it printed."""
    monkeypatch.setattr(sys, "argv", ["train.py", *overrides])
    status = 0
    try:
        script()
    except SystemExit as exit:
        status = exit.code or 0
    return status, capsys.readouterr()


def error_of(printed):
    lines = re.split(r"[\r\n]+", printed.err)
    (line,) = [line for line in lines if line.strip() and "step/s" not in line]
    return line


@pytest.fixture
def begun(desk, tiny_vgg, monkeypatch, capsys):
    """A run of twelve steps that was stopped after eight, and the bytes it should come to."""
    script = cli.script("train")
    assert call(script, monkeypatch, capsys, *arguments("hydra.run.dir=whole"))[0] == 0
    with monkeypatch.context() as patch:
        stop_after(8, patch)
        status, printed = call(script, patch, capsys, *arguments("hydra.run.dir=run"))
    assert (status, "go on with resume=" in printed.out) == (143, True)
    assert len(steps_of("run")) == 8
    return script


def stop_after(step, monkeypatch, number=signal.SIGTERM):
    """Send a signal while a callback works."""
    real = Metrics.__call__

    def pressed(self, iterate):
        real(self, iterate)
        if iterate.step == step:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Metrics, "__call__", pressed)


def steps_of(folder):
    lines = Path(folder, "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["step"] for line in lines]


def status_of(folder):
    return json.loads(Path(folder, "run.json").read_text())["status"]


def assert_finished(folder="run"):
    for name in ("pastiche.png", "metrics.jsonl"):
        assert Path(folder, name).read_bytes() == Path("whole", name).read_bytes()
    assert not list(Path(folder).glob("checkpoint*"))
    assert status_of(folder) == "finished"


# Killed, and stopped.


def test_killed_runs_end_with_equal_bytes(tmp_path, request):
    """`--kills=100` kills more of them."""
    kills = request.config.getoption("--kills")
    command = [sys.executable, str(ROOT / "tests" / "kill_runs.py"), str(tmp_path), str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120 * kills)
    assert done.returncode == 0, done.stderr
    assert "equal bytes" in done.stdout


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_a_process(number, status, desk):
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *arguments("hydra.run.dir=run", steps=10**6)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    try:
        until = time.monotonic() + 300
        while not (Path("run", "metrics.jsonl").exists() and steps_of("run")):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == status, err
    assert "Traceback" not in err
    assert images.read("run/pastiche.png").size == (24, 32)
    state = Checkpoint(Path("run", "checkpoint.pt")).load()
    assert steps_of("run") == [*range(1, state["run"]["steps"] + 1)]
    assert status_of("run") == "stopped"
    assert out.splitlines()[-1] == str(desk / "run" / "pastiche.png")


def test_resume_goes_on_with_the_runs_own_settings(begun, monkeypatch, capsys):
    config = Path("run", ".hydra", "config.yaml").read_bytes()
    status, printed = call(begun, monkeypatch, capsys, "resume=run")
    assert status == 0, printed.err
    assert_finished()
    assert Path("run", ".hydra", "config.yaml").read_bytes() == config
    assert not Path("outputs").exists()


def test_resume_from_another_folder(begun, monkeypatch, capsys, desk):
    Path("elsewhere").mkdir()
    monkeypatch.chdir(desk / "elsewhere")
    assert call(begun, monkeypatch, capsys, "resume=../run")[0] == 0
    monkeypatch.chdir(desk)
    assert_finished()


def test_auto_goes_on_begins_and_ends(begun, monkeypatch, capsys):
    for folder in ("run", "new"):
        given = arguments("resume=auto", f"hydra.run.dir={folder}")
        assert call(begun, monkeypatch, capsys, *given)[0] == 0
        assert_finished(folder)
        before = Path(folder, "run.json").stat().st_mtime_ns
        status, printed = call(begun, monkeypatch, capsys, *given)
        assert (status, printed.out.splitlines()[0]) == (0, "already finished")
        assert Path(folder, "run.json").stat().st_mtime_ns == before


def test_a_run_without_a_checkpoint_begins_again(begun, monkeypatch, capsys):
    Path("run", "checkpoint.pt").unlink()
    assert call(begun, monkeypatch, capsys, "resume=run")[0] == 0
    assert_finished()


def test_without_resume_a_run_begins_afresh(begun, monkeypatch, capsys):
    assert call(begun, monkeypatch, capsys, *arguments("hydra.run.dir=run"))[0] == 0
    assert_finished()


def test_a_damaged_checkpoint_is_one_line_or_the_one_before(begun, monkeypatch, capsys):
    path = Path("run", "checkpoint.pt")
    path.write_bytes(path.read_bytes()[:-1])
    before = Path("run", "metrics.jsonl").read_bytes()
    status, printed = call(begun, monkeypatch, capsys, "resume=run")
    assert status == 1
    assert "checkpoint.pt is damaged or was tampered with" in error_of(printed)
    assert Path("run", "metrics.jsonl").read_bytes() == before


def test_what_is_no_runs_checkpoint(begun, monkeypatch, capsys):
    """Whole, but of another program, or made by hand."""
    checkpoint = Checkpoint(Path("run", "checkpoint.pt"))
    whole = checkpoint.load()
    for wrong in (
        {"recipe": {}},
        whole | {"description": None},
        whole | {"description": {}},
        whole | {"run": {}},
        whole | {"run": whole["run"] | {"index": 99}},
        whole | {"run": whole["run"] | {"image": "x"}},
        whole | {"run": whole["run"] | {"level": 3}},
    ):
        checkpoint.save(wrong)
        status, printed = call(begun, monkeypatch, capsys, "resume=run")
        assert (status, "is no run's checkpoint" in error_of(printed)) == (1, True)
        assert status_of("run") == "stopped"


# Refused.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["resume=nowhere"], "nowhere is not the folder of a run: it holds no run.json"),
        (["resume=content.png"], "content.png is not the folder of a run"),
        (["resume=run", "size=64"], "size=64 differs from the run's own size=32"),
        (["resume=run", "optimizer=adam"], "optimizer.name=adam differs from the run's own"),
        (["resume=run", "objective.tv_weight=1"], r"objective.tv_weight=1.0 differs from"),
        (["resume=run", "experiment=tutorial_0_3"], "experiment= would change the settings that"),
        (["resume=run", "experiment=tiny"], "experiment= would change the settings that the run"),
        (["resume=run", "experiment=tiny", "size=64"], "size=64 differs from the run's own size"),
        (["resume=run", "content=style.png"], "style.png differs from the run's own content="),
        (["resume=auto", *arguments("hydra.run.dir=run", steps=13)], "steps=13 differs from the"),
        (["resume=run", "checkpoint_every=-1"], "checkpoint_every=-1.0 must be 0 seconds or more"),
        (["resume=run", "checkpoint_every=inf"], "checkpoint_every=inf must be"),
    ],
)
def test_what_differs_is_named(given, message, begun, monkeypatch, capsys, desk):
    before = sorted(desk.rglob("*"))
    status, printed = call(begun, monkeypatch, capsys, *given)
    assert message in error_of(printed)
    assert status == 1
    assert sorted(desk.rglob("*")) == before


def test_what_changes_no_pixel_may_differ(begun, monkeypatch, capsys):
    given = ["resume=run", "steps=12", "snapshot_every=10", "checkpoint_every=0", "output=new.png"]
    assert call(begun, monkeypatch, capsys, *given)[0] == 0
    assert Path("new.png").read_bytes() == Path("whole", "pastiche.png").read_bytes()
    assert Path("run", "snapshots", "step_00010.png").exists()


def test_a_dry_run_of_what_is_left(begun, monkeypatch, capsys, desk):
    before = sorted(desk.rglob("*"))
    status, printed = call(begun, monkeypatch, capsys, "resume=run", "dry_run=true")
    assert (status, "32 x 24: 6 steps" in printed.out) == (0, True)
    assert sorted(desk.rglob("*")) == before


@pytest.mark.parametrize("name", ["content.png", "style.png"])
def test_pictures_that_have_changed_or_gone(name, begun, monkeypatch, capsys):
    images.write(name, picture(9, 24, 32))
    status, printed = call(begun, monkeypatch, capsys, "resume=run")
    assert (status, "has changed since the run began" in error_of(printed)) == (1, True)
    Path(name).unlink()
    status, printed = call(begun, monkeypatch, capsys, "resume=run")
    assert (status, f"{name} does not exist; check the path" in error_of(printed)) == (1, True)
    assert status_of("run") == "stopped"


def test_another_version(begun, monkeypatch, capsys):
    monkeypatch.setattr(record, "__version__", "9.9")
    status, printed = call(begun, monkeypatch, capsys, "resume=run")
    assert re.search(r"begun by version \S+, and this is 9\.9", error_of(printed))
    assert status == 1


def test_other_threads_are_a_warning(begun, monkeypatch, capsys):
    monkeypatch.setattr(record.torch, "get_num_threads", lambda: 99)
    status, printed = call(begun, monkeypatch, capsys, "resume=run")
    assert status == 0
    assert "threads 1, and goes on with 99: the last bits may differ" in printed.out


def test_a_damaged_record(begun, monkeypatch, capsys):
    whole = json.loads(Path("run", "run.json").read_text())
    wrong = [
        {**whole, "status": "finished", "picture": 3},
        {key: value for key, value in whole.items() if key != "picture"},
        {**whole, "config": {"nonsense": 1}},
        {**whole, "config": {"size": 32}},
    ]
    for text in ("{", "{}", "[]", *map(json.dumps, wrong)):
        Path("run", "run.json").write_text(text)
        status, printed = call(begun, monkeypatch, capsys, "resume=run")
        assert re.search("damaged|another version", error_of(printed))
        assert status == 1


def test_two_runs_in_one_folder(begun, monkeypatch, capsys):
    with locked(Path("run")):
        status, printed = call(begun, monkeypatch, capsys, "resume=run")
    assert (status, "another run is at work in run" in error_of(printed)) == (1, True)


# Nothing that is written costs the run.


def test_signals_while_files_are_written_wait(desk, tiny_vgg, monkeypatch, capsys):
    """The picture and the checkpoint are whole, however often Ctrl-C is pressed meanwhile."""
    stop_after(5, monkeypatch, signal.SIGINT)
    write, save = images.write, Checkpoint.save

    def pressed_while_writing(*args, **options):
        os.kill(os.getpid(), signal.SIGINT)
        write(*args, **options)
        os.kill(os.getpid(), signal.SIGTERM)

    def pressed_while_saving(self, state):
        os.kill(os.getpid(), signal.SIGINT)
        save(self, state)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(images, "write", pressed_while_writing)
    monkeypatch.setattr(Checkpoint, "save", pressed_while_saving)
    status, _ = call(cli.script("train"), monkeypatch, capsys, *arguments("hydra.run.dir=run"))
    assert status == 130
    assert images.read("run/pastiche.png").size == (24, 32)
    assert Checkpoint(Path("run", "checkpoint.pt")).load()["run"]["steps"] == 5


def test_a_signal_that_comes_too_late_stops_nothing_but_is_told(
    desk, tiny_vgg, monkeypatch, capsys
):
    stop_after(12, monkeypatch, signal.SIGINT)
    status, printed = call(cli.script("train"), monkeypatch, capsys, *arguments("hydra.run.dir=a"))
    assert status == 130
    assert images.read("a/pastiche.png").size == (24, 32)
    assert printed.out.splitlines()[-1].endswith("pastiche.png")


def test_a_signal_while_a_run_is_loaded(begun, monkeypatch, capsys):
    """Loading is finished; then the run is stopped where it was."""
    load = Checkpoint.load

    def pressed(self):
        os.kill(os.getpid(), signal.SIGTERM)
        return load(self)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "load", pressed)
        status, printed = call(begun, patch, capsys, "resume=run")
    assert (status, "go on with resume=run" in printed.out) == (143, True)
    assert len(steps_of("run")) == 8
    assert call(begun, monkeypatch, capsys, "resume=run")[0] == 0
    assert_finished()


def test_no_checkpoints_on_demand(desk, tiny_vgg, monkeypatch, capsys):
    stop_after(5, monkeypatch)
    given = arguments("hydra.run.dir=run", "checkpoint_every=0")
    status, printed = call(cli.script("train"), monkeypatch, capsys, *given)
    assert (status, "resume" in printed.out) == (143, False)
    assert not Path("run", "checkpoint.pt").exists()


def test_a_checkpoint_that_cannot_be_written_costs_nothing(desk, tiny_vgg, monkeypatch, capsys):
    Path("run", "checkpoint.pt").mkdir(parents=True)
    Path("run", "checkpoint.previous.pt").touch()
    monkeypatch.setattr(Checkpoint, "remove", lambda self: None)
    given = arguments("hydra.run.dir=run", "checkpoint_every=1e-9")
    status, printed = call(cli.script("train"), monkeypatch, capsys, *given)
    assert status == 0
    assert printed.out.count("going on without checkpoints") == 1
    assert images.read("run/pastiche.png").size == (24, 32)


def test_a_run_that_is_killed_after_its_end_is_finished(begun, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "remove", lambda self: sys.exit(9))
        assert call(begun, patch, capsys, "resume=run")[0] == 9
    assert status_of("run") == "finished"
    assert call(begun, monkeypatch, capsys, "resume=run")[1].out.startswith("already finished")
    assert Path("run", "pastiche.png").read_bytes() == Path("whole", "pastiche.png").read_bytes()


@pytest.mark.parametrize(("allowed", "where"), [(1, "run/pastiche.png"), (0, "styletransfer-")])
def test_a_picture_that_cannot_be_written_goes_elsewhere(
    allowed, where, desk, tiny_vgg, monkeypatch, capsys
):
    """Into the run folder, or among temporary files; the line says where."""
    monkeypatch.setattr(tempfile, "tempdir", str(desk / "temporary"))
    real, refused = images.write, []

    def full(path, *args, **options):
        if len(refused) < 2 - allowed:
            refused.append(path)
            raise UserError(f"cannot write {path}: No space left on device")
        real(path, *args, **options)

    monkeypatch.setattr(images, "write", full)
    given = arguments("hydra.run.dir=run", "output=out.png")
    status, printed = call(cli.script("train"), monkeypatch, capsys, *given)
    line, place = error_of(printed), printed.out.splitlines()[-1]
    assert line == (
        f"error: cannot write out.png: No space left on device; the picture is at {place} instead"
    )
    assert where in place
    assert images.read(place).size == (24, 32)
    assert status == 1


@pytest.mark.parametrize("error", ["2>&-", "2>/dev/full"])
def test_a_run_without_a_standard_error(error, desk):
    command = " ".join([sys.executable, str(SCRIPT), *arguments("hydra.run.dir=run"), error])
    done = subprocess.run(
        ["bash", "-c", command], env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False, timeout=300
    )
    assert done.returncode == 0
    assert images.read("run/pastiche.png").size == (24, 32)
