"""The scripts of benchmarks/ and the painters of style images."""

import importlib.util

import pytest
from helpers import ROOT
from PIL import Image

from tools.painters.paint import main


def test_every_benchmark_finds_what_it_imports():
    for path in (ROOT / "benchmarks").glob("[a-z]*.py"):
        if path.stem != "studio" or importlib.util.find_spec("websockets"):
            importlib.import_module(f"benchmarks.{path.stem}")


def test_the_script_writes_the_pictures_asked_for(tmp_path, capsys):
    main([str(tmp_path / "new"), "oil", "--size", "64"])
    with Image.open(tmp_path / "new" / "oil.jpg") as picture:
        assert max(picture.size) == 64
    for words in (["new", "crayon"], ["new", "--size", "63"], ["new", "--seed", "-1"]):
        with pytest.raises(SystemExit):
            main(words)
        assert words[-1] in capsys.readouterr().err
