"""Films in and out: sizes, times, colours, sound and orientation are kept; trouble is told."""

import re
import subprocess
import sys
import wave
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import pytest
import torch
from film_files import av, frames, make, sounds
from PIL import Image, ImageCms

from styletransfer import films as video
from styletransfer.errors import UserError
from styletransfer.films import Film, FilmWriter

EXTENSIONS = (".mp4", ".m4v", ".mov", ".mkv", ".webm")
UNEVEN = [Fraction(n, 9000) for n in (0, 301, 902, 1503, 4000, 4001, 9000, 12345, 12400, 27000)]


def flat(*colors: tuple[int, int, int], size: tuple[int, int] = (26, 34)) -> list[torch.Tensor]:
    """Return an image of each colour, given in 255ths."""
    return [(torch.tensor(each) / 255).view(1, 3, 1, 1).expand(1, 3, *size) for each in colors]


def greys(count: int = 10, **options: tuple[int, int]) -> list[torch.Tensor]:
    """Return images that get lighter."""
    return flat(*[(20 * n + 30,) * 3 for n in range(count)], **options)  # type: ignore[arg-type]


def rewritten(source: Path, target: Path) -> Path:
    with Film(source) as film, FilmWriter(target, like=film) as writer:
        for frame in film.frames():
            writer.write(frame.image, frame.time)
    return target


def difference(first: torch.Tensor, second: torch.Tensor) -> float:
    """Return the largest difference in 255ths."""
    return float((first - second).abs().max() * 255)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_film_is_what_was_written(extension: str, tmp_path: Path) -> None:
    colors = flat((200, 30, 40), (30, 160, 60), (128, 128, 128), (0, 0, 0), (255, 255, 255))
    source = make(tmp_path / "in.mp4", colors)
    with Film(source) as film:
        assert (film.size, film.rate, film.count, film.pixel_aspect) == ((26, 34), 10, 5, 1)
        with FilmWriter(tmp_path / "new" / f"out{extension}", like=film) as writer:
            for number, image in enumerate(colors):
                writer.write(image.double(), Fraction(number, 10))
    written = frames(tmp_path / "new" / f"out{extension}")
    assert [frame.time for frame in written] == [Fraction(number, 10) for number in range(5)]
    for frame, image in zip(written, colors, strict=True):
        assert frame.image.shape == (1, 3, 26, 34)
        assert frame.image.dtype == torch.float32
        assert difference(frame.image, image) <= 2.5
    assert [path.name for path in (tmp_path / "new").iterdir()] == [f"out{extension}"]


@pytest.mark.parametrize(("extension", "size"), [(".mp4", (26, 34)), (".webm", (25, 33))])
def test_odd_sides_are_kept_where_the_codec_can(
    extension: str, size: tuple[int, int], tmp_path: Path
) -> None:
    image = torch.zeros(1, 3, 25, 33)
    image[..., -6:] = 0.8
    made = make(tmp_path / "in.mp4", greys(1))
    with Film(made) as film, FilmWriter(tmp_path / f"out{extension}", like=film) as writer:
        writer.write(image, Fraction(0))
    with Film(tmp_path / f"out{extension}") as film:
        assert film.size == size
        (frame,) = film.frames()
    assert difference(frame.image[..., :25, :26], image[..., :26]) <= 4
    assert difference(frame.image[..., 28:], torch.full((1,), 0.8)) <= 4  # repeated, not black


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_every_frame_keeps_its_time(extension: str, tmp_path: Path) -> None:
    source = make(tmp_path / "in.mp4", greys(), UNEVEN)
    times = [frame.time for frame in frames(rewritten(source, tmp_path / f"out{extension}"))]
    rounding = Fraction(1, 2000) if extension in (".mkv", ".webm") else 0
    assert len(times) == len(UNEVEN)
    assert all(abs(a - b) <= rounding for a, b in zip(times, UNEVEN, strict=True))


ORIENTATIONS = list(product((0, 90, 180, 270), (False, True), (False, True)))


