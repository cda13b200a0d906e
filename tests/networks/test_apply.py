"""The command `apply`: single pictures, folders, blends of styles, and one-line errors."""

import json
import tarfile
from functools import partial
from pathlib import Path

import pytest
import torch
from helpers import (
    call,
    check_error,
    check_kept,
    check_one_writer,
    check_refused,
    check_too_large,
    files_in,
    needs,
    picture,
    write_pictures,
)
from networks.nets import SLIM, applying, close, style_network, write_network
from PIL import Image

from styletransfer.networks import file
from styletransfer.networks.apply import painter
from styletransfer.networks.apply.painter import Painter
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.networks.deploy import deployed
from styletransfer.networks.encoder import (
    color_moments,
    finished,
    moments,
    set_rows,
    style_features,
)
from styletransfer.networks.johnson import LAYOUTS, StyleNetwork
from styletransfer.networks.paintings import style_image
from styletransfer.pictures import images
from styletransfer.pictures.color import with_chroma_of
from styletransfer.system.locks import locked

apply = applying("photo.png", "out.png")


@pytest.fixture(autouse=True)
def desk(desk):
    """Write a network of two different styles and a picture; return their folder."""
    write_network("oil", "wash")
    images.write("photo.png", picture(0, 13, 22))
    return desk


def painted(**changed):
    apply(**changed)
    return images.read(str(changed.get("output", "out.png"))).rgb


def test_a_picture_is_what_the_network_makes_of_it(capsys):
    """Check blends by weights (only ratios matter), by a style's name, and in equal parts."""
    network, shown = file.read(Path("net.safetensors")).network, images.read("photo.png").rgb
    for changed, blend in (
        ({"style_weights": [0.0, 2.0]}, [0.0, 1.0]),
        ({"style": "wash"}, [0.0, 1.0]),
        ({"style_weights": [2.0, 6.0]}, [0.25, 0.75]),
        ({}, [0.5, 0.5]),
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


def test_the_path_and_the_seconds_are_told_as_json(capsys):
    apply(format="json")
    told = json.loads(capsys.readouterr().out)
    assert (told.keys(), told["output"]) == ({"output", "seconds"}, "out.png")


@torch.no_grad()
def test_a_picture_too_large_for_memory_is_refused(monkeypatch):
    """Check that the memory estimate is at least the measured peak."""
    network, image = StyleNetwork(LAYOUTS["tiny"], 1), picture(0, 64, 96).float()
    file.write(Path("tiny.safetensors"), network.requires_grad_(False), ["oil"])
    measure = pytest.importorskip("styletransfer.lessons.measure")
    paints = partial(deployed(network), image, torch.ones(1, 1))
    needed = measure.peak_memory(paints, torch.device("cpu"))
    tiny = Painter(ApplyConfig("tiny.safetensors", device="cpu", precision="float32"))
    monkeypatch.setattr(painter, "free_bytes", lambda device: needed - 1)
    check_error(r"a.png needs 1 MiB of memory; choose size=\d\d$", tiny.size, (64, 96), "a.png")
    monkeypatch.setattr(painter, "free_bytes", lambda device: 10**6)
    assert tiny.size((64, 96), "a.png") == (64, 96)


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
    """Return a folder with nested folders and files of several kinds."""
    names = ("a.png", "trip/b.JPG", "trip/far/c.tiff", "a.webp")
    write_pictures(*(desk / "album" / name for name in names), height=12, width=16)
    Image.new("RGB", (16, 12), "teal").save(desk / "album" / "d.gif")
    (desk / "album" / "notes.txt").write_text("no picture")
    (desk / "album" / ".hidden.png").write_text("no picture")
    return desk / "album"


def times(folder):
    """Return the modification time in nanoseconds of each file below `folder`, by path."""
    files = (path for path in folder.rglob("[!.]*") if path.is_file())
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in files}


def test_a_second_call_paints_only_missing_files(album, desk, caplog):
    work = partial(apply, input="album", output="done")
    work()
    before = times(desk / "done")
    assert sorted(before) == ["a.png", "a.webp", "d.gif.png", "trip/b.JPG", "trip/far/c.tiff"]
    network = file.read(Path("net.safetensors")).network
    for name in ("a.png", "trip/far/c.tiff"):
        whole = network(images.read(album / name).rgb, torch.full((1, 2), 0.5))
        assert close(images.read(desk / "done" / name).rgb, whole)
    (desk / "done" / "a.webp").unlink()
    with caplog.at_level("INFO"):
        work()
    assert "4 of 5 files are in done already, and stay" in caplog.text
    after = times(desk / "done")
    assert {name for name in after if after[name] != before[name]} == {"a.webp"}


