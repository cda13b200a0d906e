"""What is in a file: several streams, transparent and interlaced frames, too large ones."""

from fractions import Fraction

import numpy as np
import pytest
from films.film_files import BT709, av, frames, make, tone
from films.test_read_write import difference, greys, noise
from helpers import check_error

from styletransfer.errors import UserError
from styletransfer.films import ffmpeg, read
from styletransfer.films import frame as frame_module
from styletransfer.films.read import Film
from styletransfer.films.write import FilmWriter

INTERLACED = {"x264-params": "tff=1"}


def add(film, codec, size, pixels, **options):
    """Return a new stream of a PyAV container, with (height, width) `size`."""
    stream = film.add_stream(codec, rate=10, options=options)
    stream.height, stream.width = size
    stream.pix_fmt = pixels
    return stream


def encode(film, stream, pictures):
    """Write NumPy pictures (H, W, 3 or 4) of uint8 as the frames of a stream."""
    for number, picture in enumerate(pictures):
        frame = av.VideoFrame.from_ndarray(picture, "rgba" if picture.shape[2] == 4 else "rgb24")
        if "yuv" in stream.pix_fmt:
            frame = frame.reformat(format=stream.pix_fmt, dst_colorspace="ITU709")
        frame.pts, frame.time_base = number, Fraction(1, 10)
        film.mux(stream.encode(frame))
    film.mux(stream.encode(None))


@pytest.mark.parametrize(
    ("name", "codec", "pixels"),
    [
        ("in.mov", "qtrle", "argb"),
        ("in.mov", "prores_ks", "yuva444p10le"),
        ("in.mov", "png", "rgba"),
        ("in.mkv", "ffv1", "bgra"),
        ("in.avi", "rawvideo", "bgra"),
        ("in.webm", "libvpx-vp9", "yuva420p"),
        ("in.webm", "libvpx", "yuva420p"),
    ],
)
def test_transparent_films_are_laid_on_white(name, codec, pixels, tmp_path):
    picture = np.full((32, 48, 4), (200, 30, 40, 255), np.uint8)
    picture[:, :24, 3] = 0
    options = {"auto-alt-ref": "0"} if "vpx" in codec else {}
    with av.open(str(tmp_path / name), "w") as film:
        encode(film, add(film, codec, (32, 48), pixels, **options), [picture] * 3)
    shown = frames(tmp_path / name)
    assert len(shown) == 3
    for frame in shown:
        assert frame.image.shape == (1, 3, 32, 48)
        assert frame.image[..., :20].min() > 0.98
        assert frame.image[:, 0, :, 28:].min() > 0.7
        assert frame.image[:, 1:, :, 28:].max() < 0.3


@pytest.mark.parametrize("first", [True, False])
def test_the_film_is_the_stream_with_most_frames(first, tmp_path):
    with av.open(str(tmp_path / "in.mp4"), "w") as film:
        streams = [(add(film, "mpeg4", (16, 16), "yuv420p"), 1)]
        streams.insert(0 if first else 1, (add(film, "libx264", (26, 34), "yuv420p"), 5))
        for stream, count in streams:
            picture = np.zeros((stream.height, stream.width, 3), np.uint8)
            encode(film, stream, [picture] * count)
    with Film(tmp_path / "in.mp4") as film:
        assert (film.size, film.count, len(list(film.frames()))) == ((26, 34), 5, 5)


@pytest.mark.parametrize(("name", "codec"), [("in.mp4", b"avc1"), ("in.mkv", b"V_MPEG4/ISO/AVC")])
def test_a_film_in_an_unknown_codec_is_refused(name, codec, tmp_path):
    path = make(tmp_path / name, greys())
    path.write_bytes(path.read_bytes().replace(codec, codec[:2] + b"x" * (len(codec) - 2)))
    check_error(rf"{name} has no frame that FFmpeg can read", Film, path)


@pytest.mark.parametrize("name", ["in.mp4", "in.mkv"])
def test_all_frames_are_read_if_the_sound_is_the_first_stream(name, tmp_path):
    """H.264 gives its last frames only at the end of the file."""
    with av.open(str(tmp_path / name), "w") as film:
        sound = film.add_stream("aac", rate=48000, layout="mono")
        stream = add(film, "libx264", (26, 34), "yuv420p")
        film.mux(tone(sound, seconds=1))
        encode(film, stream, [np.full((26, 34, 3), 20 * n, np.uint8) for n in range(10)])
    assert len(frames(tmp_path / name)) == 10


def moving(time):
    """Return a picture (48, 64, 3) of a box at `time`, in frames."""
    picture = np.full((48, 64, 3), 30, np.uint8)
    left = round(4 + 6 * time)
    picture[10:38, left : left + 12] = 220
    return picture


