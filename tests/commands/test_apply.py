"""Painting with style networks: any picture, folders, blends, and bad input in one line."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from helpers import (
    check_error,
    check_refused,
    picture,
    style_encoder,
    style_network,
    write_pictures,
)
from PIL import Image

from styletransfer.commands.apply import painter
from styletransfer.commands.apply.command import main
from styletransfer.commands.apply.painter import Painter
from styletransfer.job.load import style_image
from styletransfer.networks import LAYOUTS, Architecture, StyleNetwork, deployed, file
from styletransfer.networks.encoder import finished, moments, palette, set_rows, style_features
from styletransfer.pictures import images
from styletransfer.pictures.color import with_chroma_of
from styletransfer.settings import ApplyConfig
from styletransfer.system.files import locked
from styletransfer.system.measure import peak_memory

SLIM = Architecture((3, 4, 5), 1)


@pytest.fixture(autouse=True)
def desk(desk):
    """A folder with a network of two styles that differ, and a picture."""
    file.write(Path("net.safetensors"), style_network(SLIM, 2), ["oil", "wash"])
    images.write("photo.png", picture(0, 13, 22))
    return desk


def settings(**changed):
    """One picture, on the CPU and in float32 wherever the tests run."""
    config = ApplyConfig("net.safetensors", "photo.png", "out.png", device="cpu")
    return replace(config, precision="float32", **changed)


def apply(**changed):
    main(settings(**changed), Path("unused"))


def painted(**changed):
    apply(**changed)
    return images.read(str(changed.get("output", "out.png"))).rgb


def close(ours, theirs):
    """Tell whether two pictures are the same but for rounding to 8 bits, of both."""
    return bool((ours - theirs).abs().max() < 1.1 / 255)


def test_a_picture_is_what_the_network_makes_of_it(capsys):
    """By weights, of which only the ratios matter, by the style's name, or in equal parts."""
    network, shown = file.read(Path("net.safetensors")).network, images.read("photo.png").rgb
    for changed, blend in (
        ({"style_weights": [0.0, 2.0]}, [0.0, 1.0]),
        ({"style": "wash"}, [0.0, 1.0]),
        ({"style_weights": [2.0, 6.0]}, [0.25, 0.75]),
        ({}, [0.5, 0.5]),
        ({"strip": 4}, [0.5, 0.5]),
    ):
        apply(**changed)
        assert capsys.readouterr().out == "out.png\n"
        assert close(images.read("out.png").rgb, network(shown, torch.tensor([blend])))
    assert not Path("unused").exists()


def test_a_pastiche_is_named_after_picture_and_network(capsys):
    for folder in ("photos", "nets/wash"):
        Path(folder).mkdir(parents=True)
    Image.new("RGB", (12, 9)).save("photos/a.gif")
    Path("nets/wash/network.safetensors").write_bytes(Path("net.safetensors").read_bytes())
    for network, source, name in (
        ("net.safetensors", "photo.png", "photo_net.png"),
        ("nets/wash/network.safetensors", "photo.png", "photo_wash.png"),
        ("net.safetensors", "photos/a.gif", "a_net.gif.png"),
        ("net.safetensors", "photos", "photos_net"),
        ("oil", "photo.png", "photo_oil.png"),
    ):
        apply(network=network, input=source, output=None)
        assert capsys.readouterr().out == f"{name}\n"
        assert Path(name).exists()


@torch.no_grad()
def test_what_does_not_fit_memory_is_painted_in_strips(monkeypatch, caplog):
    """A whole picture takes no more than was reckoned, and strips of it make the same one."""
    monkeypatch.setattr(painter, "STRIP", 600)
    network, image = StyleNetwork(LAYOUTS["tiny"], 1), picture(0, 64, 96).float()
    file.write(Path("tiny.safetensors"), network.requires_grad_(False), ["oil"])
    needed = peak_memory(partial(deployed(network), image, torch.ones(1, 1)), torch.device("cpu"))
    tiny = Painter(settings(network="tiny.safetensors"))
    for free, rows in ((needed, 16), (2 * needed, 64)):
        monkeypatch.setattr(painter, "free_bytes", lambda device, free=free: free / painter.SHARE)
        assert tiny.rows((64, 96)) == rows
    tiny.config.strip = 8
    assert tiny.rows((64, 96)) == 8
    images.write("tall.png", picture(3, 70, 30))
    whole = painted(input="tall.png", strip=70)
    monkeypatch.setattr(painter, "free_bytes", lambda device: 1000.0)
    with caplog.at_level("INFO"):
        assert close(painted(input="tall.png"), whole)
    assert "30 x 70 pixels in strips of 20 rows" in caplog.text


