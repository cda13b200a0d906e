"""The source archive, the wheel built from it, and the wheel installed away from the checkout."""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest
from helpers import ROOT, needs
from PIL import Image

pytestmark = [pytest.mark.wheel, pytest.mark.slow]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Build and unpack the source archive; return its folder."""
    needs("dev", "hatchling")
    folder = tmp_path_factory.mktemp("source")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist"]
    subprocess.run([*build, "--directory", str(folder)], cwd=ROOT, check=True, env=environment())
    (archive,) = folder.glob("*.tar.gz")
    # Python below 3.11.4 has no filter, and Python from 3.12 on warns without one.
    safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    shutil.unpack_archive(archive, folder, **safe)
    return folder / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def installed(source, tmp_path_factory):
    """Install the wheel into a new virtual environment; return its folder of programs.

    The dependencies come from this environment by path, which activates no editable install.
    """
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    quiet = ["--quiet", "--no-deps", "--no-index"]
    build = [*pip, "wheel", *quiet, "--no-build-isolation", "--wheel-dir", str(folder), str(source)]
    subprocess.run(build, check=True, env=environment())
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    install = [*pip, "--python", str(python), "install", *quiet, str(wheel)]
    subprocess.run(install, check=True, env=environment())
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "borrowed.pth").write_text("\n".join(borrowed))
    return python.parent


@pytest.fixture
def run(installed, tmp_path):
    """Return a function that runs an installed program in an empty folder, for its output."""

    def run(program, *arguments, cwd=tmp_path):
        command = [str(installed / program), *arguments]
        return subprocess.run(
            command, cwd=cwd, env=environment(), capture_output=True, text=True, check=True
        ).stdout

    return run


def environment():
    """Return this process's environment variables without PYTHON*, which may name the checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {"OMP_NUM_THREADS": "1"}


def test_it_paints_in_an_empty_folder(run, tmp_path):
    """Check a run with the bundled network and pictures, and the file py.typed."""
    module = Path(run("python", "-c", "import styletransfer as s; print(s.__file__)").strip())
    assert "site-packages" in module.parts
    assert module.with_name("py.typed").is_file()
    said = run("styletransfer", "train", "size=64", "steps=3", "scales=1", "device=cpu")
    picture = Path(said.splitlines()[-1])
    assert picture.is_relative_to(tmp_path / "outputs")
    with Image.open(picture) as painted:
        assert painted.size == (64, 43)


def test_python_m_and_every_other_command_finds_its_files(run, tmp_path):
    said = run("python", "-m", "styletransfer", "explain", "experiment=tiny")
    assert Path(said.splitlines()[-1]).is_file()
    settings = run("styletransfer", "train", "--cfg", "job", "--resolve")
    first = next(line for line in settings.splitlines() if line.startswith("content:"))
    assert Path(first.partition("content: ")[2]).is_file()


def test_the_source_archive_holds_what_its_tests_need(run, source):
    """Check that all tests can be collected, and that four tests of other files pass."""
    named = "links_lead or map_is_the_list or pages_name or one_name_of"
    said = run("python", "-m", "pytest", "-q", "-p", "no:xdist", "-k", named, cwd=source)
    assert "\n4 passed, " in said
