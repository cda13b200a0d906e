"""Reading and writing films: sizes, times, colours, sound, orientation, and errors."""

import io
import re
import sys
from fractions import Fraction
from itertools import pairwise, product
from unittest.mock import Mock

import pytest
import torch
from films.film_files import BT601, BT709, UNSAID, av, frames, make, sounds, tone
from helpers import check_error, largest_file
from PIL import Image

from styletransfer.errors import UserError, pip_install
from styletransfer.films.formats import CODECS, H264, VP9
from styletransfer.films.read import Film
from styletransfer.films.write import FilmWriter, check_writable
from styletransfer.pictures import images

UNEVEN = [Fraction(n, 9000) for n in (0, 301, 902, 1503, 4000, 4001, 9000, 12345, 12400, 27000)]


def flat(*colors, size=(26, 34)):
    return [(torch.tensor(color) / 255).view(1, 3, 1, 1).expand(1, 3, *size) for color in colors]


def greys(count=10, size=(26, 34)):
    return flat(*[(20 * n + 30,) * 3 for n in range(count)], size=size)


def noise(count):
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(1, 3, 48, 64, generator=generator) for _ in range(count)]


def rewritten(source, target):
    with Film(source) as film, FilmWriter(target, like=film) as writer:
        for frame in film.frames():
            writer.write(*frame)
    return target


def difference(first, second):
    return float((first - second).abs().max() * 255)


@pytest.mark.parametrize("extension", CODECS)
def test_a_film_is_what_was_written_at_its_times(extension, tmp_path):
    """Check frames, times and colour tags; the source has another colour matrix."""
    colors = 2 * flat((200, 30, 40), (30, 160, 60), (128, 128, 128), (0, 0, 0), (255, 255, 255))
    source = make(tmp_path / "in.mp4", colors, UNEVEN, matrix=BT601)
    with Film(source) as film:
        assert (film.size, film.count, film.pixel_aspect) == ((26, 34), 10, 1)
        with FilmWriter(tmp_path / "new" / f"out{extension}", film, "how") as writer:
            for image, time in zip(colors, UNEVEN, strict=True):
                writer.write(image.double(), time, Fraction(1))
    with Film(tmp_path / "new" / f"out{extension}") as film:
        assert film.comment == "how"
        written = list(film.frames())
    rounding = Fraction(1, 2000) if extension in (".mkv", ".webm") else 0
    for frame, image, time in zip(written, colors, UNEVEN, strict=True):
        assert abs(frame.time - time) <= rounding
        assert (frame.image.shape, frame.image.dtype) == ((1, 3, 26, 34), torch.float32)
        assert difference(frame.image, image) <= 2.5
    assert [path.name for path in (tmp_path / "new").iterdir()] == [f"out{extension}"]
    with av.open(str(tmp_path / "new" / f"out{extension}")) as container:
        context = container.streams.video[0].codec_context
        assert context.name == ("vp9" if extension == ".webm" else "h264")
        frame = next(container.decode(video=0))
        said = (frame.colorspace, frame.color_primaries, frame.color_trc, frame.color_range)
        assert (context.pix_fmt, said) == ("yuv420p", (1, 1, 1, 1))


def test_a_folder_of_frames_is_a_film(tmp_path):
    folder = tmp_path / "in [1]"
    for number, image in enumerate(noise(3)):
        images.write(folder / f"{number}.png", image)
    with Film(folder, fps=12.5) as film:
        for number, frame in enumerate(film.frames()):
            assert frame.time == number / film.rate == number / Fraction(25, 2)
            assert torch.equal(frame.image, images.read(folder / f"{number}.png").rgb)


@pytest.mark.parametrize(("extension", "codec"), [(".mp4", H264), (".webm", VP9)])
def test_the_longest_side_of_a_codec_is_true(extension, codec):
    """FFmpeg opens the encoder for this side; x264 for none that is longer."""
    with av.open(io.BytesIO(), "w", format=CODECS[extension][0]) as made:
        stream = made.add_stream(codec.encoder, rate=1, options=codec.options)
        stream.width, stream.height, stream.pix_fmt = codec.longest, 16, "yuv420p"
        stream.codec_context.open()
    check_error("cannot hold .* at most", check_writable, f"a{extension}", (1, codec.longest + 1))


def test_odd_sides_are_kept_where_the_codec_can(tmp_path):
    image = torch.zeros(1, 3, 25, 33)
    image[..., -6:] = 0.8
    made = make(tmp_path / "in.mp4", greys(1))
    for name, size in (("out.mp4", (26, 34)), ("out.webm", (25, 33))):
        with Film(made) as film, FilmWriter(tmp_path / name, like=film) as writer:
            writer.write(image, Fraction(0), Fraction(1))
        (frame,) = frames(tmp_path / name)
        assert frame.image.shape[2:] == size
        assert difference(frame.image[..., :25, :26], image[..., :26]) <= 4
        assert difference(frame.image[..., 28:], torch.full((1,), 0.8)) <= 4  # repeated, not black