@pytest.mark.parametrize(("degrees", "across", "down"), ORIENTATIONS)
def test_frames_are_upright(degrees: int, across: bool, down: bool, tmp_path: Path) -> None:
    image = torch.zeros(1, 3, 24, 40)
    image[..., :12, :10], image[..., 12:, 30:] = 1.0, 0.5
    source = make(tmp_path / "in.mov", [image], rotation=(degrees, across, down))
    mirrored = [side for side, wanted in ((2, down), (3, across)) if wanted]
    expected = torch.rot90(image, degrees // 90, (2, 3)).flip(mirrored)
    with Film(source) as film:
        assert film.size == expected.shape[2:]
        (frame,) = film.frames()
    assert float((frame.image - expected).abs().mean()) < 0.02
    (again,) = frames(rewritten(source, tmp_path / "out.mp4"))
    assert float((again.image - expected).abs().mean()) < 0.02


@pytest.mark.parametrize(
    ("size", "matrix"),
    [((26, 34), 1), ((26, 34), 5), ((26, 34), None), ((26, 1280), 1)],
    ids=["BT.709", "BT.601", "SD that does not say", "HD"],
)
def test_the_matrix_of_the_film_counts(
    size: tuple[int, int], matrix: int | None, tmp_path: Path
) -> None:
    colors = flat((200, 30, 40), (30, 160, 60), (20, 40, 180), size=size)
    written = frames(make(tmp_path / "in.mp4", colors, matrix=matrix))
    for frame, image in zip(written, colors, strict=True):
        assert difference(frame.image, image) <= 3


def test_hd_that_does_not_say_has_bt_709(tmp_path: Path) -> None:
    (image,) = flat((200, 30, 40), size=(26, 1280))
    samples = (image[0] * 255).byte().permute(1, 2, 0).contiguous().numpy()
    with av.open(str(tmp_path / "hd.mp4"), "w") as film:
        stream = film.add_stream("libx264", rate=10, options={"crf": "10"})
        stream.width, stream.height, stream.pix_fmt = 1280, 26, "yuv420p"
        frame = av.VideoFrame.from_ndarray(samples, "rgb24").reformat(
            format="yuv420p", dst_colorspace="ITU709"
        )
        frame.colorspace = 2  # not said
        film.mux(stream.encode(frame))
        film.mux(stream.encode(None))
    (read,) = frames(tmp_path / "hd.mp4")
    assert difference(read.image, image) <= 3


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_new_film_says_what_its_colors_are(extension: str, tmp_path: Path) -> None:
    target = rewritten(make(tmp_path / "in.mp4", greys(2), matrix=None), tmp_path / f"o{extension}")
    with av.open(str(target)) as film:
        stream = film.streams.video[0]
        frame = next(film.decode(stream))
        assert stream.codec_context.name == ("vp9" if extension == ".webm" else "h264")
        assert stream.codec_context.pix_fmt == "yuv420p"
        said = (frame.colorspace, frame.color_primaries, frame.color_trc, frame.color_range)
        assert said == (1, 1, 1, 1)


def test_pixels_keep_their_shape(tmp_path: Path) -> None:
    make(tmp_path / "plain.mp4", greys(2))
    with av.open(str(tmp_path / "in.mp4"), "w") as film:
        stream = film.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 34, 26, "yuv420p"
        stream.codec_context.sample_aspect_ratio = Fraction(4, 3)
        stream.set_display_rotation(90)
        film.mux(stream.encode(av.VideoFrame(34, 26, "yuv420p")))
        film.mux(stream.encode(None))
    for path in (tmp_path / "in.mp4", rewritten(tmp_path / "in.mp4", tmp_path / "out.mp4")):
        with Film(path) as film:
            assert (film.size, film.pixel_aspect) == ((34, 26), Fraction(3, 4))


@pytest.mark.parametrize(
    ("codec", "source", "target"),
    [
        ("aac", "in.mp4", "out.mp4"),
        ("aac", "in.mp4", "out.mov"),
        ("aac", "in.mkv", "out.mp4"),
        ("libopus", "in.mkv", "out.webm"),
        ("libmp3lame", "in.mp4", "out.mkv"),
    ],
)
def test_sound_is_copied(codec: str, source: str, target: str, tmp_path: Path) -> None:
    made = make(tmp_path / source, greys(), sound=codec)
    (before,), (after,) = sounds(made), sounds(rewritten(made, tmp_path / target))
    assert after[:2] == before[:2]
    tolerance = 0.0011 if Path(target).suffix in (".mkv", ".webm") else 1e-4
    offset = after[2][0] - before[2][0]
    assert after[2] == pytest.approx([time + offset for time in before[2]], abs=tolerance)
    shift = frames(tmp_path / target)[0].time
    assert abs(float(shift) - offset) < 2 * tolerance  # Matroska shows nothing before 0


def test_a_broadcast_begins_at_0_with_its_sound_in_time(tmp_path: Path) -> None:
    made = make(tmp_path / "in.ts", greys(), sound="aac", bf="0", start=5.0)
    with av.open(str(made)) as film:
        video_start, sound_start = (
            float(each.start_time * each.time_base)
            for each in (film.streams.video[0], film.streams.audio[0])
        )
    assert min(video_start, sound_start) > 4.9
    target = rewritten(made, tmp_path / "out.mp4")
    ((name, packets, times),) = sounds(target)
    assert name == "aac"
    assert len(packets) == len(sounds(made)[0][1])
    with av.open(str(target)) as film:
        first = float(next(film.decode(video=0)).time)
        assert len(list(av.open(str(target)).decode(audio=0))) == len(packets)
    assert first - times[0] == pytest.approx(video_start - sound_start, abs=0.002)
    assert min(first, times[0]) == pytest.approx(0, abs=0.002)


@pytest.mark.parametrize(
    ("codec", "source", "target", "word"),
    [("aac", "in.mp4", "out.webm", "aac"), ("flac", "in.mkv", "out.mov", "flac")],
)
def test_sound_that_the_container_cannot_hold_is_told(
    codec: str,
    source: str,
    target: str,
    word: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = make(tmp_path / source, greys(), sound=codec)
    assert sounds(rewritten(made, tmp_path / target)) == []
    assert len(frames(tmp_path / target)) == 10
    (line,) = caplog.messages
    assert line.endswith(f"{target} cannot hold {word} sound, and goes without")


def test_all_sounds_are_copied(tmp_path: Path) -> None:
    first = make(tmp_path / "first.mp4", greys(), sound="aac")
    second = make(tmp_path / "second.mp4", greys(), sound="libmp3lame")
    with (
        av.open(str(tmp_path / "both.mp4"), "w") as film,
        av.open(str(first)) as one,
        av.open(str(second)) as other,
    ):
        streams = [*one.streams.video, *one.streams.audio, *other.streams.audio]
        copies = [film.add_stream_from_template(stream) for stream in streams]
        for stream, copy in zip(streams, copies, strict=True):
            for packet in stream.container.demux(stream):
                if packet.size:
                    packet.stream = copy
                    film.mux(packet)
            stream.container.seek(0)
    target = rewritten(tmp_path / "both.mp4", tmp_path / "out.mkv")
    assert [name for name, _, _ in sounds(target)] == ["aac", "mp3"]


def test_a_film_without_times_has_those_of_its_rate(tmp_path: Path) -> None:
    made = make(tmp_path / "in.h264", greys(), bf="0")
    with Film(made) as film:
        times = [frame.time for frame in film.frames()]
        assert times == [number / film.rate for number in range(10)]


def test_times_rise_and_the_size_stays_whatever_the_file_says(tmp_path: Path) -> None:
    first = make(tmp_path / "a.ts", greys(4), g="1", bf="0").read_bytes()
    second = make(tmp_path / "b.ts", greys(4, size=(40, 20)), g="1", bf="0").read_bytes()
    (tmp_path / "in.ts").write_bytes(first + second)
    read = frames(rewritten(tmp_path / "in.ts", tmp_path / "out.mp4"))
    assert len(read) == 8
    assert all(frame.image.shape == (1, 3, 26, 34) for frame in read)
    assert all(a.time < b.time for a, b in pairwise(read))


def test_frames_can_be_read_again(tmp_path: Path) -> None:
    with Film(make(tmp_path / "in.mp4", greys(3))) as film:
        first = next(film.frames())
        again = list(film.frames())
    assert len(again) == 3
    assert torch.equal(first.image, again[0].image)


def test_hdr_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Film(make(tmp_path / "in.mp4", greys(1), transfer=16)):
        assert "in.mp4 is an HDR film; its colours are taken for SDR's" in caplog.text


def test_sound_alone_is_no_film(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "song.wav"), "wb") as song:
        song.setnchannels(1)
        song.setsampwidth(2)
        song.setframerate(8000)
        song.writeframes(bytes(1600))
    with pytest.raises(UserError, match=r"song\.wav holds no film, only other things"):
        Film(tmp_path / "song.wav")


@pytest.mark.parametrize(
    ("name", "bytes_", "message"),
    [
        ("none.mp4", None, "no film at "),
        ("", None, "no film at "),
        ("text.mp4", b"To be or not to be\n", "text.mp4 is no film that FFmpeg can read"),
        ("empty.mp4", b"", "empty.mp4 is no film that FFmpeg can read"),
        (
            "list.m3u8",
            b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://a.b/c.ts\n",
            "list.m3u8 is no film",
        ),
    ],
)
def test_what_is_no_film_is_told_in_one_line(
    name: str, bytes_: bytes | None, message: str, tmp_path: Path
) -> None:
    if bytes_ is not None:
        (tmp_path / name).write_bytes(bytes_)
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        Film(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_film_without_frames(tmp_path: Path) -> None:
    whole = make(tmp_path / "whole.mkv", greys()).read_bytes()
    start = whole.index(b"\x1f\x43\xb6\x75")  # the first cluster of frames
    (tmp_path / "in.mkv").write_bytes(whole[: start + 12])
    with pytest.raises(UserError, match=r"in\.mkv is a film without frames"):
        Film(tmp_path / "in.mkv")


def noise(count: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(1, 3, 48, 64, generator=generator) for _ in range(count)]


def played(film: Film) -> tuple[int, str]:
    """Return how many frames can be read, and what is said if that are not all."""
    count = 0
    try:
        for _ in film.frames():
            count += 1
    except UserError as error:
        return count, str(error)
    return count, ""


def test_a_damaged_film_ends_where_the_damage_is(tmp_path: Path) -> None:
    made = bytearray(make(tmp_path / "whole.mp4", noise(20), g="1").read_bytes())
    middle = len(made) // 2
    made[middle : middle + 9000] = bytes(9000)
    (tmp_path / "in.mp4").write_bytes(made)
    with Film(tmp_path / "in.mp4") as film:
        count, told = played(film)
    assert 5 < count < 15
    assert re.fullmatch(
        rf".*in\.mp4 is damaged after frame {count} \(.*\); get an intact copy", told
    )


def test_a_film_that_was_cut_off_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = make(tmp_path / "whole.mkv", noise(40), g="1").read_bytes()
    (tmp_path / "in.mkv").write_bytes(whole[: len(whole) // 2])
    assert 10 < len(frames(tmp_path / "in.mkv")) < 30
    assert re.search(r"in\.mkv ends after [12]\.\d of its 4\.0 seconds", caplog.text)
    caplog.clear()
    frames(tmp_path / "whole.mkv")
    assert not caplog.text


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_what_was_done_before_a_failure_can_be_played(
    extension: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = make(tmp_path / "in.mp4", greys(), sound="aac")
    target, left = tmp_path / f"out{extension}", tmp_path / f"out.partial{extension}"

    def stopped() -> None:
        with Film(source) as film, FilmWriter(target, like=film) as writer:
            for number, frame in enumerate(film.frames()):
                if number == 6:
                    raise KeyboardInterrupt
                writer.write(frame.image, frame.time)

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert not target.exists()
    assert len(frames(left)) == 6
    assert f"the film up to here is in {left}" in caplog.text
    if extension != ".webm":
        (_, _, times), (_, _, all_times) = sounds(left)[0], sounds(source)[0]
        assert 0.45 < times[-1] < 0.65 < all_times[-1]
    rewritten(source, target)
    assert len(frames(target)) == 10
    assert not left.exists()


@pytest.mark.parametrize("extension", [".mp4", ".mkv"])
def test_a_full_disk_ends_in_one_line(extension: str, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    source = make(tmp_path / "in.mp4", noise(60))
    (tmp_path / f"out{extension}").write_text("the film from yesterday")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
    try:
        with pytest.raises(UserError, match=r"cannot write .*File too large; choose") as caught:
            rewritten(source, tmp_path / f"out{extension}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(caught.value)
    assert (tmp_path / f"out{extension}").read_text() == "the film from yesterday"
    with Film(tmp_path / f"out.partial{extension}") as film:
        assert next(film.frames()).image.shape == (1, 3, 48, 64)


def test_a_disk_with_no_space_at_all_leaves_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    source = make(tmp_path / "in.mp4", greys())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        with pytest.raises(UserError, match="File too large"):
            rewritten(source, tmp_path / "out.mp4")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["in.mp4"]


@pytest.mark.parametrize("extension", [".mp4", ".mov", ".mkv"])
def test_what_a_killed_process_leaves_can_be_played(extension: str, tmp_path: Path) -> None:
    source = make(tmp_path / "in.mp4", [image for image in noise(10) for _ in range(30)])
    with Film(source) as film, FilmWriter(tmp_path / f"out{extension}", like=film) as writer:
        for number, frame in enumerate(film.frames()):
            mixed = (frame.image + 0.2 * torch.rand(1, 3, 48, 64)).clamp(0, 1)
            writer.write(mixed, frame.time)
            if number == 298:
                on_disk = (tmp_path / f"out.partial{extension}").read_bytes()
    (tmp_path / f"left{extension}").write_bytes(on_disk)
    with Film(tmp_path / f"left{extension}") as film:
        assert played(film)[0] > 100


def test_broken_frames_are_refused(tmp_path: Path) -> None:
    image = torch.full((1, 3, 26, 34), float("nan"))
    with Film(make(tmp_path / "in.mp4", greys(1))) as film:
        writer = FilmWriter(tmp_path / "out.mp4", like=film)
        with writer, pytest.raises(UserError, match="a frame holds NaN or infinity"):
            writer.write(image, Fraction(0))
    assert [path.name for path in tmp_path.iterdir()] == ["in.mp4"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.avi", "unknown extension '.avi'; use .mp4 .m4v .mov .mkv .webm"),
        ("out", "unknown extension ''"),
        ("in.mp4", "in.mp4 would overwrite the film"),
        ("taken.mp4", "it is a folder; add a file name"),
        ("file.txt/out.mp4", "cannot write"),
        ("clip.mp4", "cannot write"),
    ],
)
def test_what_cannot_be_written_is_told_beforehand(name: str, message: str, tmp_path: Path) -> None:
    make(tmp_path / "in.mp4", greys(1))
    (tmp_path / "taken.mp4").mkdir()
    (tmp_path / "clip.partial.mp4").mkdir()
    (tmp_path / "file.txt").write_text("")
    with Film(tmp_path / "in.mp4") as film, pytest.raises(UserError, match=re.escape(message)):
        FilmWriter(tmp_path / name, like=film)


def test_a_partial_film_is_not_overwritten_by_itself(tmp_path: Path) -> None:
    made = make(tmp_path / "out.partial.mp4", greys(1))
    with Film(made) as film, pytest.raises(UserError, match="would overwrite the film"):
        FilmWriter(tmp_path / "out.mp4", like=film)


def test_an_encoder_that_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str, mode: str) -> None:
        raise ValueError(name)

    monkeypatch.setattr(av.codec, "Codec", missing)
    with pytest.raises(UserError, match=r"this PyAV has no libvpx-vp9; install PyAV from"):
        video.check_writable(tmp_path / "out.webm")


def test_without_pyav_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(tmp_path / "in.mp4", greys(1))
    monkeypatch.setitem(sys.modules, "av", None)
    for what in (Film, video.check_writable):
        with pytest.raises(UserError, match=re.escape("pip install 'styletransfer[video]'")):
            what(made)


def test_a_picture_with_a_colour_profile_does_not_end_the_process(tmp_path: Path) -> None:
    """Collecting the frame's side data did."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    Image.new("RGB", (20, 10), "red").save(tmp_path / "still.png", icc_profile=profile)
    code = (
        "import gc, sys; from styletransfer.films import Film\n"
        "with Film(sys.argv[1]) as film: print(film.size)\n"
        "del film; gc.collect()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "still.png")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "(10, 20)\n")
