"""Regions, masks and several styles through the commands."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from helpers import call, stop_after, write_pictures
from PIL import Image

from styletransfer.api import stylize

TRAIN = ("train", "experiment=tiny", "content=content.png", "style=a.png")
pytestmark = pytest.mark.usefixtures("signals", "tiny_vgg")
TWO = ("style=[a.png,b.png]", "content_regions=labels.png", "region_styles={red:1,blue:2}")


@pytest.fixture(autouse=True)
def desk(desk):
    """Write a content image, two styles, labels and a mask of the left half into a folder."""
    write_pictures("content.png", "a.png", "b.png")
    left = np.zeros((24, 32), np.uint8)
    left[:, :16] = 255
    Image.fromarray(np.dstack([left, 0 * left, 255 - left])).save("labels.png")
    Image.fromarray(left).save("left.png")


@pytest.fixture
def train(capsys):
    """Return a function that runs `train` here and returns its exit status and output."""
    return partial(call, capsys, *TRAIN)


def pixels(path):
    return np.asarray(Image.open(path))


def test_a_protected_run_resumes_only_with_its_own_mask(train, monkeypatch):
    settings = (*TWO, "protect=left.png")
    assert train(*settings, "hydra.run.dir=whole")[0] == 0
    made, content = pixels("whole/pastiche.png"), pixels("content.png")
    assert np.array_equal(made[:, :16], content[:, :16])  # exactly the content image
    assert not np.array_equal(made[:, 16:], content[:, 16:])
    with monkeypatch.context() as patch:
        stop_after(4, patch)
        train(*settings, "hydra.run.dir=run")
    mask = Path("left.png").read_bytes()
    Image.new("L", (32, 24), 200).save("left.png")
    status, printed = train(*settings, "hydra.run.dir=run", "resume=auto")
    assert (status, "left.png" in printed.err) == (1, True)
    Path("left.png").write_bytes(mask)
    assert train(*settings, "hydra.run.dir=run", "resume=auto")[0] == 0
    assert Path("run/pastiche.png").read_bytes() == Path("whole/pastiche.png").read_bytes()


def test_python_says_the_same_with_arrays(train):
    one_by_one = (*TWO[:2], "region_styles.red=1", "region_styles.blue=2")
    detail = ("style_detail=b.png", "objective.detail_layers=[relu1_1]")
    assert train(*one_by_one, *detail, "output=out.png")[0] == 0
    styles, regions = ["a.png", Image.open("b.png")], {"red": np.int64(1), "blue": 2}
    given = {"content_regions": pixels("labels.png"), "region_styles": regions}
    given |= {"style_detail": pixels("b.png"), "objective.detail_layers": ["relu1_1"]}
    made = stylize("content.png", styles, experiment="tiny", **given)
    assert np.array_equal(np.asarray(made.to_pil()), pixels("out.png"))
