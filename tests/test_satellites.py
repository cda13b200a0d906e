"""The core works without its satellites: copies of the package, each without one of them."""

import shutil
import sys

import pytest
from helpers import ROOT, process

SATELLITES = {
    "films": {"film"},
    "lessons": {"compare", "explain", "gradcheck"},
    "networks": {"apply", "export", "train_network"},
    "studio": {"studio"},
}


def run(folder, *words):
    """Run the console command of the copy in `folder`; return the result."""
    command = (sys.executable, "-W", "error", "-m", "styletransfer", *words)
    return process(*command, cwd=folder, env={"PYTHONPATH": str(folder)})


def copied(folder, *without):
    """Return a folder with a copy of the package without some rooms."""
    shutil.copytree(
        ROOT / "styletransfer", folder / "styletransfer", ignore=shutil.ignore_patterns(*without)
    )
    for name in ("assets", "configs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def listed(folder):
    """Return the names of the commands in the overview."""
    lines = run(folder, "--help").stdout.splitlines()
    return {line.split()[0] for line in lines if line.startswith("  ")}


def painted(folder):
    """Return the bytes of the bundled pictures' pastiche in the tiny preset."""
    done = run(folder, "train", "experiment=tiny", "device=cpu", "output=a.png")
    assert done.returncode == 0, done.stderr
    return (folder / "a.png").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the names of all commands, and the bytes of a picture."""
    folder = copied(tmp_path_factory.mktemp("whole"))
    return listed(folder), painted(folder)


@pytest.mark.slow  # new processes import torch
@pytest.mark.parametrize("satellite", SATELLITES)
def test_the_core_works_without(satellite, whole, tmp_path):
    names, picture = whole
    folder = copied(tmp_path, satellite)
    assert listed(folder) == names - SATELLITES[satellite]
    assert painted(folder) == picture


@pytest.mark.slow
def test_a_satellite_names_another_that_it_needs(tmp_path):
    folder = copied(tmp_path, "networks")
    done = run(folder, "studio", "open=false")
    needed = "this command needs the folder styletransfer/networks, which is not installed"
    assert (done.returncode, done.stderr) == (1, f"error: {needed}\n")
