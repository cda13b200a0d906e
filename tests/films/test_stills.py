"""Films that are made of pictures: folders of frames, and animated pictures of all formats."""

import os
import re
from fractions import Fraction

import pytest
import torch
from films.film_files import av, frames
from helpers import check_error
from PIL import Image, features

from styletransfer.films import frame as frame_module
from styletransfer.films import stills
from styletransfer.films.read import Film
from styletransfer.pictures import images

LENGTHS = [100, 50, 200, 1500]  # milliseconds
TIMES = [0, Fraction(1, 10), Fraction(3, 20), Fraction(7, 20)]
ANIMATED = [".gif", ".png", ".webp", ".avif"]


def colored(*reds, mode="RGB", size=(34, 26), alpha=255):
    return [Image.new(mode, size, (red, 80, 120, alpha)[: len(mode)]) for red in reds]


def animated(path, pictures, lengths=LENGTHS, **options):
    """Write Pillow images as an animation whose frames last `lengths`, in ms; return its path."""
    if path.suffix == ".avif" and not features.check("avif"):
        pytest.skip("this Pillow has no AVIF")
    first, *others = pictures
    first.save(path, save_all=True, append_images=others, duration=lengths, **options)
    return path


def means(path):
    """Return the mean of red in each frame of a film, from 0 to 255."""
    return [float(frame.image[:, 0].mean() * 255) for frame in frames(path)]


def reds(folder):
    return [round(mean) for mean in means(folder)]


def write(folder, *names, size=(26, 34)):
    """Write frames whose red is 10, 20, ... of 255, in this order."""
    for number, name in enumerate(names, 1):
        image = torch.full((1, 3, *size), number * 10 / 255)
        images.write(folder / "made.png", image)
        with Image.open(folder / "made.png") as made:
            made.save(folder / name, quality=100)
        (folder / "made.png").unlink()
    return folder


@pytest.mark.parametrize("extension", ANIMATED)
def test_each_frame_of_an_animation_has_its_time(extension, tmp_path):
    """Check the last frame's duration, too, which no later frame tells."""
    path = animated(tmp_path / f"a{extension}", colored(40, 90, 140, 190), quality=95)
    shown = frames(path)
    assert [frame.time for frame in shown] == TIMES
    assert [frame.duration * 1000 for frame in shown] == LENGTHS
    with Film(path) as film:
        assert (film.count, film.size) == (4, (26, 34))
    for mean, red in zip(means(path), (40, 90, 140, 190), strict=True):
        assert abs(mean - red) < 4


@pytest.mark.parametrize("extension", ANIMATED)
def test_transparent_frames_are_laid_on_white(extension, tmp_path):
    pictures = colored(40, 90, 140, mode="RGBA")
    for picture in pictures:
        picture.paste((picture.getpixel((0, 0))[0], 80, 120, 0), (0, 0, 17, 26))
    path = animated(tmp_path / f"a{extension}", pictures, 100, disposal=2, quality=95)
    for frame, red in zip(frames(path), (40, 90, 140), strict=True):
        assert frame.image[..., :14].min() > 0.98
        assert (frame.image[:, 0, :, 20:] * 255 - red).abs().max() < 6


@pytest.mark.parametrize("block", [b"", b"\x21\xf9\x04\x04\x00\x00\x00\x00"])
def test_a_gif_that_states_no_times_is_shown_as_in_browsers(block, tmp_path):
    data = animated(tmp_path / "a.gif", colored(40, 90, 140)).read_bytes()
    plain = re.sub(rb"\x21\xf9\x04.{4}\x00", block, data, flags=re.DOTALL)
    (tmp_path / "a.gif").write_bytes(plain)
    shown = frames(tmp_path / "a.gif")
    assert [frame.time * 10 for frame in shown] == [0, 1, 2]
    assert shown[-1].duration * 10 == 1


def test_thirds_of_a_second_add_up(tmp_path):
    path = animated(tmp_path / "a.png", colored(40, 90, 140, 190), 1000 / 30)
    assert [frame.time for frame in frames(path)] == [Fraction(n, 30) for n in range(4)]


@pytest.fixture
def own_policy():
    """Restore the scheduling policy: under root, SVT-AV1 gives its caller SCHED_FIFO, 99."""
    yield
    if hasattr(os, "sched_setscheduler"):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@pytest.mark.usefixtures("own_policy")
