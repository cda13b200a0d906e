"""The console command: which commands there are, any file name, help, folders, and how it ends."""

import errno
import io
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT, picture
from omegaconf import OmegaConf

from styletransfer import __version__, commands
from styletransfer.cli import main, script
from styletransfer.cli.errors import one_line_errors
from styletransfer.config.commands import COMMANDS
from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.settings import SCHEMAS, compose, settings_of
from styletransfer.settings.command_line import quote_path
from styletransfer.settings.paths import new_folder

# A run that takes a moment.
TINY = ["experiment=tiny", "steps=2", "scales=1"]


@pytest.fixture
def desk(tmp_path, monkeypatch, tiny_vgg):
    """An empty folder but for two pictures."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("content.png", "style.png")):
        images.write(name, picture(seed, 24, 32))
    return tmp_path


def call(capsys, *arguments):
    """Run the console command in this process; return its status and what it printed."""
    status = 0
    try:
        main(arguments)
    except SystemExit as exit:
        status = exit.code
    return status, capsys.readouterr()


def process(*command, unbuffered=False, **options):
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | options.pop("env", {})
    environment.pop("PYTHONUNBUFFERED", None)
    if unbuffered:
        environment["PYTHONUNBUFFERED"] = "1"
    return subprocess.run(command, env=environment, text=True, timeout=300, check=False, **options)


# Commands.


def test_the_overview_has_one_line_for_each_command(capsys):
    status, printed = call(capsys, "--help")
    assert (status, printed.err) == (0, "")
    lines = printed.out.splitlines()
    assert len(lines) < 24
    for name in COMMANDS:
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert COMMANDS[name].summary in line
        assert len(line) <= 80
    assert call(capsys)[1] == printed


def test_every_folder_of_commands_is_a_command():
    folders = {path.name for path in Path(commands.__path__[0]).iterdir() if path.is_dir()}
    assert set(COMMANDS) == folders - {"__pycache__"}
    assert set(SCHEMAS) <= set(COMMANDS)


def test_every_script_is_an_alias():
    for path in (ROOT / "scripts").glob("*.py"):
        assert len(path.read_text().splitlines()) <= 11


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("trian", "error: unknown command 'trian'; did you mean train?"),
        ("xyzzy", "error: unknown command 'xyzzy'; there are apply, benchmark,"),
        ("size=3", "error: 'size=3' is no command; name one first: styletransfer train size=3"),
    ],
)
def test_unknown_commands(name, message, capsys):
    status, printed = call(capsys, name)
    assert status == 1
    assert printed.err.startswith(message)
    assert len(printed.err.splitlines()) == 1


def test_version(capsys):
    assert call(capsys, "--version") == (0, (f"styletransfer {__version__}\n", ""))
    assert call(capsys, "train", "--version") == (0, (f"styletransfer {__version__}\n", ""))


# File names.

NAMES = [
    "été (1).png",
    "a=b.png",
    "a,b.png",
    "[x].png",
    "{x}.png",
    "it's.png",
    'say "hi".png',
    "two  spaces .png",
    "$HOME.png",
    "${now:%H}.png",
    "\\${x}.png",
    "back\\slash.png",
    "#%&;:@!?*~.png",
    "null.png",
    "-m.png",
    "choice(a,b).png",
    "日本.png",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_file_name_works_as_typed(name):
    typed = quote_path(f"content={name}", ["content"])
    assert settings_of(compose("train", [typed]), "train").content == name


@pytest.mark.parametrize("name", ["été (1)=[a,b].png", "${x}'.png"])
def test_such_pictures_are_painted(name, desk, capsys):
    Path("content.png").rename(name)
    paths = [f"content={name}", "style=style.png", f"output=new/{name}"]
    status, printed = call(capsys, "train", *TINY, *paths)
    assert status == 0
    assert printed.out.endswith(f"new/{name}\n")
    assert Path("new", name).exists()


def test_home_is_expanded(desk, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(desk))
    paths = ["content=~/content.png", "style=~/style.png", "output=~/out.png"]
    assert call(capsys, "train", *TINY, *paths)[0] == 0
    assert Path("out.png").exists()


def test_what_is_left_to_hydra():
    keys = ["content", "output"]
    for override in (
        "output=null",
        "content='a b.png'",
        'content="a,b.png"',
        "size=a b",
        "content",
    ):
        assert quote_path(override, keys) == override
    assert quote_path("hydra.run.dir=a,b", keys) == "hydra.run.dir='a,b'"
    assert quote_path("hydra.run.dir=${now:%H}", keys) == "hydra.run.dir=${now:%H}"


def test_commas_separate_in_a_sweep_only():
    def quote(value):
        return quote_path(f"style={value}", ["style"], sweep=True)

    assert quote("a (1).png,b.png") == "style='a (1).png','b.png'"
    assert quote("'a,b.png',c.png") == "style='a,b.png',c.png"
    assert quote("choice(a,b)") == "style=choice(a,b)"


def test_a_sweep_over_pictures(desk, capsys):
    Path("style.png").rename("it's.png")
    sweep = ["--multirun", "content=content.png", "style=it's.png,content.png"]
    assert call(capsys, "train", *TINY, *sweep)[0] == 0
    jobs = sorted(Path("outputs/sweep").glob("*/*/[0-9]*"))
    assert [job.name for job in jobs] == ["0", "1"]
    styles = [OmegaConf.load(job / ".hydra/config.yaml").style for job in jobs]
    assert styles == ["it's.png", "content.png"]
    assert all((job / "pastiche.png").exists() for job in jobs)


# Help, and what else is printed instead of a run.


@pytest.mark.parametrize("name", SCHEMAS)
def test_help_says_what_each_key_means(name, capsys):
    status, printed = call(capsys, name, "--help")
    assert (status, printed.err) == (0, "")
    lines = printed.out.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100
    for field in SCHEMAS[name].__dataclass_fields__:
        shown = f"\n{field}=" in printed.out or field in lines[-4]
        assert shown is (field not in COMMANDS[name].unused)
    for group in ("features", "teacher", "bundled"):
        if group in SCHEMAS[name].__dataclass_fields__:
            told = call(capsys, name, "--help", group)[1].out
            assert f"{group}.pooling=max" in told
            assert "max (as trained) or average" in told


def unwrapped(text):
    """Help as one long line."""
    return " ".join(text.split())


def test_help_shows_defaults_presets_and_meanings(capsys):
    text = call(capsys, "train", "--help", "size=64", "experiment=gatys_2016")[1].out
    assert "\nsize=64 " in text
    assert "\nsteps=1000 " in text
    assert "Longer side of the pastiche in pixels" in text
    assert "\ncontent=content/coffee.jpg " in text
    assert (
        "bold, faithful, gatys_2016, painterly, relay, tiny, tutorial_0_3, tutorial_0_4"
        in unwrapped(text)
    )
    told = call(capsys, "compare", "--help")[1].out
    assert "\noutput=null                 Where a copy of the overview goes" in told
    assert "\nexperiment= " in call(capsys, "train", "--help")[1].out


def test_what_explain_does_not_use_is_no_group_of_its_help(capsys):
    status, printed = call(capsys, "explain", "--help", "optimizer")
    message = "error: --help optimizer: choose one of features, loss_mode, objective\n"
    assert (status, printed.err) == (1, message)


def test_help_on_what_does_not_exist(capsys):
    status, printed = call(capsys, "train", "--help", "objektive")
    assert status == 1
    assert printed.err == (
        "error: --help objektive: choose one of features, loss_mode, optimizer, objective\n"
    )


def test_help_needs_no_torch():
    code = (
        "import sys; from styletransfer.cli import script; script('train')(['--help']);"
        "print(*sys.modules)"
    )
    done = process(sys.executable, "-c", code, capture_output=True)
    assert "Longer side" in done.stdout
    modules = set(done.stdout.splitlines()[-1].split())
    assert not {"torch", "torchvision", "matplotlib", "tqdm", "numpy"} & modules


def test_the_default_job_needs_no_torchvision_and_no_compiler(desk):
    """Which take a second or two to import, a tenth of the default job."""
    code = (
        "import sys; from styletransfer.cli import main;"
        "main(['train', 'size=32', 'steps=1', 'device=cpu']); print(*sys.modules)"
    )
    done = process(sys.executable, "-c", code, capture_output=True)
    modules = set(done.stdout.splitlines()[-1].split())
    assert "torch" in modules
    assert not {"torchvision", "matplotlib", "torch._dynamo", "sympy"} & modules


def test_looking_at_a_config_makes_no_folder(desk, capsys):
    status, printed = call(capsys, "train", "--cfg", "all", "--resolve", "size=64")
    assert status == 0
    assert "\nsize: 64\n" in printed.out
    assert call(capsys, "train", "--info", "defaults")[0] == 0
    assert not Path("outputs").exists()


# Sweeps.


def of_jobs(name):
    return sorted(str(path.relative_to("outputs")) for path in Path("outputs").rglob(name))


def test_a_bad_job_does_not_cost_the_others(desk, capsys):
    paths = ["content=content.png", "style=style.png"]
    status, printed = call(capsys, "train", *TINY, *paths, "-m", "size=32,0,24")
    errors = [line for line in printed.err.splitlines() if line.startswith("error: ")]
    assert (status, len(errors), errors[0]) == (1, 2, "error: size=0 must be 1 or more")
    assert errors[1].startswith("error: 2 of 3 jobs succeeded; failed: #1; why is in error.txt")
    assert [Path(job).parent.name for job in of_jobs("pastiche.png")] == ["0", "2"]
    (why,) = Path("outputs").glob("sweep/*/*/*/error.txt")
    assert (why.parent.name, why.read_text()) == ("1", "size=0 must be 1 or more\n")


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        (["size=24,big"], "size: Value 'big' of type 'str' could not be converted"),
        (["size=24,32", "stepps=3"], "unknown key stepps; did you mean steps?"),
        (["size=24,32", "+stepps=3"], "unknown key stepps; did you mean steps?"),
        (["size=24,32", "++optimizer.hist=3"], "unknown key optimizer.hist; did you mean"),
        (["features=bundled,vgg20"], "unknown features 'vgg20'; there are"),
        (["seed=glob(*)"], "there is no job: a key is to be swept over no value"),
    ],
)
def test_what_no_job_can_take_is_refused_before_the_first(sweep, message, desk, capsys):
    before = sorted(desk.rglob("*"))
    status, printed = call(capsys, "train", *TINY, "-m", *sweep)
    assert (status, len(printed.err.splitlines())) == (1, 1)
    assert printed.err.startswith(f"error: {message}")
    assert sorted(desk.rglob("*")) == before


@pytest.mark.parametrize("command", SCHEMAS)
def test_every_command_sweeps_in_a_folder_of_its_own(command, desk, capsys):
    status, printed = call(capsys, command, "--cfg", "hydra")
    assert status == 0
    assert "sweep:\n    dir: ${new_folder:outputs/sweep/" in printed.out


def test_ctrl_c_ends_a_sweep(desk, capsys, monkeypatch):
    jobs = []

    def interrupted(config, folder):
        jobs.append(folder)
        raise KeyboardInterrupt

    monkeypatch.setattr("styletransfer.commands.train.command.main", interrupted)
    status, printed = call(capsys, "train", "-m", "seed=1,2")
    assert (status, printed.err, len(jobs)) == (130, "error: interrupted\n", 1)
    assert not Path("outputs").exists()


def test_presets_of_ones_own(desk, capsys):
    Path("my/experiment").mkdir(parents=True)
    Path("my/experiment/mine.yaml").write_text("# @package _global_\nsize: 77\n")
    own = ["--config-dir", "my", "experiment=mine"]
    status, printed = call(capsys, "train", *own, "--cfg", "job")
    assert status == 0
    assert "size: 77\n" in printed.out
    text = call(capsys, "train", *own, "--help")[1].out
    assert "\nsize=77 " in text
    assert "gatys_2016, mine, painterly, relay, tiny" in unwrapped(text)


# Values that Hydra takes or refuses in words of its own.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--help", ""], "--help : choose one of features, "),
        (["=3"], "cannot understand '=3'; write KEY=VALUE"),
        (["experiment=null"], "experiment=null: give one name, or leave it out"),
        (["features=[1,2]"], "features=[1,2]: give one name, or leave it out"),
        (["objective.style_layers=${size}"], "objective.style_layers=32 must be a list"),
        (["-m", "output=(a).png", "seed=1,2"], "all jobs of a sweep would write (a).png"),
        (["-m", "output='a,b.png'", "seed=1,2"], "all jobs of a sweep would write 'a,b.png'"),
    ],
)
def test_bad_values_end_in_one_line(arguments, message, desk, capsys):
    status, printed = call(capsys, "train", *TINY, *arguments)
    assert (status, len(printed.err.splitlines())) == (1, 1)
    assert printed.err.startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        ("\tsize: 3\n", r"cannot start any token .*mine\.yaml\", line 1"),
        ("a: [1,\n", r"expected the node content.*mine\.yaml\", line 2"),
        ("3\n", "Invalid loaded object type: int"),
        ("# @package _global_\nsise: 3\n", "Key 'sise' not in 'TrainConfig'"),
        ("# @package _global_\nsize: big\n", "Value 'big' of type 'str' could not be converted"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--help"]], ids=["run", "help"])
def test_broken_presets_end_in_one_line(preset, message, more, desk, capsys):
    Path("my/experiment").mkdir(parents=True)
    Path("my/experiment/mine.yaml").write_text(preset)
    status, printed = call(capsys, "train", "--config-dir", "my", "experiment=mine", *more)
    assert (status, len(printed.err.splitlines())) == (1, 1)
    assert printed.err.startswith("error: ")
    assert re.search(message, printed.err)


def test_hydras_own_help_needs_no_config(desk, capsys):
    status, printed = call(capsys, "train", "--hydra-help", "size=3")
    assert (status, printed.err) == (0, "")
    assert "Hydra" in printed.out


# Folders.


def test_runs_of_one_second_do_not_share_a_folder(tmp_path):
    made = [new_folder(str(tmp_path / "a/b")) for _ in range(3)]
    assert made == [str(tmp_path / name) for name in ("a/b", "a/b-2", "a/b-3")]
    assert all(Path(path).is_dir() for path in made)


def test_every_run_has_a_folder_of_its_own(desk, capsys, monkeypatch):
    for _ in range(2):
        paths = ["content=content.png", "style=style.png"]
        assert call(capsys, "train", *TINY, *paths)[0] == 0
    found = sorted(Path("outputs").glob("*/*/pastiche.png"))
    assert len(found) == 2
    assert not list(Path("outputs").glob("*/*/command.log"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "size=0"],
        ["train", "size=0", "hydra.run.dir=new/run"],
        ["train", "size=0", "-m", "seed=1,2"],
        ["train", "size=0", "-m", "seed=1,2", "hydra.sweep.dir=new/sweep"],
        ["train", "size=0", "-m", "seed=1,2", "hydra.job.chdir=true"],
        ["compare", "points=1"],
        ["explain", "device=tpu"],
        ["explain", "resume=nowhere"],
        ["judge", "pairs=[]"],
        ["benchmark", "rounds=0"],
        ["distill", "widths=[]"],
        ["distill", "widths=[]", "-m", "seed=1,2"],
    ],
    ids=" ".join,
)
def test_a_run_that_never_began_leaves_nothing(arguments, desk, capsys):
    before = sorted(desk.rglob("*"))
    assert call(capsys, *arguments)[0] == 1
    assert sorted(desk.rglob("*")) == before


def test_only_what_a_run_has_made_itself_is_removed(desk, capsys):
    Path("mine/.hydra").mkdir(parents=True)
    Path("mine/train.log").touch()
    assert call(capsys, "train", "size=0", "hydra.run.dir=mine")[0] == 1
    assert call(capsys, "train", "size=0", "resume=nowhere")[0] == 1
    assert Path("mine/train.log").exists()
    assert not Path("outputs").exists()


def test_what_a_failed_run_has_made_is_left(desk, capsys, monkeypatch):
    def failing(config, folder):
        (folder / "half").touch()
        raise UserError("no more")

    monkeypatch.setattr("styletransfer.commands.train.command.main", failing)
    assert call(capsys, "train")[0] == 1
    assert len(of_jobs("half")) == len(of_jobs("config.yaml")) == 1


def test_a_folder_that_is_gone(desk, capsys, monkeypatch):
    Path("gone").mkdir()
    monkeypatch.chdir("gone")
    Path("../gone").rmdir()
    status, printed = call(capsys, "train", *TINY)
    message = "error: the folder this was started in is gone; go to another\n"
    assert (status, printed.err) == (1, message)


def test_a_dry_run_leaves_nothing(desk, capsys):
    before = sorted(desk.rglob("*"))
    paths = ["content=content.png", "style=style.png"]
    status, printed = call(capsys, "train", *TINY, *paths, "size=512", "dry_run=true")
    assert status == 0
    assert "content.png: enlarged from" in printed.out  # and no file of that
    status, printed = call(capsys, "explain", *TINY, *paths, "dry_run=true")
    assert (status, printed.err.splitlines()[-1]) == (
        1,
        "error: explain has no dry run; leave dry_run=true out",
    )
    assert sorted(desk.rglob("*")) == before


def test_logging_as_hydra_offers_it(desk, capsys):
    paths = ["content=content.png", "style=style.png"]
    assert call(capsys, "train", *TINY, *paths, "hydra/job_logging=disabled")[0] == 0


# Endings: real processes, with output streams that are closed, full or poor.

HELP = f"{sys.executable} -m styletransfer --help"


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        (f"{HELP} > /dev/full", 1, "error: cannot write: No space left on device"),
        (f"{HELP} | true", 0, ""),
        (f"({HELP}; echo $? >&2) | true", 0, None),
        (f"{HELP} >&-", 0, ""),
        (f"{HELP} >&- 2>&- <&-", 0, ""),
        (f"{sys.executable} -m styletransfer trian 2>&-", 1, ""),
        (f"{sys.executable} -m styletransfer trian 2>/dev/full", 1, ""),
    ],
)
@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_streams_that_take_nothing(command, status, message, unbuffered):
    shell = ["bash", "-c", command]
    done = process(*shell, capture_output=True, cwd=ROOT, unbuffered=unbuffered)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    if message is None:
        assert done.stderr in ("0\n", "141\n")
    else:
        assert done.stderr.startswith(message)
        assert len(done.stderr.splitlines()) == bool(message)


def test_a_terminal_that_knows_only_ascii(desk):
    Path("été.png").write_bytes(Path("content.png").read_bytes())
    paths = ["content=été.png", "style=style.png", "output=naïve.png"]
    done = process(
        *(sys.executable, "-m", "styletransfer", "train", *TINY, *paths),
        env={"PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "na\\xefve.png"
    assert Path("naïve.png").exists()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(5, "Input/output error", "disk.png"), "error: disk.png: Input/output error"),
        (PermissionError(13, "Permission denied", "x"), "error: x: Permission denied"),
    ],
)
def test_a_stray_failure_names_its_own_file(error, line, desk, capsys, monkeypatch):
    def failing(config, folder):
        raise error

    monkeypatch.setattr("styletransfer.commands.train.command.main", failing)
    status, printed = call(capsys, "train", *TINY)
    assert (status, printed.err) == (1, f"{line}\n")


def test_a_failure_without_a_file_keeps_its_traceback(desk, capsys, monkeypatch):
    def failing(config, folder):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr("styletransfer.commands.train.command.main", failing)
    with pytest.raises(OSError, match="Bad file descriptor"):
        call(capsys, "train", *TINY)


def test_a_command_without_a_config_reads_its_own_arguments(monkeypatch):
    seen = []

    class Plain:
        @staticmethod
        def main(argv):
            seen.append(argv)
            return 3

    monkeypatch.setitem(sys.modules, "styletransfer.commands.plain.command", Plain)
    with pytest.raises(SystemExit) as exit:
        script("plain")(["--seed", "1"])
    assert exit.value.code == 3
    assert seen == [["--seed", "1"]]


def test_a_log_file_that_takes_no_more_is_no_traceback(capsys):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    with one_line_errors():
        logging.StreamHandler(Full()).handle(logging.makeLogRecord({"msg": "step 8"}))
    assert capsys.readouterr().err == ""