def test_a_second_call_with_other_settings_is_refused(album, desk, caplog):
    """Each picture carries its recipe; the device and the version change only the last bits."""
    work = {"input": "album", "output": "done"}
    apply(**work)
    before = files_in("done")
    check_refused(
        apply,
        [
            (work | {"style": "oil"}, "was painted with another style; choose another output"),
            (work | {"style_weights": [1.0, 2.0]}, "was painted with another style_weights"),
            (work | {"size": 30}, "was painted with another size"),
            (work | {"color_strength": 0.5}, "was painted with another color_strength"),
        ],
    )
    apply(**work)
    whole = (desk / "net.safetensors").read_bytes()
    file.write(Path("net.safetensors"), style_network(SLIM, 3), ["oil", "wash", "ink"])
    check_refused(apply, [(work, "was painted with another network")])
    (desk / "net.safetensors").write_bytes(whole)
    images.write(album / "a.png", picture(5, 13, 22))
    check_refused(apply, [(work, "a.png was painted with another input")])
    assert files_in("done") == before
    apply(input="album", output="bare", recipe=False)
    apply(input="album", output="bare", style="oil")
    assert "5 of them may have other settings: they carry no recipe" in caplog.text


def test_a_folder_replaces_no_other_file(album, desk):
    work = {"input": "album", "output": "done"}
    (desk / "done/trip").mkdir(parents=True)
    (desk / "done/trip/b.JPG").symlink_to(album / "a.png")
    check_refused(apply, [(work, "trip/b.JPG would overwrite input=album/a.png")])
    with locked(desk / "done"):
        (desk / "done/trip/b.JPG").unlink()
        check_refused(apply, [(work, "another run is at work in done")])
    Image.new("RGB", (9, 9)).save(album / "d.gif.png")
    check_refused(apply, [(work, "two results would become")])


