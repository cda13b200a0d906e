import sys
from itertools import combinations

import numpy as np
import pytest
from helpers import ROOT
from PIL import Image

ASSETS = ROOT / "assets"
sys.path.insert(0, str(ASSETS))
from painters import paint as paint_styles  # noqa: E402

sys.path.remove(str(ASSETS))

SIZE = 96
NAMES = list(paint_styles.PAINTERS)


@pytest.fixture(scope="module")
def pictures():
    return {name: np.asarray(paint_styles.paint(name, SIZE)) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_pixels_and_another_does_not(pictures, name):
    again = np.asarray(paint_styles.paint(name, SIZE))
    other = np.asarray(paint_styles.paint(name, SIZE, seed=paint_styles.SEED + 1))
    assert np.array_equal(pictures[name], again)
    assert not np.array_equal(pictures[name], other)


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_uses_its_range_and_is_nowhere_flat(pictures, name):
    picture = pictures[name].astype(float)
    assert max(picture.shape[:2]) == SIZE
    grey = picture.mean(2)
    low, high = np.percentile(grey, [2, 98])
    assert low < 80
    assert high > 170
    assert (picture == 255).all(2).mean() < 0.05
    assert (picture == 0).all(2).mean() < 0.05
    # Each quarter has shapes and texture of its own.
    for half in np.array_split(grey, 2):
        for quarter in np.array_split(half, 2, axis=1):
            assert quarter.std() > 8
    assert np.abs(np.diff(grey, axis=1)).mean() > 2


def test_the_families_differ(pictures):
    def look(picture):
        values = picture.reshape(-1, 3) / 255
        steps = np.abs(np.diff(picture / 255, axis=1)).mean((0, 1))
        return np.concatenate([values.mean(0), values.std(0), 3 * steps])

    for one, two in combinations(NAMES, 2):
        assert np.abs(look(pictures[one]) - look(pictures[two])).max() > 0.04, (one, two)


def test_the_command_writes_the_pictures_asked_for(tmp_path, capsys):
    paint_styles.main([str(tmp_path / "new"), "woodcut", "--size", str(SIZE)])
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["woodcut.jpg"]
    with Image.open(tmp_path / "new" / "woodcut.jpg") as picture:
        assert max(picture.size) == SIZE
    assert "woodcut.jpg" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["new", "crayon"], "no painter for crayon; known: oil,"),
        (["new", "crayon\n"], "no painter for crayon"),
        (["file"], "cannot write file/oil.jpg: Not a directory"),
        (["file/new", "oil"], "cannot write file/new/oil.jpg: Not a directory"),
        (["new\0"], r"'new\x00' holds a null character"),
        (["new", "--seed", "-1"], "'-1' must be a whole number from 0 to 2^63 - 1"),
        (["new", "--seed", str(2**70)], "must be a whole number from 0 to"),
        (["new", "--size", "63"], "'63' must be a whole number from 64 to 8192"),
        (["new", "--size", "8193"], "'8193' must be a whole number from 64 to 8192"),
        (["new", "--size", "9" * 5000], "must be a whole number from 64 to 8192"),
        (["new", "--size", "big"], "'big' must be a whole number"),
        (["new", "--frobnicate"], "unrecognized arguments: --frobnicate"),
    ],
)
def test_the_command_refuses_in_one_line(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as exit:
        paint_styles.main(arguments)
    printed = capsys.readouterr()
    assert (exit.value.code, printed.out, printed.err.count("\n")) == (1, "", 1)
    assert printed.err.startswith("error: ")
    assert message in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
