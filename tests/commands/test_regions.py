"""Regions, masks and several styles through the commands."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import MODES, composed, picture
from PIL import Image

from styletransfer import cli, stylize
from styletransfer.commands.compare.command import compare
from styletransfer.commands.explain.command import explain
from styletransfer.pictures import images
from styletransfer.runs.watchers import Metrics

pytestmark = pytest.mark.usefixtures("signals", "tiny_vgg")

RED, BLUE = (255, 0, 0), (0, 0, 255)


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    """A folder with a content image, two styles, labels and a mask of their left halves."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("content", "a", "b")):
        images.write(f"{name}.png", picture(seed, 24, 32))
    labels = np.full((24, 32, 3), BLUE, np.uint8)
    labels[:, :16] = RED
    Image.fromarray(labels).save("labels.png")
    mask = np.zeros((24, 32), np.uint8)
    mask[:, :16] = 255
    Image.fromarray(mask).save("left.png")
    Image.fromarray(255 - mask).save("right.png")


def call(monkeypatch, capsys, *more, command="train"):
    """Run a script in this process; return its exit status and what it printed."""
    given = ("experiment=tiny", "content=content.png", "style=a.png", *more)
    monkeypatch.setattr(sys, "argv", [f"{command}.py", *given])
    status = 0
    try:
        cli.script(command)()
    except SystemExit as exit:
        status = exit.code or 0
    return status, capsys.readouterr()


def pixels(path):
    return np.asarray(Image.open(path))


TWO = ("style=[a.png,b.png]", "content_regions=labels.png", "region_styles={red:1,blue:2}")
WAYS = {
    "labels of both": ("content_regions=labels.png", "style_regions=labels.png"),
    "a style for each": TWO,
    "typed one by one": (*TWO[:2], "region_styles.red=1", "region_styles.blue=2"),
    "masks": ("style=[a.png,b.png]", "content_regions=[left.png,right.png]"),
    "masks by name": (
        "style=[a.png,b.png]",
        "content_regions=[left.png,right.png]",
        "region_styles={left:2,right:1}",
    ),
    "labels of several": (
        "style=[a.png,b.png]",
        "content_regions=labels.png",
        "style_regions=[labels.png,labels.png]",
        "style_weights=[1,2]",
        "style_scale=[1,0.5]",
        "style_rotation=[90,180]",
        "style_detail=a.png",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_say_regions_paints_a_picture(way, monkeypatch, capsys):
    status, printed = call(monkeypatch, capsys, *WAYS[way], "output=out.png")
    assert (status, Path("out.png").exists()) == (0, True)
    names = set(re.findall(r"style/(\w+)/relu1_1", printed.out))
    assert names == ({"left", "right"} if "masks" in way else {"red", "blue"})


def test_each_region_follows_its_own_style(monkeypatch, capsys):
    """Where the style of the blue half changes, the red half does not, away from the border.

    Adam moves each pixel by its own gradient alone.
    """
    given = (*TWO, "optimizer=adam", "scales=1")
    assert call(monkeypatch, capsys, *given, "output=one.png")[0] == 0
    Image.new("RGB", (32, 24), "lime").save("b.png")
    assert call(monkeypatch, capsys, *given, "output=two.png")[0] == 0
    change = np.abs(pixels("one.png").astype(int) - pixels("two.png")).mean((0, 2))
    assert change[:4].max() < 0.2 * change[20:].min()


def test_protected_pixels_are_the_content_to_the_byte(monkeypatch, capsys):
    status, _ = call(monkeypatch, capsys, "protect=left.png", "output=out.png")
    made, content = pixels("out.png"), pixels("content.png")
    assert status == 0
    assert np.array_equal(made[:, :16], content[:, :16])
    assert not np.array_equal(made[:, 16:], content[:, 16:])


def test_a_dry_run_writes_nothing(monkeypatch, capsys):
    before = sorted(Path().rglob("*.png"))
    status, printed = call(monkeypatch, capsys, *TWO, "protect=left.png", "dry_run=true")
    assert (status, "in all about" in printed.out) == (0, True)
    assert sorted(Path().rglob("*.png")) == before


def test_a_run_with_regions_goes_on_to_equal_bytes_and_not_with_another_mask(monkeypatch, capsys):
    masks = ("style=[a.png,b.png]", "content_regions=[left.png,right.png]", "protect=left.png")
    assert call(monkeypatch, capsys, *masks, "hydra.run.dir=whole")[0] == 0
    with monkeypatch.context() as patch:
        real = Metrics.__call__

        def pressed(self, iterate):
            real(self, iterate)
            if iterate.step == 4:
                raise KeyboardInterrupt

        patch.setattr(Metrics, "__call__", pressed)
        call(patch, capsys, *masks, "hydra.run.dir=run")
    kept = Path("right.png").read_bytes()
    Image.new("L", (32, 24), 200).save("right.png")
    status, printed = call(monkeypatch, capsys, *masks, "hydra.run.dir=run", "resume=auto")
    assert (status, "right.png" in printed.err) == (1, True)
    Path("right.png").write_bytes(kept)
    assert call(monkeypatch, capsys, *masks, "hydra.run.dir=run", "resume=auto")[0] == 0
    assert Path("run/pastiche.png").read_bytes() == Path("whole/pastiche.png").read_bytes()


@pytest.mark.parametrize("key", ["content_regions", "protect"])
def test_no_mask_is_overwritten(key, monkeypatch, capsys):
    before = Path("left.png").read_bytes()
    value = "[left.png,right.png]" if key == "content_regions" else "left.png"
    status, printed = call(monkeypatch, capsys, f"{key}={value}", "output=left.png")
    assert status == 1
    assert f"output=left.png would overwrite the {key} picture" in printed.err
    assert Path("left.png").read_bytes() == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("region_styles={blue:[1],red:2}",), "region_styles.blue=[1] must be a whole number"),
        (("region_styles={blue:1,red:x}",), "region_styles.red: Value 'x'"),
        (("region_styles={blue:1}",), "leaves out red (50 %) of labels.png; say all"),
        (("region_styles={blue:1,sky:2}",), "labels.png has no region 'sky'; it has"),
        ((), "say which takes which, such as 'region_styles={"),
    ],
)
def test_bad_mappings_end_in_one_line(given, message, monkeypatch, capsys):
    status, printed = call(monkeypatch, capsys, *TWO[:2], *given)
    lines = [line for line in printed.err.splitlines() if "INFO" not in line]
    assert status == 1
    assert len(lines) == 1
    assert message in lines[0]
    assert not list(Path().rglob("pastiche.png"))


