"""The command `mix`: blends of a content image and its finished pastiche."""

import json
from pathlib import Path

import pytest
import torch
from helpers import call, files_in, picture, refusal
from PIL import Image

from styletransfer import cli
from styletransfer.pictures import images
from styletransfer.pictures.color import mixed, with_chroma_of
from styletransfer.pictures.transparency import fill_transparent

ALPHA = torch.linspace(0, 1, 24 * 32).reshape(1, 1, 24, 32)


def record(folder, **changes):
    entry = {"status": "finished", "picture": str(Path(folder, "pastiche.png").absolute())}
    entry["config"] = {"content": str(Path("photo.png").absolute()), "style": "gone.png"}
    Path(folder, "run.json").write_text(json.dumps(entry | changes))


@pytest.fixture
def desk(here):
    """Return a folder that contains `run`, the folder of a finished run of `train`."""
    images.write("photo.png", picture(3, 40, 50))
    images.write("run/content_resized.png", picture(1, 24, 32))
    images.write("run/pastiche.png", picture(2, 24, 32))
    record("run")
    return here


def kept(name):
    return images.read(Path("run", name)).rgb


@pytest.mark.slow
def test_lightness_and_colors_together_and_apart(desk, capsys):
    before = files_in(desk)
    for words, shares in (
        (["strength=0.6"], (0.6, 0.6)),
        (["strength=0.3", "lightness_strength=1"], (1.0, 0.3)),
        (["strength=0.3", "color_strength=0"], (0.3, 0.0)),
        (["lightness_strength=0", "color_strength=1"], (0.0, 1.0)),
    ):
        status, printed = call(capsys, "mix", "run", *words, "output=new/y.tiff")
        assert (status, printed.out, printed.err) == (0, "new/y.tiff\n", "")
        wanted = mixed(kept("content_resized.png"), kept("pastiche.png"), *shares)
        assert (images.read("new/y.tiff").rgb - wanted).abs().max() < 1e-4
    after = files_in(desk)
    assert after.pop("new/y.tiff")
    assert after == before


def test_at_the_ends_are_the_very_bytes(desk, capsys):
    Path("run").rename("a=b")
    for strength, name in enumerate(("content_resized.png", "pastiche.png")):
        for seed, file in enumerate(("content_resized.png", "pastiche.png")):
            images.write(Path("a=b", file), picture(seed, 24, 32), ALPHA)
        assert (
            call(capsys, "mix", "a=b", f"strength={strength}", "recipe=false", "output=y.png")[0]
            == 0
        )
        assert Path("y.png").read_bytes() == Path("a=b", name).read_bytes()
        assert (images.read("y.png").alpha - ALPHA).abs().max() <= 0.5 / 255 + 1e-6


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_by_default_it_goes_to_the_run_which_may_be_unfinished(desk, capsys):
    record("run", status="stopped")
    printed = call(capsys, "mix", "run", "strength=0.25")[1]
    assert printed.out == "run/mix_0.25.png\n"
    note = "note: the run in run is not finished (stopped): this is its best picture so far\n"
    assert printed.err == note
    printed = call(capsys, "mix", "run", "color_strength=0")[1]
    assert printed.out == "run/mix_lightness_0.5_color_0.png\n"
    words = ["strength=0.3", "lightness_strength=0", "color_strength=1", "output=y.png"]
    told = call(capsys, "mix", "run", *words)[1]
    assert "strength=0.3 has no effect with both lightness_strength and" in told.out + told.err
    assert call(capsys, "mix", "--multirun", "run=run", "strength=0.1,0.9")[0] == 0
    names = {path.name for path in Path("run").glob("mix_*.png")}
    assert names == {f"mix_{each}.png" for each in ("0.25", "lightness_0.5_color_0", "0.1", "0.9")}


@pytest.mark.slow
def test_a_run_can_be_mixed(here, tiny_vgg, capsys):
    images.write("content.png", picture(0, 24, 32), ALPHA)
    images.write("style.png", picture(1, 24, 32))
    given = ["experiment=tiny", "content=content.png", "style=style.png", "hydra.run.dir=run"]
    cli.main(["train", *given, "size=24", "color=content_luminance", "output=new folder/x.tiff"])
    content = images.read("run/content_resized.png")
    assert content.size == (18, 24)
    ours = images.resize_picture(images.read("content.png"), 24)
    assert (content.alpha - ours.alpha).abs().max() < 0.003
    assert (content.rgb - fill_transparent(ours)).abs().max() < 0.003
    assert Path("run/pastiche.png").read_bytes()[24] == 16  # bits per sample, as in the TIFF
    capsys.readouterr()
    assert call(capsys, "mix", "run", "strength=1", "output=y.tiff")[0] == 0
    assert "the same bytes" in call(capsys, "info", "y.tiff", "verify=true", "inputs=run")[1].out
    again, made = images.read("y.tiff"), images.read("new folder/x.tiff")
    assert (again.rgb - images.read("run/pastiche.png").rgb).abs().max() < 1e-5
    assert (again.rgb - made.rgb).abs().max() < 1e-5
    assert torch.equal(made.alpha, content.alpha)
    assert (with_chroma_of(made.rgb, content.rgb, 1.0) - made.rgb).abs().max() < 0.01


@pytest.mark.slow
def test_refused(desk, capsys):
    before = files_in(desk)
    for arguments, message in (
        ([], "name the folder of a run: styletransfer mix FOLDER strength=0.6"),
        (["run", "other"], "cannot understand 'other' beside 'run'; write KEY=VALUE"),
        (["run=run", "other"], "cannot understand 'other' beside run=; leave one of them out"),
        (["nowhere"], "nowhere is not the folder of a run: it holds no run.json"),
        (["run", "strength=1.5"], "strength=1.5 must be 0 or more and at most 1"),
        (["run", "lightness_strength=nan"], "lightness_strength=nan must be finite"),
        (["run", "output=y.xyz"], "cannot write y.xyz: unknown extension '.xyz'"),
    ):
        assert refusal(capsys, "mix", *arguments).startswith(f"error: {message}")
    assert files_in(desk) == before


def test_pictures_that_are_not_there_or_not_the_runs(desk, capsys):
    def check_error(message):
        assert refusal(capsys, "mix", "run").startswith(f"error: {message}")

    Path("run/content_resized.png").unlink()
    check_error("run/content_resized.png does not exist; check the path")
    Image.new("RGB", (5, 4)).save("run/content_resized.png")
    check_error("run/content_resized.png and run/pastiche.png differ in size; run ")
    assert not list(Path("run").glob("mix*"))