def test_alpha_is_kept_and_hidden_colours_do_not_matter():
    alpha = torch.ones(1, 1, 13, 22)
    alpha[..., :9] = 0
    rgb = picture(0, 13, 22).float()
    images.write("a.png", rgb, alpha)
    images.write("b.png", torch.where(alpha > 0, rgb, 1 - rgb), alpha)
    for name in ("a", "b"):
        apply(input=f"{name}.png", output=f"{name}_out.png")
    first, second = (images.read(f"{name}_out.png") for name in "ab")
    assert first.alpha is not None
    assert torch.equal(first.alpha, alpha)
    assert torch.equal(first.rgb, second.rgb)


def test_a_pastiche_may_keep_the_pictures_size_and_colors():
    assert painted(size=44).shape == (1, 3, 26, 44)
    content, plain = images.read("photo.png").rgb, painted()
    mixed = painted(color="content_luminance", color_strength=0.75)
    assert (mixed - with_chroma_of(plain, content, 0.75)).abs().max() < 0.02  # both are rounded
    assert not close(mixed, plain)


@pytest.fixture
def album(desk):
    """A folder of folders, with files of several kinds."""
    names = ("a.png", "trip/b.JPG", "trip/far/c.tiff", "a.webp")
    write_pictures(*(desk / "album" / name for name in names), height=12, width=16)
    Image.new("RGB", (16, 12), "teal").save(desk / "album" / "d.gif")
    (desk / "album" / "notes.txt").write_text("no picture")
    (desk / "album" / ".hidden.png").write_text("no picture")
    return desk / "album"


def times(folder):
    """Return when each file below a folder was written, in nanoseconds."""
    files = (path for path in folder.rglob("[!.]*") if path.is_file())
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in files}


def test_run_again_only_what_is_missing_or_old_is_painted(album, desk, caplog):
    """The structure is kept, and what cannot be written becomes PNG."""
    work = partial(apply, input="album", output="done")
    work()
    before = times(desk / "done")
    assert sorted(before) == ["a.png", "a.webp", "d.gif.png", "trip/b.JPG", "trip/far/c.tiff"]
    network = file.read(Path("net.safetensors")).network
    for name in ("a.png", "trip/far/c.tiff"):
        whole = network(images.read(album / name).rgb, torch.full((1, 2), 0.5))
        assert close(images.read(desk / "done" / name).rgb, whole)
    (desk / "done" / "a.webp").unlink()
    os.utime(album / "trip" / "b.JPG")  # changed since
    with caplog.at_level("INFO"):
        work()
    assert "3 of 5 files are there already" in caplog.text
    after = times(desk / "done")
    assert {name for name in after if after[name] != before[name]} == {"a.webp", "trip/b.JPG"}
    os.utime("net.safetensors")  # which is the same
    work()
    assert times(desk / "done") == after
    work(color="content_luminance")
    colored = times(desk / "done")
    assert all(time != after[name] for name, time in colored.items())
    trained = style_network(SLIM, 2)
    next(trained.parameters()).mul_(0.5)
    file.write(Path("net.safetensors"), trained, ["oil", "wash"])
    work(color="content_luminance")
    assert all(time != colored[name] for name, time in times(desk / "done").items())