def test_frames_are_upright(tmp_path):
    image = torch.zeros(1, 3, 24, 40)
    image[..., :12, :10], image[..., 12:, 30:] = 1.0, 0.5
    """Check 16 combinations, two for each of the 8 orientations."""
    for degrees, across, down in product((0, 90, 180, 270), (False, True), (False, True)):
        source = make(tmp_path / "in.mov", [image], rotation=(degrees, across, down))
        mirrored = [side for side, wanted in ((2, down), (3, across)) if wanted]
        expected = torch.rot90(image, degrees // 90, (2, 3)).flip(mirrored)
        with Film(source) as film:
            assert film.size == expected.shape[2:]
            (frame,) = film.frames()
        assert float((frame.image - expected).abs().mean()) < 0.02
    (again,) = frames(rewritten(source, tmp_path / "out.mp4"))
    assert float((again.image - expected).abs().mean()) < 0.02
    # FFmpeg hands on EXIF with a frame, a kind of data that PyAV does not know.
    as_exif = Image.Exif()
    as_exif[0x0112], as_exif[0x010F] = 6, "camera"
    Image.new("RGB", (40, 24)).save(tmp_path / "in.jpg", exif=as_exif)
    with Film(tmp_path / "in.jpg") as film:
        assert film.size == (40, 24)


@pytest.mark.parametrize(
    ("width", "matrix", "said"), [(34, BT601, BT601), (34, BT601, UNSAID), (1280, BT709, UNSAID)]
)
def test_the_matrix_of_the_film_counts(width, matrix, said, tmp_path):
    colors = flat((200, 30, 40), (30, 160, 60), (20, 40, 180), size=(26, width))
    written = frames(make(tmp_path / "in.mp4", colors, matrix=matrix, said=said))
    for frame, image in zip(written, colors, strict=True):
        assert difference(frame.image, image) <= 3


def test_pixels_keep_their_shape_and_frames_are_upright(tmp_path):
    pan = [noise(1)[0].roll(n, 3) for n in range(12)]
    source = make(tmp_path / "in.mp4", pan, aspect=Fraction(4, 3), rotation=(90,))
    target = rewritten(source, tmp_path / "out.mp4")
    for path in (source, target):
        with Film(path) as film:
            assert (film.size, film.pixel_aspect, film.rate) == ((64, 48), Fraction(3, 4), 10)
    with av.open(str(target)) as container:
        shown = [packet.pts for packet in container.demux(video=0) if packet.size]
    assert shown == sorted(shown)


@pytest.mark.slow
def test_all_sound_is_copied_that_the_container_can_hold(tmp_path, caplog):
    for codecs, source, target, rounding in (
        (["aac"], "in.mkv", "out.mp4", 3e-4),
        (["libopus"], "in.mkv", "out.webm", 3.3e-3),
        (["aac", "libmp3lame"], "in.mp4", "out.mkv", 3.3e-3),
    ):
        made = make(tmp_path / source, greys(), sound=codecs)
        copies = sounds(rewritten(made, tmp_path / target))
        shift = float(frames(tmp_path / target)[0].time)  # Matroska has no times below 0
        for (name, packets, times), (copied, new, moved) in zip(sounds(made), copies, strict=True):
            assert (copied, new) == (name, packets)
            assert moved == pytest.approx([time + shift for time in times], abs=rounding)
    for codec, source, target in (("aac", "in.mp4", "out.webm"), ("flac", "in.mkv", "out.mov")):
        made = make(tmp_path / source, greys(), sound=[codec])
        assert sounds(rewritten(made, tmp_path / target)) == []
        assert len(frames(tmp_path / target)) == 10
        assert caplog.messages[-1].endswith(f"{target} cannot hold {codec} sound, and goes without")


def test_a_film_begins_at_0_with_its_sound_in_time(tmp_path):
    made = make(tmp_path / "in.ts", greys(), sound=["aac"], bf="0", start=5.0)
    with av.open(str(made)) as film:
        streams = film.streams.video[0], film.streams.audio[0]
        begun = [float(one.start_time * one.time_base) for one in streams]
    target = rewritten(made, tmp_path / "out.mp4")
    times = float(frames(target)[0].time), sounds(target)[0][2][0]
    assert min(begun) > 4.9
    assert times == pytest.approx([each - min(begun) for each in begun], abs=0.002)


def test_times_rise_and_the_size_stays_whatever_the_file_says(tmp_path):
    first = make(tmp_path / "a.ts", greys(4), g="1", bf="0").read_bytes()
    second = make(tmp_path / "b.ts", greys(4, size=(40, 20)), g="1", bf="0").read_bytes()
    (tmp_path / "in.ts").write_bytes(first + second)
    read = frames(rewritten(tmp_path / "in.ts", tmp_path / "out.mp4"))
    assert len(read) == 8
    assert all(frame.image.shape == (1, 3, 26, 34) for frame in read)
    assert all(a.time < b.time for a, b in pairwise(read))
    film = make(tmp_path / "in.h264", greys(), bf="0")  # raw H.264 has no times
    with Film(film) as film:
        assert [frame.time for frame in film.frames()] == [n / film.rate for n in range(10)]


def test_what_is_no_film_is_told_in_one_line(tmp_path):
    with av.open(str(tmp_path / "song.mp3"), "w") as song:  # a song with a cover picture
        track, cover = song.add_stream("libmp3lame", rate=48000), song.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt = 16, 16, "yuvj420p"
        cover.disposition = av.stream.Disposition.attached_pic
        song.mux(cover.encode(av.VideoFrame(16, 16, "yuvj420p")) + cover.encode(None))
        song.mux(tone(track, seconds=0.1))
    whole = make(tmp_path / "whole.mkv", greys()).read_bytes()
    start = whole.index(b"\x1f\x43\xb6\x75")  # the first cluster of frames
    (tmp_path / "none.mkv").write_bytes(whole[: start + 12])
    (tmp_path / "text.mp4").write_bytes(b"To be or not to be\n")
    (tmp_path / "list.m3u8").write_text("#EXTM3U\n#EXTINF:1,\nhttp://a.b/c.ts\n")
    for name, message in (
        ("missing.mp4", "does not exist; check the path"),
        ("", "is a folder without pictures; name a film or frames"),
        ("list.m3u8", "list.m3u8 is no film"),
        ("text.mp4", "text.mp4 is no film that FFmpeg can read"),
        ("song.mp3", "song.mp3 holds no film, only other things"),
        ("none.mkv", "none.mkv has no frame that FFmpeg can read; save it as MP4"),
    ):
        check_error(re.escape(message), Film, tmp_path / name)


def test_a_film_ends_where_it_is_damaged(tmp_path):
    made = bytearray(make(tmp_path / "in.mp4", noise(20), g="1").read_bytes())
    start, middle = made.index(b"mdat") + 4, len(made) // 2
    made[start : start + 2000] = bytes(2000)  # no first key frame
    made[middle : middle + 9000] = bytes(9000)
    (tmp_path / "in.mp4").write_bytes(made)
    seen = []
    with Film(tmp_path / "in.mp4") as film, pytest.raises(UserError) as caught:
        seen.extend(film.frames())
    assert 5 < len(seen) < 15
    pattern = rf".*in\.mp4 is damaged after frame {len(seen)} \(.*\); get an intact copy"
    assert re.fullmatch(pattern, str(caught.value))


@pytest.mark.parametrize("extension", [".mp4", ".mkv"])
def test_a_full_disk_ends_in_one_line(extension, tmp_path, caplog):
    source = make(tmp_path / "in.mp4", noise(30))
    target = tmp_path / f"out{extension}"
    target.write_text("the film from yesterday")
    with largest_file(60_000), pytest.raises(UserError, match=r"^cannot write .*too large; choose"):
        rewritten(source, target)
    assert target.read_text() == "the film from yesterday"
    assert "the film up to here is in" in caplog.text
    if extension == ".mkv":
        with Film(tmp_path / "out.styletransfer-partial.mkv") as film:
            assert next(film.frames()).image.shape == (1, 3, 48, 64)


def test_what_cannot_be_written_is_told_beforehand(tmp_path, monkeypatch):
    for film in ("in.mp4", "a.styletransfer-partial.mp4"):
        make(tmp_path / film, greys(1))
    for folder in ("taken.mp4", "clip.styletransfer-partial.mp4"):
        (tmp_path / folder).mkdir()
    (tmp_path / "file.txt").touch()
    for like, name, message in (
        (
            "in.mp4",
            "out.avi",
            f"to {tmp_path}/out.avi; use .mp4 .m4v .mov .mkv .webm, which ffmpeg",
        ),
        ("in.mp4", "out.gif", f"to {tmp_path}/out.gif; use .mp4"),
        ("in.mp4", "%05d.png", f"to {tmp_path}/%05d.png; use .mp4"),
        ("a.styletransfer-partial.mp4", "a.mp4", "would overwrite input="),
        ("in.mp4", "taken.mp4", "it is a folder; add a file name"),
        ("in.mp4", "file.txt/out.mp4", "cannot write"),
        ("in.mp4", "clip.mp4", "cannot write"),
    ):
        with Film(tmp_path / like) as film, pytest.raises(UserError, match=re.escape(message)):
            FilmWriter(tmp_path / name, like=film)

    with Film(tmp_path / "in.mp4") as film:
        writer = FilmWriter(tmp_path / "out.mp4", like=film)
        with writer, pytest.raises(UserError, match="a frame holds NaN or infinity"):
            writer.write(torch.full((1, 3, 26, 34), torch.nan), Fraction(0), Fraction(1))
    assert not [*tmp_path.glob("out*")]
    monkeypatch.setattr(av.codec, "Codec", Mock(side_effect=ValueError))
    with pytest.raises(UserError, match=r"this PyAV has no libvpx-vp9; install PyAV from"):
        check_writable(tmp_path / "out.webm")
    monkeypatch.setitem(sys.modules, "av", None)
    for what in (Film, check_writable):
        check_error(re.escape(pip_install("video")), what, tmp_path / "in.mp4")