def test_a_sweep_over_styles_and_lists_of_them(monkeypatch, capsys):
    arguments = ("--multirun", "style=[a.png,b.png],[b.png],a.png", "hydra.sweep.dir=sweep")
    status, _ = call(monkeypatch, capsys, *arguments, "steps=2")
    assert status == 0
    made = [path.read_bytes() for path in sorted(Path("sweep").glob("*/pastiche.png"))]
    assert len(set(made)) == 3


def test_compare_and_explain_take_regions(tmp_path):
    given = ["experiment=tiny", "content=content.png", "steps=2", *TWO[:2]]
    given += ["++region_styles={red:1,blue:2}", "protect=left.png", "style=[a.png,b.png]"]
    # Half of each region is protected, but for a corner of the red one.
    mask = np.zeros((24, 32), np.uint8)
    mask[:, 8:24] = 255
    Image.fromarray(mask).save("left.png")
    compare(composed("compare", *given, "points=2", "rounds=1"), tmp_path / "compare")
    assert {f"{mode}.png" for mode in MODES} <= {
        path.name for path in (tmp_path / "compare").iterdir()
    }
    explain(composed("explain", *given), tmp_path / "explain")
    page = (tmp_path / "explain" / "explain.html").read_text()
    assert "red" in page


def test_python_says_the_same_with_arrays(monkeypatch, capsys):
    assert call(monkeypatch, capsys, *TWO, "output=out.png")[0] == 0
    numbers = (pixels("labels.png")[..., 2] > 0).astype(np.int64)
    made = stylize(
        "content.png",
        ["a.png", Image.open("b.png")],
        experiment="tiny",
        content_regions=numbers,
        region_styles={0: np.int64(1), "1": 2},
    )
    assert np.array_equal(np.asarray(made.to_pil()), pixels("out.png"))
