"""Recipes in picture files: what `train` writes, and `info` prints."""

import json
import re
import shlex
from pathlib import Path

import pytest
from helpers import call, composed, files_in, picture, refusal, status_of, write_pictures
from helpers import lines_of as lines_in

from styletransfer.errors import UserError
from styletransfer.formats import xmp_packet
from styletransfer.job.prepare import prepare
from styletransfer.optimize import Run
from styletransfer.pictures import images
from styletransfer.pictures.images import xmp_of
from styletransfer.runs.carriers import LONGEST
from styletransfer.runs.commands.info import InfoConfig
from styletransfer.runs.recording import recorded
from styletransfer.settings.changes import with_values
from styletransfer.settings.registry import commands
from styletransfer.system.files import sha256

NAME = "a secret/été (1),'c'.png"
TINY = ["experiment=tiny", f"content={NAME}", "style=style.png", "size=24", "steps=4"]


def packet(recipe):
    return xmp_of(json.dumps(recipe))


pytestmark = pytest.mark.usefixtures("tiny_vgg")


@pytest.fixture(autouse=True)
def desk(desk):
    write_pictures(NAME, "style.png")
    return desk


def info(capsys, *words):
    capsys.readouterr()
    status, printed = call(capsys, "info", *words)
    assert (status, lines_in(printed.err)) == (0, [])
    return dict(line.split(": ", 1) for line in printed.out.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp", "a.tif"])
def test_the_command_in_a_picture_makes_the_same_bytes(name, desk, capsys, monkeypatch):
    assert status_of("train", *TINY, "hydra.run.dir=run", f"output={name}") == 0
    carried = info(capsys, name)
    assert info(capsys, "run/pastiche.png") == carried
    assert carried["digital source type"].endswith("/compositeWithTrainedAlgorithmicMedia")
    assert carried["sha256 of content"] == sha256(NAME)
    assert b"secret" not in Path(name).read_bytes()
    monkeypatch.chdir(Path(NAME).parent)
    Path("style.png").symlink_to("../style.png")
    assert status_of(*shlex.split(carried["command"])[1:], f"output={name}") == 0
    assert Path(name).read_bytes() == (desk / name).read_bytes()


@pytest.mark.slow
def test_without_a_recipe_pixels_are_the_same(capsys):
    for name, word in (("with", "recipe=true"), ("without", "recipe=false")):
        assert status_of("train", *TINY, f"hydra.run.dir={name}", word) == 0
    assert images.read("with/pastiche.png").rgb.equal(images.read("without/pastiche.png").rgb)
    assert "carries no recipe" in refusal(capsys, "info", "without/pastiche.png")


@pytest.mark.slow
def test_stopped_and_steered_runs(desk, capsys):
    words = ["experiment=tiny", "content=style.png", "style=style.png", "steps=6"]
    config = composed("train", *words, "stop_after=4")
    run = Run(prepare(config))
    with recorded(run, config, desk / "run") as record:
        for step in run:
            record(step)
            if step.step == 2:
                record.steer(with_values(record.config, {"objective.content_weight": 2.0}))
    stopped = info(capsys, "run/pastiche.png")
    assert "steered" in stopped
    assert status_of("train", "resume=run") == 0
    command = stopped["command"].removesuffix(" stop_after=4")
    assert info(capsys, "run/pastiche.png") == stopped | {"command": command}


@pytest.mark.slow
def test_a_picture_is_painted_again_and_compared(desk, capsys):
    for name in ("a.png", "b.png"):
        assert status_of("train", *TINY, f"hydra.run.dir={name}.run", f"output={name}") == 0
    made, other = images.read("a.png").rgb, images.read("style.png").rgb
    assert "the same bytes" in info(capsys, "a.png", "verify=true", f"inputs={NAME}")["verify"]
    images.write("b.png", made, xmp=xmp_packet(desk / "b.png").replace(b"digital", b"Digital"))
    assert "the same pixels" in info(capsys, "b.png", "verify=true", f"inputs={NAME}")["verify"]
    made[..., 0, 0] = (made[..., 0, 0] + 0.4).clamp(max=1) - 0.2
    images.write("b.png", made, xmp=xmp_packet(desk / "b.png"))
    before = files_in(desk)
    said = info(capsys, "b.png", "verify=true", "inputs=a secret")["verify"]
    assert 5 < float(re.search("at most (.*) levels", said)[1]) < 103
    assert files_in(desk) == before
    images.write(NAME, other)
    said = refusal(capsys, "info", "a.png", "verify=true", "inputs=a secret")
    assert "cannot find content=" in said


@pytest.mark.slow
def test_a_strangers_words_are_settings_of_a_picture_or_refused(desk):
    images.write("secret.png", picture(5))
    Path("evil.pth").write_bytes(b"pickle")
    known, before = sha256("evil.pth"), files_in(desk)
    for words in (
        *("output=b.png", "resume=auto", "hydra.run.dir=.", "recipe=false", "size=range(24,26)"),
        *("content=${oc.env:HOME}", "++evil=1", "~style", "experiment=tiny", "--config-dir=."),
        *("content=secret.png", "style=secret.png", "style=../../style.png", "init=secret.png"),
        *("style=~/x.jpg", "style='~/x.jpg'", "style=x.jpg"),
        *(f"features.weights={desk}/evil.pth", "features.weights=evil.pth"),
        *("features.weights=/dev/zero", "size=1\\x1b1", "size='\x1b[1m'", "steps=-1", "size=1,2"),
    ):
        recipe = {"command": f"styletransfer train {words}", "sha256 of features.weights": known}
        images.write("a.tif", picture(), xmp=packet(recipe))
        said = r"has no hash|no setting|find features.weights|size|steps"
        with pytest.raises(UserError, match=said) as refused:
            commands()["info"](InfoConfig("a.tif", verify=True), desk)
        assert str(refused.value).isprintable()
    Path("a.tif").unlink()
    assert files_in(desk) == before


@pytest.mark.slow
def test_what_a_stranger_wrote_is_one_line_and_harmless(capsys):
    whole = packet({"command": "styletransfer train"})
    wrong = [b"", b"\xff", whole[:-60], b" " * LONGEST + whole, whole.replace(b"{", b"[" * 15_000)]
    recipes = [[], {}, {"command": 1}, {"command": None}, {"command": "styletransfer 'a"}]
    for xmp in (*wrong, *map(packet, recipes)):
        images.write("a=b.tif", picture(), xmp=xmp)
        assert "a=b.tif carries no recipe of styletransfer" in refusal(capsys, "info", "a=b.tif")
    recipe = {"command": "curl train; rm -rf ~", "a\x1bb": "\x9b1m\nb\u202e\ud800\0"}
    images.write("a.jpg", picture(), xmp=packet(recipe))
    assert info(capsys, "a.jpg") == {"command": "styletransfer 'train;' rm -rf '~'", "ab": "1mb"}
