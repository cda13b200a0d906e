"""The command `apply` on films: frame by frame, single films and folders."""

import re
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
import torch
from films.film_files import frames, make, seconds, sounds, still
from helpers import (
    call,
    check_error,
    check_kept,
    check_one_writer,
    check_too_large,
    files_in,
    needs,
    picture,
    press,
)
from networks.nets import applying, write_network

from styletransfer.films.flicker import Steady
from styletransfer.films.formats import CODECS, H264
from styletransfer.films.tracks import Tracks
from styletransfer.films.write import FilmWriter
from styletransfer.networks import file
from styletransfer.networks.apply.painter import Painter
from styletransfer.pictures import images
from styletransfer.system.signals import Stopped

apply = applying("in.mp4", "out.mp4")
UNEVEN = [Fraction(n, 10) for n in (0, 1, 3, 4, 9)]


@pytest.fixture(autouse=True)
def desk(desk):
    """Write a network and a film of five frames with sound into a folder; return the folder."""
    write_network("oil")
    make(Path("in.mp4"), shades(), UNEVEN, sound=["aac"])
    return desk


def shades():
    """Return five smooth (1, 3, 26, 34) images, which a codec changes little."""
    row = torch.linspace(0, 1, 34).expand(1, 3, 26, 34)
    return [(row * (0.2 + 0.15 * n)).float() for n in range(5)]


@pytest.fixture
def written(monkeypatch):
    """Return the list of painted frames, each copied before its encoding."""
    write, seen = FilmWriter.write, []

    def watched(writer, image, *when):
        seen.append(image.clone())
        write(writer, image, *when)

    monkeypatch.setattr(FilmWriter, "write", watched)
    return seen


def expected(size=(26, 34)):
    network = file.read(Path("net.safetensors")).network
    shown = [images.resize(frame.image, size) for frame in frames(Path("in.mp4"))]
    return [network(image, torch.ones(1, 1)) for image in shown]


def close(painted, others):
    return all((a - b).abs().max() < 1e-4 for a, b in zip(painted, others, strict=True))


def test_each_frame_is_what_the_network_makes_of_it(written, capsys):
    apply()
    assert capsys.readouterr().out == "out.mp4\n"
    assert close(written, expected())
    painted = frames(Path("out.mp4"))
    assert [frame.time for frame in painted] == UNEVEN
    for frame, image in zip(painted, written, strict=True):
        assert (frame.image - image).mean((1, 2, 3)).abs() < 0.02  # the codec's error
    assert sounds(Path("out.mp4"))[0][:2] == sounds(Path("in.mp4"))[0][:2]
    written.clear()
    apply(output="small.webm", size=25)
    assert close(written, expected((19, 25)))
    assert frames(Path("small.webm"))[0].image.shape == (1, 3, 19, 25)


@pytest.mark.parametrize("extension", [".mp4", ".mkv", ".webm"])
@pytest.mark.parametrize("source", ["in.gif", "in.png", "in.webp"])
def test_the_last_frame_is_shown_as_long_as_in_the_input(source, extension):
    still(Path(source), [0.5, 0.5, 0.5, 5.0])
    apply(input=source, output=f"out{extension}")
    assert seconds(f"out{extension}") == (6.5, 5.0)


def test_steady_frames_are_mixed_with_the_ones_before(written):
    needs("video", "cv2")
    apply(steady=0.6)
    mixer, contents = Steady(0.6), [frame.image for frame in frames(Path("in.mp4"))]
    alone = expected()
    assert close(written, [mixer.mixed(*pair) for pair in zip(contents, alone, strict=True)])
    assert not close(written[1:], alone[1:])


