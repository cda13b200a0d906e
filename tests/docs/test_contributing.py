"""CONTRIBUTING's recipes, applied to a copy of the project, work as they stand."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT, picture

from styletransfer.pictures import images

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# Below which line of which file, or "" for a new one, and what goes there.
BLOCK = re.compile(r"```(?:python|yaml)\n# (\S+?)(?:, below ([^\n]+))?\n(.*?)```", re.S)
PAINT = ["experiment=tiny", "content=a.png", "style=b.png", "features.weights=random"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The project with all recipes applied, and two pictures."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("styletransfer", "configs", "scripts", "assets"):
        shutil.copytree(ROOT / name, folder / name)
    for path, line, text in BLOCK.findall(TEXT):
        file = folder / path
        if not line:
            assert not file.exists(), path
            file.write_text(text, encoding="utf-8")
            continue
        before, found, after = file.read_text(encoding="utf-8").partition(f"\n{line}\n")
        assert found, f"{path} has no line {line!r}"
        file.write_text(f"{before}{found}{text}{after}", encoding="utf-8")
    key = folder / "styletransfer" / "config" / "groups.py"
    choices = 'choice("gram", "moments", "wasserstein"'
    assert choices in key.read_text()
    key.write_text(key.read_text().replace(choices, f'{choices}, "mean_only"'))
    for seed, name in enumerate("ab"):
        images.write(folder / f"{name}.png", picture(seed, 24, 32))
    return folder


def run(copy: Path, script: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, f"scripts/{script}.py", *words],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow  # new processes import torch
def test_the_recipes_work_on_a_copy(copy):
    assert run(copy, "greet", "name=reader") == "hello, reader\n"
    assert "Who is greeted" in run(copy, "greet", "--help")
    said = run(copy, "train", *PAINT, "output=plain.png")
    plain = images.read(copy / "plain.png").rgb
    for number, words in enumerate(
        (["objective.style_loss=mean_only"], ["mirrored=true", "steps=1"], ["canvas=b.png"])
    ):
        said = run(copy, "train", *PAINT, *words, f"output={number}.png")
        assert f"{number}.png" in said
        assert not images.read(copy / f"{number}.png").rgb.equal(plain)
    page = run(copy, "train", "--help")
    assert "mirrored" in page
    assert "Path of a picture whose light" in page