def combs(image):
    """Return how much neighbouring lines of a frame differ inside the box, from 0 to 255."""
    lines = image[0, 1, 14:34] * 255
    return float((lines[1:] - lines[:-1]).abs().mean())


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("in.mp4", "libx264", {"x264-params": "tff=1", "crf": "5"}),
        ("in.mp4", "libx264", {"x264-params": "bff=1", "crf": "5"}),
        ("in.mpg", "mpeg2video", {"flags": "+ildct+ilme", "qscale": "2"}),
    ],
)
def test_interlaced_films_are_read_without_combs(name, codec, options, tmp_path):
    woven = []
    for number in range(6):
        woven.append(moving(number))
        woven[-1][1::2] = moving(number + 0.5)[1::2]
    with av.open(str(tmp_path / name), "w") as film:
        encode(film, add(film, codec, (48, 64), "yuv420p", **options), woven)
    with av.open(str(tmp_path / name)) as film:
        assert all(frame.interlaced_frame for frame in film.decode(video=0))
    shown = frames(tmp_path / name)
    assert [frame.time * 10 for frame in shown] == list(range(6))
    assert all(combs(frame.image) < 3 for frame in shown)
    assert combs(frames(progressive(tmp_path, woven))[1].image) > 10


def progressive(folder, pictures):
    with av.open(str(folder / "plain.mp4"), "w") as film:
        encode(film, add(film, "libx264", (48, 64), "yuv420p", crf="5"), pictures)
    return folder / "plain.mp4"


def test_interlaced_frames_keep_their_colours(tmp_path):
    colors = greys(6, size=(32, 48))
    source = make(tmp_path / "in.mp4", colors, matrix=BT709, **INTERLACED)
    for frame, image in zip(frames(source), colors, strict=True):
        assert difference(frame.image, image) <= 3
    with av.open(str(source)) as film:
        assert all(one.color_trc == BT709 for one in ffmpeg.deinterlaced(film.decode(video=0)))


def test_frames_before_the_damage_are_read_if_interlaced(tmp_path):
    made = bytearray(make(tmp_path / "in.mp4", noise(20), g="1", **INTERLACED).read_bytes())
    middle = len(made) // 2
    made[middle : middle + 9000] = bytes(9000)
    (tmp_path / "in.mp4").write_bytes(made)
    seen = []
    with Film(tmp_path / "in.mp4") as film, pytest.raises(UserError) as caught:
        seen.extend(film.frames())
    assert 5 < len(seen) < 15
    assert f"is damaged after frame {len(seen)} " in str(caught.value)


@pytest.mark.parametrize("name", ["in.mp4", "in.mkv", "in.avi", "in.ts"])
def test_frames_too_large_are_refused_before_they_are_decoded(name, tmp_path, monkeypatch):
    source = make(tmp_path / name, greys(), codec="mpeg4")
    with Film(source) as film:
        assert film.size == (26, 34)
    monkeypatch.setattr(frame_module, "MAX_PIXELS", 800)
    monkeypatch.setattr(Film, "_decoded", None)
    said = r"34 x 26 = 884 pixels, more than the limit of 800; shrink it first"
    check_error(said, Film, source)


def test_a_frame_that_grows_too_large_ends_the_film(tmp_path, monkeypatch):
    small = make(tmp_path / "a.ts", greys(70), g="1", bf="0").read_bytes()  # FFmpeg looks at 5 s
    large = make(tmp_path / "b.ts", greys(4, size=(240, 400)), g="1", bf="0").read_bytes()
    (tmp_path / "in.ts").write_bytes(small + large)
    assert len(frames(tmp_path / "in.ts")) == 74
    monkeypatch.setattr(read, "MAX_PIXELS", 50_000)
    check_error(r"in\.ts is damaged after frame (69|70) ", frames, tmp_path / "in.ts")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("cannot decode unknown codec"),
        OverflowError("Python int too large to convert to C long"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        EOFError("end of file"),
        IndexError("tuple index out of range"),
        ZeroDivisionError("Fraction(1, 0)"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_of_pyav_ends_a_film_in_one_line(error, tmp_path, monkeypatch):
    def decoder(stream):
        packets = iter(range(4))
        return lambda packet: packet.decode() if next(packets, 3) < 3 else fail()

    def fail():
        raise error

    path = make(tmp_path / "in.mp4", greys(), g="1", bf="0", codec="mpeg4")
    seen = []
    monkeypatch.setattr(read, "decoder", decoder)
    with Film(path) as film, pytest.raises(UserError) as caught:
        seen.extend(film.frames())
    said = f"in.mp4 is damaged after frame {len(seen)} ({error}); get an intact copy"
    assert len(seen) in (2, 3)
    assert str(caught.value).endswith(said)


@pytest.mark.parametrize("name", ["in.mkv", "in.mp4"])
def test_metadata_that_is_not_utf_8_is_read(name, tmp_path):
    path = tmp_path / name
    with (
        Film(make(tmp_path / "a.mp4", greys(1))) as film,
        FilmWriter(path, film, "caf\xe9") as writer,
    ):
        writer.write(greys(1)[0], Fraction(0), Fraction(1))
    path.write_bytes(path.read_bytes().replace("caf\xe9".encode(), b"caf\xe9!"))
    with Film(path) as film:
        assert film.comment == "caf\ufffd!"
