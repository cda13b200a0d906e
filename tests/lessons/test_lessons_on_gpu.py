"""The lessons on a pretended GPU: no operation mixes devices."""

from pathlib import Path

import pytest
from helpers import LAYERS, composed

from styletransfer.lessons.commands.compare import compare
from styletransfer.lessons.commands.explain import explain

TINY = ["content=content.png", "style=style.png", *LAYERS, "features=vgg19", "size=24"]
TINY += ["features.weights=random", "device=cuda", "precision=float32"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tiny_vgg", "gpu", "desk")]


def test_modes_are_compared():
    compare(composed("compare", *TINY, "steps=4", "rounds=1"), Path("run"))
    assert Path("run/comparison.png").exists()


def test_modes_are_explained():
    explain(composed("explain", *TINY), Path("run"))
    assert Path("run/explain.html").exists()
