"""Painters of the bundled style pictures, and the script that runs them."""

import numpy as np
import pytest
from PIL import Image

from tools.painters.paint import PAINTERS, SEED, main, paint


@pytest.mark.slow
@pytest.mark.parametrize("name", PAINTERS)
def test_a_picture_is_its_seeds_and_is_nowhere_flat(name):
    picture, again, other = (
        np.asarray(paint(name, 64, seed), dtype=float) for seed in (SEED, SEED, SEED + 1)
    )
    assert np.array_equal(picture, again)
    assert not np.array_equal(picture, other)
    for half in np.array_split(picture.mean(2), 2):
        for quarter in np.array_split(half, 2, axis=1):
            assert quarter.std() > 8


def test_the_script_writes_the_pictures_asked_for(tmp_path, capsys):
    main([str(tmp_path / "new"), "woodcut", "--size", "64"])
    with Image.open(tmp_path / "new" / "woodcut.jpg") as picture:
        assert max(picture.size) == 64
    for words in (["new", "crayon"], ["new", "--size", "63"], ["new", "--seed", "-1"]):
        with pytest.raises(SystemExit):
            main(words)
        assert words[-1] in capsys.readouterr().err
