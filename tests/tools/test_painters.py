"""Painters of the bundled style pictures, and the script that runs them."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tools.painters.paint import PAINTERS, SEED, main, paint


@pytest.mark.slow
@pytest.mark.parametrize("name", PAINTERS)
def test_a_picture_is_its_seeds_uses_its_range_and_is_nowhere_flat(name: str) -> None:
    picture, again, other = (
        np.asarray(paint(name, 64, seed), dtype=float) for seed in (SEED, SEED, SEED + 1)
    )
    assert np.array_equal(picture, again)
    assert not np.array_equal(picture, other)
    assert max(picture.shape[:2]) == 64
    grey = picture.mean(2)
    low, high = np.percentile(grey, [2, 98])
    assert low < 90
    assert high > 130
    assert (picture == 255).all(2).mean() < 0.05
    # Each quarter has shapes and texture of its own.
    for half in np.array_split(grey, 2):
        for quarter in np.array_split(half, 2, axis=1):
            assert quarter.std() > 8
    assert np.abs(np.diff(grey, axis=1)).mean() > 2


def test_the_script_writes_the_pictures_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(tmp_path / "new"), "woodcut", "--size", "64"])
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["woodcut.jpg"]
    with Image.open(tmp_path / "new" / "woodcut.jpg") as picture:
        assert max(picture.size) == 64
    assert "woodcut.jpg" in capsys.readouterr().out
    for words in (["new", "crayon"], ["new", "--size", "63"], ["new", "--seed", "-1"]):
        with pytest.raises(SystemExit):
            main(words)
        assert words[-1] in capsys.readouterr().err