def test_times_of_an_avif_do_not_add_up_their_rounding(tmp_path):
    """Pillow rounds the durations in an AVIF to milliseconds: 31 of 33 ms are not 1 s."""
    if not features.check("avif") or "libsvtav1" not in av.codec.codec.codecs_available:
        pytest.skip("this Pillow or this PyAV has no AV1")
    with av.open(str(tmp_path / "a.avif"), "w") as film:
        stream = film.add_stream("libsvtav1", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for number in range(31):
            picture = av.VideoFrame.from_image(colored(8 * number, size=(64, 64))[0])
            picture.pts = number
            film.mux(stream.encode(picture.reformat(format="yuv420p")))
        film.mux(stream.encode(None))
    for number, frame in enumerate(frames(tmp_path / "a.avif")):
        assert abs(frame.time - Fraction(number, 30)) <= Fraction(1, 2000)


def test_a_cover_that_is_no_frame_is_left_out(tmp_path):
    path = animated(tmp_path / "a.png", colored(40, 90, 140), [100, 900], default_image=True)
    assert reds(path) == [90, 140]
    assert frames(path)[-1].duration == Fraction(9, 10)


def test_a_damaged_animation_ends_in_one_line(tmp_path):
    noise = [Image.effect_noise((34, 26), 90).convert("RGB") for _ in range(4)]
    data = animated(tmp_path / "a.png", noise).read_bytes()
    (tmp_path / "a.png").write_bytes(data[: len(data) * 5 // 8])
    with pytest.raises(Exception, match=r"a\.png is damaged after frame 2; get an intact copy"):
        frames(tmp_path / "a.png")
    (tmp_path / "a.png").write_bytes(data[: len(data) // 8])
    check_error(r"a\.png is damaged; get an intact copy", Film, tmp_path / "a.png")


def frame_of_a_gif(path, size):
    """Return the bytes of a frame of (width, height) `size` in a GIF, without those around it."""
    Image.new("L", size).save(path)
    data = path.read_bytes()
    return data[data.index(b",\0\0\0\0") : -1]


@pytest.mark.slow
def test_a_frame_larger_than_its_gif_is_refused(tmp_path):
    data = animated(tmp_path / "a.gif", colored(40, 90)).read_bytes()
    larger = frame_of_a_gif(tmp_path / "b.gif", (10000, 9000))
    (tmp_path / "a.gif").write_bytes(data[:-1] + larger + data[-1:])
    check_error(r"a\.gif is damaged after frame 2; get an intact copy", frames, tmp_path / "a.gif")


def test_a_gif_that_breaks_off_is_refused_in_one_line(tmp_path):
    """Pillow looks for all frames first, with errors of other kinds than at a frame."""
    data = animated(tmp_path / "a.gif", colored(40, 90)).read_bytes()
    kept = data[: data.rindex(b",\0\0\0\0") + 9]
    (tmp_path / "a.gif").write_bytes(kept)
    check_error(r"a\.gif is damaged.*; get an intact copy", frames, tmp_path / "a.gif")


@pytest.mark.parametrize(
    "names",
    [
        [f"{number}.png" for number in range(12)],
        ("shot 2 - 9.png", "shot 2 - 10.png", "shot 10 - 1.png"),
        ("a_007.png", "a_8.png", "a_0009.png"),
        ("F1.PNG", "f2.png", "F3.png", "f10.PNG"),
    ],
)
def test_numbers_in_names_count_as_numbers(names, tmp_path):
    assert reds(write(tmp_path, *names)) == list(range(10, 10 * len(names) + 1, 10))


def test_all_spellings_of_an_extension_are_frames(tmp_path):
    write(tmp_path, "f0.JPG", "f1.jpg", "f2.jpeg", "f3.Jpg", "f4.JPEG")
    assert [round(mean, -1) for mean in means(tmp_path)] == [10, 20, 30, 40, 50]


def test_pictures_of_another_format_are_named(tmp_path, caplog):
    write(tmp_path, "0_cover.png", "f1.jpg", "f2.jpg", "notes.webp")
    assert len(frames(tmp_path)) == 2
    assert "passed over 0_cover.png, notes.webp" in caplog.text


@pytest.mark.parametrize("name", ["f9.png", "f0.png"])
def test_a_second_size_is_refused_before_any_work(name, tmp_path):
    write(tmp_path, "f1.png", "f2.png")
    write(tmp_path, name, size=(26, 40))
    check_error(
        r"f\d\.png has \d\d x 26 pixels, and f\d\.png has \d\d x 26; remove", Film, tmp_path
    )


@pytest.mark.parametrize("extension", [".jpg", ".png", ".tif", ".webp"])
def test_frames_that_lie_on_their_side_are_a_second_size(extension, tmp_path):
    """A frame that its EXIF orientation turns has the turned size."""
    turned = Image.Exif()
    turned[0x0112] = 6
    for number, size in enumerate([(34, 26), (34, 26), (26, 34)]):
        exif = {"exif": turned} if size == (26, 34) else {}
        Image.new("RGB", size, (90, 80, 70)).save(tmp_path / f"f{number}{extension}", **exif)
    with Film(tmp_path) as film:
        assert {frame.image.shape[2:] for frame in film.frames()} == {(26, 34)}
    Image.new("RGB", (26, 34)).save(tmp_path / f"f2{extension}")
    said = rf"f2\{extension} has 26 x 34 pixels, and f0\{extension} has 34 x 26; remove it"
    check_error(said, Film, tmp_path)


def test_transparent_frames_of_a_folder_are_laid_on_white(tmp_path):
    for picture in colored(40, mode="RGBA", alpha=0):
        picture.save(tmp_path / "a.png")
    assert reds(tmp_path) == [255]


def test_pictures_too_large_for_a_film_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(frame_module, "MAX_PIXELS", 800)
    write(tmp_path / "in", "f1.png")
    gif = animated(tmp_path / "a.gif", colored(1, 200), 100)
    monkeypatch.setattr(stills, "read_image", None)
    for path in (tmp_path / "in", tmp_path / "in" / "f1.png", gif):
        check_error("34 x 26 = 884 pixels, more than the limit of 800; shrink it", Film, path)