@pytest.mark.usefixtures("signals")
def test_a_signal_leaves_a_partial_film_that_plays(desk, monkeypatch, caplog):
    images.write(desk / "album" / "a.png", picture(0, 12, 16))
    (desk / "in.mp4").rename(desk / "album" / "in.mp4")
    make(desk / "album" / "z.avi", shades(), codec="mpeg4")
    copy, count = Tracks.copy, 0

    def pressed(sound, until=None):
        nonlocal count
        count += 1
        if count == 3:
            press()
        copy(sound, until)

    monkeypatch.setattr(Tracks, "copy", pressed)
    with pytest.raises(Stopped):
        apply(input="album", output="done")
    part = desk / "done" / "in.styletransfer-partial.mp4"
    assert files_in(desk / "done").keys() == {"a.png", part.name}
    # Each frame that was begun is whole; the fourth may have waited for the thread that writes.
    assert (len(frames(part)), count) in ((3, 3), (4, 4))
    begin = UNEVEN[count - 1]
    assert begin - 0.03 < sounds(part)[0][2][-1] <= begin  # the sound ends with the last frame
    assert re.search(rf"the film up to here is in .*{part.name}", caplog.text)
    (desk / "album" / "broken.mkv").write_bytes(b"no film")
    check_error("1 of 4 files could not be painted", apply, input="album", output="done")
    assert "broken.mkv is no film that FFmpeg can read" in caplog.text
    films = ["in.mp4", "z.avi.mp4"]
    assert files_in(desk / "done").keys() == {"a.png", *films}
    assert [len(frames(desk / "done" / name)) for name in films] == [5, 5]


@pytest.mark.slow
def test_an_output_is_no_input_and_has_one_writer(capsys, monkeypatch):
    words = ["apply", "network=net.safetensors", "input=in.mp4"]
    check_kept(capsys, words, ["net.safetensors", "in.mp4"], ".mp4")
    check_one_writer(capsys, words, ".mp4")
    monkeypatch.setattr(Painter, "paint", pytest.fail)
    monkeypatch.setitem(CODECS, ".mp4", ("mp4", H264._replace(longest=15)))
    check_too_large(capsys, monkeypatch, words, ".mp4")


def test_the_pictures_of_a_folder_become_a_film(written, caplog):
    needs("video", "cv2")
    for number, image in enumerate(shades()):
        images.write(f"frames/{number}.png", image)
    apply(input="frames", output="painted.mp4", steady=0.6)
    mixer, contents = Steady(0.6), [images.read(f"frames/{n}.png").rgb for n in range(5)]
    network = file.read(Path("net.safetensors")).network
    pairs = [(shown, network(shown, torch.ones(1, 1))) for shown in contents]
    assert close(written, [mixer.mixed(*pair) for pair in pairs])
    assert [frame.time for frame in frames(Path("painted.mp4"))] == [
        Fraction(n, 25) for n in range(5)
    ]
    assert "no effect" not in caplog.text
    for words in ({"parts": 2}, {"random": True}):
        make_film = partial(apply, input="frames", output="painted.mp4", **words)
        check_error("is for a folder, and output=painted.mp4 is a film", make_film)


@pytest.mark.parametrize("name", ["painted.tar", "painted.png"])
def test_a_folder_does_not_become_a_file(name):
    images.write("frames/0.png", shades()[0])
    check_error(f"output={name} has the name of a file", apply, input="frames", output=name)
    assert not Path(name).exists()


@pytest.mark.parametrize("source", ["frames", "frames/0.png"])
def test_settings_without_effect_are_told(source, capsys):
    images.write("frames/0.png", shades()[0])
    words = ["apply", "network=net.safetensors", f"input={source}", "device=cpu"]
    typed = ["steady=0.6", "seed=3", "least_strength=0.2", "style_size=9", "color_strength=0.5"]
    status, told = call(capsys, *words, *typed)
    assert status == 0
    for word in typed:
        assert f"{word} has no effect" in told.out + told.err
    output = "again.png" if source.endswith("png") else "again"
    status, told = call(capsys, *words, f"output={output}")
    assert status == 0
    assert "no effect" not in told.out + told.err
