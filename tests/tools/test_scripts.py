"""Scripts of benchmarks/, and the painters of the bundled style pictures."""

import importlib.util

import numpy as np
import pytest
import torch
from helpers import ROOT
from PIL import Image

from benchmarks import painting
from tools.painters import endless
from tools.painters.canvas import frame
from tools.painters.paint import PAINTERS, SEED, main, paint


def test_every_script_finds_what_it_needs():
    for path in (ROOT / "benchmarks").glob("[a-z]*.py"):
        if path.stem != "studio" or importlib.util.find_spec("websockets"):
            importlib.import_module(f"benchmarks.{path.stem}")


@torch.no_grad()
def test_the_reference_has_the_published_layers():
    """1 679 235 weights: three convolutions, five residual blocks, three convolutions, norms."""
    network = painting.reference()
    assert sum(weight.numel() for weight in network.parameters()) == 1_679_235
    assert network(255 * torch.rand(1, 3, 16, 24)).shape == (1, 3, 16, 24)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAINTERS)
def test_a_picture_is_its_seeds(name):
    picture, again, other = (np.asarray(paint(name, 64, n), float) for n in (SEED, SEED, SEED + 1))
    assert np.array_equal(picture, again)
    assert not np.array_equal(picture, other)


def test_each_way_paints_a_picture_of_its_own_for_each_seed():
    made = [np.asarray(endless.painting(seed, 64), dtype=float) for seed in (*range(12), 0)]
    assert np.array_equal(made[0], made[-1])
    assert len({picture.tobytes() for picture in made}) == 12
    assert all(max(picture.shape) == 64 and picture.std() > 2 for picture in made)
    f = frame(64, 1.25, np.random.default_rng(0))
    drawn = {way(f, endless.scene(f)).tobytes() for way, _ in endless.WAYS}
    assert len(drawn) == len(endless.WAYS)


def test_the_script_writes_the_pictures_asked_for(tmp_path, capsys):
    main([str(tmp_path / "new"), "oil", "--size", "64"])
    with Image.open(tmp_path / "new" / "oil.jpg") as picture:
        assert max(picture.size) == 64
    for words in (["new", "crayon"], ["new", "--size", "63"], ["new", "--seed", "-1"]):
        with pytest.raises(SystemExit):
            main(words)
        assert words[-1] in capsys.readouterr().err
