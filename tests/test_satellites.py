"""The core works without its satellites: copies of the package without them."""

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

COMMANDS = set().union(*SATELLITES.values())


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


@pytest.mark.parametrize("satellite", SATELLITES)
def test_the_overview_leaves_out_the_commands_of(satellite, tmp_path):
    found = listed(copied(tmp_path, satellite))
    assert found & COMMANDS == COMMANDS - SATELLITES[satellite]
    assert {"train", "info", "mix"} < found


@pytest.mark.slow  # new processes import torch
def test_the_core_paints_without_them(tmp_path):
    alone, whole = (tmp_path / "alone", tmp_path / "whole")
    assert painted(copied(alone, *SATELLITES)) == painted(copied(whole))


@pytest.mark.slow
def test_a_satellite_names_another_that_it_needs(tmp_path):
    folder = copied(tmp_path, "networks")
    done = run(folder, "studio", "open=false")
    needed = "this command needs the folder styletransfer/networks, which is not installed"
    assert (done.returncode, done.stderr) == (1, f"error: {needed}\n")
