"""Recipes in picture files: what `train` and `apply` write, and `info` prints."""

import html
import json
import shlex
from pathlib import Path

import pytest
from helpers import call, composed, picture, refusal, status_of, style_network, write_pictures

from styletransfer.networks import Architecture, file
from styletransfer.pictures import images
from styletransfer.runs.metadata import LONGEST, PACKET
from styletransfer.system.files import sha256
from styletransfer.train import paint

NAME = "a secret/été (1),${b}='c'.png"
TINY = ["experiment=tiny", f"content={NAME}", "style=style.png", "size=24", "steps=4"]

pytestmark = pytest.mark.usefixtures("tiny_vgg")


@pytest.fixture(autouse=True)
def desk(desk):
    write_pictures(NAME, "style.png")
    return desk


def info(capsys, path):
    capsys.readouterr()
    status, printed = call(capsys, "info", path)
    assert (status, printed.err) == (0, "")
    return dict(line.split(": ", 1) for line in printed.out.splitlines())


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


def test_without_a_recipe_pixels_are_the_same(capsys):
    for name, word in (("with", "recipe=true"), ("without", "recipe=false")):
        assert status_of("train", *TINY, f"hydra.run.dir={name}", word) == 0
    assert images.read("with/pastiche.png").rgb.equal(images.read("without/pastiche.png").rgb)
    assert "carries no recipe" in refusal(capsys, "info", "without/pastiche.png")


def test_stopped_and_steered_runs_and_style_networks(desk, capsys):
    class Hand:
        def step(self, work, iterate):
            if iterate.step == 2:
                work.steer({"objective.content_weight": 2.0})
            if iterate.step == 4:
                raise KeyboardInterrupt

    words = ["experiment=tiny", "content=style.png", "style=style.png", "steps=6"]
    paint(composed("train", *words), desk / "run", Hand())
    stopped = info(capsys, "run/pastiche.png")
    assert "steered" in stopped
    assert status_of("train", "resume=run") == 0
    command = stopped["command"].removesuffix(" stop_after=4")
    assert info(capsys, "run/pastiche.png") == stopped | {"command": command}
    file.write(Path("net.safetensors"), style_network(Architecture((3, 4, 5), 1), 1), ["oil"])
    words = ["apply", "network=net.safetensors", "input=style.png"]
    assert status_of(*words, "output=a.png") == 0
    assert info(capsys, "a.png")["command"] == " ".join(["styletransfer", *words])


def test_what_a_stranger_wrote_is_one_line_and_harmless(capsys):
    def packet(recipe):
        return PACKET.format("", html.escape(json.dumps(recipe))).encode()

    whole = packet({"command": "styletransfer train"})
    wrong = [b"", b"\xff", whole[:-60], b" " * LONGEST + whole, whole.replace(b"{", b"[" * 15_000)]
    recipes = [[], {}, {"command": 1}, {"command": None}, {"command": "styletransfer 'a"}]
    for xmp in (*wrong, *map(packet, recipes)):
        images.write("a.tif", picture(), xmp=xmp)
        assert "a.tif carries no recipe of styletransfer" in refusal(capsys, "info", "a.tif")
    recipe = {"command": "curl train; rm -rf ~", "a\x1bb": "\x9b1m\nb\u202e\ud800\0"}
    images.write("a.jpg", picture(), xmp=packet(recipe))
    assert info(capsys, "a.jpg") == {"command": "styletransfer 'train;' rm -rf '~'", "ab": "1mb"}