def test_broken_pictures_are_told_and_the_others_are_painted(album, desk, caplog):
    whole = (album / "a.png").read_bytes()
    (album / "a.png").write_bytes(whole[: len(whole) // 2])
    Image.new("RGB", (3, 40), "teal").save(album / "narrow.png")
    (album / "words.md").touch()
    Image.new("RGBA", (32, 32), (0, 0, 0, 0)).save(album / "invisible.png")
    check_error("3 of 7 files could not be painted", apply, input="album", output="done")
    for words in ("a.png is damaged", "side needs at least 8", "is fully transparent"):
        assert words in caplog.text
    assert "passed over notes.txt, words.md" in caplog.text
    assert sorted(times(desk / "done")) == [
        "a.webp",
        "d.gif.png",
        *("trip/b.JPG", "trip/far/c.tiff"),
    ]


@pytest.mark.slow
@torch.no_grad()
def test_a_picture_is_painted_in_the_style_of_any_other():
    """Check one style, two weighted styles, and `strength`."""
    network, shown = write_network(), images.read("photo.png").rgb
    write_pictures("a.png", "b.png", height=24, width=40)
    eye = style_features(torch.device("cpu"), torch.float32)

    def row(picture):
        return network.encoder(moments(eye, picture))

    looked = [style_image(name, 48, 8) for name in ("a.png", "b.png")]
    first, second = map(row, looked)
    one, other = (color_moments(image) for image in looked)
    own = row(images.resize(shown, (303, 512)))
    work, made = partial(painted, network="any.safetensors", style_size=48), []
    several = {"style": ["a.png", "b.png"], "style_weights": [1.0, 3.0]}
    for changed, expected, goal, share in (
        ({"style": "a.png"}, first, one, 1.0),
        (several, first.lerp(second, 0.75), one.lerp(other, 0.75), 1.0),
        ({"style": "b.png", "strength": 0.25}, own.lerp(second, 0.25), other, 0.25),
        ({"style": "b.png", "strength": 1.5}, own.lerp(second, 1.5), other, 1.0),
    ):
        made.append(work(**changed))
        set_rows(network, expected)
        pastiche = network(shown, torch.ones(1, 1))
        assert close(made[-1], finished(pastiche, goal, share))
    assert not close(made[0], made[1])


@pytest.mark.slow
def test_a_data_set_has_a_drawn_style_and_strength_for_each(desk, monkeypatch):
    write_network()
    monkeypatch.setattr(painter, "ENCODED_SIDE", 32)
    write_pictures("styles/a.png", "styles/b.png", "styles/c.png", height=24, width=40)
    write_pictures("tree/1.png", "tree/2.png", "tree/in/1.png", "tree/in/2.png")
    work = {"network": "any.safetensors", "style": "styles", "style_size": 48, "input": "tree"}
    made = partial(apply, **work, output="set", random=True, seed=1, least_strength=0.25)
    made()
    whole = files_in("set")
    table = whole["manifest.csv"].decode().splitlines()
    rows = [row.split(",") for row in table[1:]]
    assert {name for name, *_ in rows} == files_in("tree").keys()
    assert len({style for _, style, _ in rows}) > 1
    for name, style, strength in rows[:2]:
        assert 0.25 <= float(strength) <= 1
        one = {"input": f"tree/{name}", "style": f"styles/{style}", "strength": float(strength)}
        apply(**work | one | {"output": "one.png"})
        assert files_in("set")[name] == Path("one.png").read_bytes()
    Path("set/in/1.png").unlink()
    made()
    assert files_in("set") == whole
    for part in (0, 1):
        made(output="parted", parts=2, part=part)
    parted = files_in("parted")
    tables = [parted.pop(f"manifest.{part}-of-2.csv").decode().splitlines() for part in (0, 1)]
    assert sorted([*tables[0], *tables[1][1:]]) == sorted(table)
    check_error("other draws", partial(made, output="parted", parts=2, part=0, seed=2))
    made(output="parted")
    assert parted.items() < files_in("parted").items()
    assert files_in("parted")["manifest.csv"] == whole["manifest.csv"]
    check_error("was painted with other draws", partial(made, seed=2))
    check_error("random=true is for a folder", partial(made, input="photo.png"))


BAD = [
    ({"input": "album", "output": "x", "style": "oil", "random": True}, "that knows any style"),
    ({"input": "none.png"}, "none.png does not exist"),
    ({"output": "a.m4a"}, "cannot write a.m4a: unknown extension"),
    ({"input": "album", "output": "album/done"}, "lie in one another"),
    ({"input": "album", "output": "photo.png"}, "cannot write photo.png"),
    ({"input": "empty", "output": "done"}, "input=empty holds no picture"),
    ({"size": 9}, "photo.png comes down to 9 x 5 pixels; each side needs at least 8"),
    ({"style": "ochre"}, "style=ochre is none of the network's; it has oil, wash"),
    ({"style": "wash", "style_weights": [1.0, 1.0]}, "exclude each other"),
    ({"style_weights": [1.0]}, "holds 1 numbers, and there are 2 styles (oil, wash)"),
    ({"style_weights": [1.0, -1.0]}, "must be finite numbers, 0 or more"),
    ({"strength": 0.5}, "strength=0.5 needs a network that knows any style"),
    ({"network": "any.safetensors"}, "takes its style from a picture; give style=PICTURE"),
    (
        {"network": "any.safetensors", "style": "photo.png", "style_size": 9},
        "the deepest layer needs 8; raise style_size=9",
    ),
]


def test_bad_input_is_one_line_and_writes_nothing(album, desk):
    (desk / "empty").mkdir()
    write_network()
    Image.new("RGB", (9, 9), "red").save("a.png")
    before = times(desk)
    check_refused(apply, BAD)
    assert times(desk) == before
    assert not (desk / "done").exists()


def test_the_pastiches_of_a_folder_do_not_go_through_a_pipe(album, capsys):
    words = ["apply", "network=net.safetensors", "input=album", "output=-"]
    status, printed = call(capsys, *words)
    assert (status, printed.out) == (1, "")
    assert "error: cannot write" in printed.err


def test_no_file_that_is_read_is_overwritten(capsys):
    words = ["network=net.safetensors", "input=photo.png"]
    check_kept(capsys, ["apply", *words], ["net.safetensors", "photo.png"], ".png")


def test_an_export_does_not_overwrite_its_network(capsys):
    needs("onnx", "onnx", "onnxscript")
    words = ["export", "network=net.safetensors"]
    check_kept(capsys, words, ["net.safetensors"], ".onnx")


def test_a_picture_too_large_for_its_format_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(Painter, "paint", pytest.fail)
    words = ["apply", "network=net.safetensors", "input=photo.png"]
    check_too_large(capsys, monkeypatch, words, ".webp")


@pytest.mark.parametrize("ending", [".png", ".tar", ".onnx"])
def test_an_output_has_one_writer_at_a_time(ending, capsys):
    if ending == ".onnx":
        needs("onnx", "onnx", "onnxscript")
    network, photo = "network=net.safetensors", "input=photo.png"
    if ending == ".tar":
        with tarfile.open("in.tar", "w") as made:
            made.add("photo.png")
        photo = "input=in.tar"
    words = ["export"] if ending == ".onnx" else ["apply", photo]
    check_one_writer(capsys, [*words, network], ending)


def test_a_pastiche_carries_its_command(capsys):
    words = ["apply", "network=net.safetensors", "input=photo.png"]
    assert call(capsys, *words, "style=oil", "output=a.png")[0] == 0
    said = call(capsys, "info", "a.png")[1].out.splitlines()
    assert f"command: {' '.join(['styletransfer', *words, 'style=oil'])}" in said