def test_a_file_that_was_not_painted_is_not_replaced(album, desk):
    theirs = desk / "done" / "trip" / "b.JPG"
    images.write(theirs, picture(5, 9, 9))
    before, work = times(desk), {"input": "album", "output": "done"}
    said = "trip/b.JPG is there already, and was not painted by this command"
    check_refused(apply, [(work, said)])
    assert times(desk) == before
    theirs.unlink()
    theirs.symlink_to(album / "a.png")
    before = times(desk)
    check_refused(apply, [(work, "trip/b.JPG would overwrite input=album/a.png")])
    assert times(desk) == before
    theirs.unlink()
    apply(**work)
    with locked(desk / "done"):
        check_refused(apply, [(work, "another run is at work in done")])
    Image.new("RGB", (9, 9)).save(album / "d.gif.png")
    before = times(desk)
    check_refused(apply, [(work, "two results would become")])
    assert times(desk) == before


def test_broken_pictures_are_told_and_the_others_are_painted(album, desk, monkeypatch, caplog):
    whole = (album / "a.png").read_bytes()
    (album / "a.png").write_bytes(whole[: len(whole) // 2])
    Image.new("RGB", (3, 40), "teal").save(album / "narrow.png")
    (album / "words.md").touch()
    Image.new("RGBA", (32, 32), (0, 0, 0, 0)).save(album / "invisible.png")
    paint = Painter.paint

    def short(self, content, rows):
        if content.mean() == images.read(album / "d.gif").rgb.mean():
            raise MemoryError
        return paint(self, content, rows)

    monkeypatch.setattr(Painter, "paint", short)
    check_error("4 of 7 files could not be painted", apply, input="album", output="done")
    for words in ("a.png is damaged", "side needs at least 8", "is fully transparent"):
        assert words in caplog.text
    assert "d.gif fits no memory; choose a smaller size" in caplog.text
    assert "passed over notes.txt, words.md" in caplog.text
    assert sorted(times(desk / "done")) == ["a.webp", "trip/b.JPG", "trip/far/c.tiff"]


def any_network():
    """Write a network that knows any style, and return it."""
    network = style_network(SLIM, 0)
    network.encoder = style_encoder(network)
    file.write(Path("any.safetensors"), network, [])
    return network


@torch.no_grad()
def test_a_picture_is_painted_in_the_style_of_any_other():
    """In that of several, by weights; less of it as `strength` falls; half in its palette."""
    network, shown = any_network(), images.read("photo.png").rgb
    write_pictures("a.png", "b.png", height=24, width=40)
    eye = style_features(torch.device("cpu"), torch.float32)

    def row(picture):
        return network.encoder(moments(eye, picture))

    looked = [style_image(name, 48, 8) for name in ("a.png", "b.png")]
    first, second = map(row, looked)
    one, other = (palette(image) for image in looked)
    own = row(images.resize(shown, (303, 512)))
    work, made = partial(painted, network="any.safetensors", style_size=48), []
    several = {"style": ["a.png", "b.png"], "style_weights": [1.0, 3.0]}
    for changed, expected, goal, share in (
        ({"style": "a.png"}, first, one, 0.5),
        (several, first.lerp(second, 0.75), one.lerp(other, 0.75), 0.5),
        ({"style": "b.png", "strength": 0.25}, own.lerp(second, 0.25), other, 0.125),
    ):
        made.append(work(**changed))
        set_rows(network, expected)
        pastiche = network(shown, torch.ones(1, 1))
        assert close(made[-1], finished(pastiche, goal, 2 * share))
    assert not close(made[0], made[1])


def test_a_grey_picture_in_a_grey_style_is_grey():
    any_network()
    write_pictures("a.png", "b.png", height=24, width=40)
    for name in ("photo.png", "a.png"):
        Image.open(name).convert("L").save(f"grey_{name}")
    work = partial(painted, network="any.safetensors", style_size=48)
    made = work(input="grey_photo.png", style="grey_a.png")
    assert made.std() > 0
    assert made.amax(1).equal(made.amin(1))
    for colored in (
        work(input="grey_photo.png", style=["grey_a.png", "b.png"]),
        work(style="grey_a.png"),
    ):
        assert not colored.amax(1).equal(colored.amin(1))


def test_each_region_has_its_style_and_what_is_in_none_stays():
    """By a network's own styles, whole and in strips, and by those of pictures."""
    labels = torch.zeros(1, 3, 13, 22)
    labels[:, 0, :, :9] = 1
    labels[:, 2, :6, 9:] = 1
    image = Image.fromarray((255 * labels[0]).permute(1, 2, 0).byte().numpy())
    image.putalpha(Image.fromarray((255 * labels[0].sum(0)).byte().numpy()))
    image.save("regions.png")
    any_network()
    write_pictures("a.png", "b.png", height=24, width=40)
    chosen = {"content_regions": "regions.png", "region_styles": {"red": 2, "blue": 1}}
    photo = images.read("photo.png").rgb
    known = [{"style": "oil"}, {"style": "wash"}, {}]
    pictures = {"network": "any.safetensors", "style_size": 48}
    looked = [pictures | {"style": name} for name in ("a.png", "b.png", ["a.png", "b.png"])]
    for first, second, both in (known, looked, [one | {"strip": 8} for one in known]):
        red, blue, made = painted(**second), painted(**first), painted(**both, **chosen)
        expected = labels[:, :1] * red + labels[:, 2:] * blue + (1 - labels.sum(1)) * photo
        assert close(made, expected)
        assert not close(red, blue)


def test_a_folder_is_painted_anew_in_another_style(album, desk):
    any_network()
    write_pictures("a.png", "b.png", height=24, width=40)
    work = partial(apply, network="any.safetensors", style="a.png", input="album", output="done")
    work()
    before = times(desk / "done")
    work()
    assert times(desk / "done") == before
    Path("b.png").replace("a.png")
    work()
    after = times(desk / "done")
    assert all(after[name] > before[name] for name in before)


BAD = [
    ({"input": "none.png"}, "none.png does not exist"),
    ({"input": "a.m4a", "output": None}, "input=a.m4a has the name of no picture and no film"),
    ({"input": "album", "output": "album/done"}, "lie in one another"),
    ({"input": "album/trip", "output": "album"}, "lie in one another"),
    ({"input": "album", "output": "photo.png"}, "output=photo.png is a file"),
    ({"input": "album", "output": "photo.png/done"}, ".jsonl: Not a directory; choose a"),
    ({"input": "empty", "output": "done"}, "input=empty holds no picture"),
    ({"size": 9}, "photo.png comes down to 9 x 5 pixels; each side needs at least 8"),
    ({"strip": 3}, "strip=3 must be 4 rows or more"),
    ({"style": "ochre"}, "style=ochre is none of the network's; it has oil, wash"),
    ({"style": "wash", "style_weights": [1.0, 1.0]}, "exclude each other"),
    ({"style_weights": [1.0]}, "holds 1 numbers, and there are 2 styles (oil, wash)"),
    ({"style_weights": [0.0, 0.0]}, "not all of them 0"),
    ({"style_weights": [1.0, -1.0]}, "must be finite numbers, 0 or more"),
    ({"region_styles": {"red": 1}}, "region_styles needs content_regions"),
    ({"content_regions": "a.png", "region_styles": {"red": 1}}, "another aspect ratio"),
    ({"content_regions": "a.png", "style": "oil"}, "leave style_weights out, and style where"),
    ({"content_regions": "a.png"}, "there are 2 styles; say which takes which"),
    ({"strength": 0.5}, "strength=0.5 needs a network that knows any style"),
    ({"network": "any.safetensors"}, "takes its style from a picture; give style=PICTURE"),
    ({"network": "any.safetensors", "style": "photo.png", "output": "photo.png"}, "overwrite"),
    (
        {"network": "any.safetensors", "style": "photo.png", "style_size": 9},
        "the deepest layer needs 8; raise style_size=9",
    ),
]


def test_bad_input_is_one_line_and_writes_nothing(album, desk):
    (desk / "empty").mkdir()
    any_network()
    Image.new("RGB", (9, 9), "red").save("a.png")
    before = times(desk)
    check_refused(apply, BAD)
    assert times(desk) == before
    assert not (desk / "done").exists()
