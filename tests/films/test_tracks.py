"""What a file says of its streams: the film among them, and what is kept of the others."""

from fractions import Fraction

import numpy as np
import pytest
from films.film_files import av, frames, make, sounds, tone
from films.test_read_write import greys, rewritten
from films.test_streams import add, encode

from styletransfer.films.formats import CODECS
from styletransfer.films.read import Film
from styletransfer.films.write import FilmWriter

DEFAULT, FORCED, COVER = 1, 64, 1024
"""Flags of a stream, as FFmpeg numbers them."""
SUBTITLES = b"1\n00:00:00,000 --> 00:00:00,400\nhello\n\n2\n00:00:00,500 --> 00:00:00,900\nworld\n"


def stills(count, value):
    return [np.full((26, 34, 3), value, np.uint8)] * count


def several(path, streams):
    """Write a film whose streams are (codec, frames, flags); sound has as many tenths of a second.

    The pictures of stream n have the grey level 60 n. Streams of sound have a language and a title.
    """
    with av.open(str(path), "w") as film:
        made = []
        for codec, count, flags in streams:
            if codec in ("aac", "libopus"):
                stream = film.add_stream(codec, rate=48000, layout="mono")
                stream.metadata.update(
                    language=("ger", "eng")[len(made) % 2], title=f"T{len(made)}"
                )
            else:
                stream = add(film, codec, (26, 34), "yuvj420p" if codec == "mjpeg" else "yuv420p")
            stream.disposition = flags
            made.append((stream, count))
        for number, (stream, count) in enumerate(made):
            if stream.type == "video":
                encode(film, stream, stills(count, 60 * number))
            else:
                film.mux(tone(stream, seconds=count / 10))
    return path


def listed(path):
    """Return (kind, language, title, whether it is the default) of each stream but the first."""
    with av.open(str(path)) as film:
        return [
            (
                one.type,
                one.metadata.get("language"),
                one.metadata.get("title") or one.metadata.get("name"),
                bool(one.disposition & DEFAULT),
            )
            for one in film.streams
            if one.index
        ]


@pytest.mark.parametrize("name", ["in.mp4", "in.mkv"])
@pytest.mark.parametrize(
    ("streams", "film"),
    [
        ([("mjpeg", 1, 0), ("libx264", 5, DEFAULT), ("aac", 5, DEFAULT)], 1),  # a cover is first
        ([("mjpeg", 1, COVER), ("libx264", 5, DEFAULT)], 1),
        ([("libx264", 5, 0), ("libx264", 5, DEFAULT)], 1),
        ([("libx264", 5, DEFAULT), ("libx264", 9, 0)], 0),  # more frames, but not the default
        ([("libx264", 5, 0), ("libx264", 5, 0)], 0),
        ([("mjpeg", 1, 0), ("libx264", 5, 0)], 1),
    ],
)
def test_the_film_is_the_stream_that_players_show(streams, film, name, tmp_path):
    shown = frames(several(tmp_path / name, streams))
    assert len(shown) == 5
    assert abs(float(shown[0].image.mean()) * 255 - 60 * film) < 3


@pytest.mark.parametrize("extension", [".mp4", ".mov", ".mkv", ".webm"])
def test_languages_titles_and_defaults_of_sound_are_kept(extension, tmp_path):
    tracks = [("libopus", 5, 0), ("libopus", 5, DEFAULT), ("libopus", 5, 0)]
    source = several(tmp_path / "in.mkv", [("libx264", 5, DEFAULT), *tracks])
    made = rewritten(source, tmp_path / f"out{extension}")
    if extension == ".mov":  # cannot hold Opus
        source = several(tmp_path / "in.mp4", [("libx264", 5, DEFAULT)] + [("aac", 5, 0)] * 2)
        made = rewritten(source, tmp_path / "out.mov")
    assert listed(made) == listed(source)
    assert len(listed(made)) == (2 if extension == ".mov" else 3)


def with_everything(folder):
    """Return a Matroska film with sound, subtitles, two chapters, a font, a cover and a camera."""
    (folder / "in.srt").write_bytes(SUBTITLES)
    picture = av.VideoFrame.from_ndarray(stills(1, 99)[0], "rgb24")
    with av.open(str(folder / "in.mkv"), "w") as film, av.open(str(folder / "in.srt")) as text:
        stream, sound = (
            add(film, "libx264", (26, 34), "yuv420p"),
            film.add_stream("aac", rate=48000),
        )
        sound.layout = "mono"
        subtitles = film.add_stream_from_template(text.streams[0])
        subtitles.metadata.update(language="fre", title="Pour tous")
        second = add(film, "mpeg4", (26, 34), "yuv420p")
        stream.disposition, subtitles.disposition = DEFAULT, FORCED
        film.add_attachment("font.ttf", "application/x-truetype-font", b"some font")
        code = av.CodecContext.create("png", "w")
        code.width, code.height, code.pix_fmt, code.time_base = 34, 26, "rgb24", Fraction(1, 10)
        film.add_attachment("cover.png", "image/png", bytes(code.encode(picture)[0]))
        unit = {"time_base": Fraction(1, 1000)}
        film.set_chapters(
            [
                {"id": 1, "start": 0, "end": 500, "metadata": {"title": "Beginning"}} | unit,
                {"id": 2, "start": 500, "end": 1000, "metadata": {"title": "End"}} | unit,
            ]
        )
        encode(film, stream, stills(10, 50))
        encode(film, second, stills(10, 200))
        film.mux(tone(sound, seconds=1))
        for packet in text.demux():
            if packet.size:
                packet.stream = subtitles
                film.mux(packet)
    return folder / "in.mkv"


def chapters(path):
    with av.open(str(path)) as film:
        return [
            (one["metadata"]["title"], float(one["end"] * one["time_base"]))
            for one in film.chapters()
        ]


def test_other_tracks_are_kept_where_the_container_can(tmp_path, caplog):
    source = with_everything(tmp_path)
    made = rewritten(source, tmp_path / "out.mkv")
    assert caplog.messages == []
    with av.open(str(made)) as film, av.open(str(source)) as old:
        kinds = [one.type for one in old.streams]
        assert [one.type for one in film.streams] == kinds
        assert sorted(kinds) == ["attachment", "audio", "subtitle", "video", "video", "video"]
        flags = [one.disposition & (FORCED | COVER) for one in old.streams]
        assert [one.disposition & (FORCED | COVER) for one in film.streams] == flags
        assert {FORCED, COVER} <= set(flags)
        (font,) = film.streams.attachments
        assert (font.name, font.data) == ("font.ttf", b"some font")
        texts = [bytes(one) for one in film.demux(film.streams.subtitles[0]) if one.size]
        assert texts == [b"hello", b"world"]
    with av.open(str(made)) as film:
        (cover,) = (one for one in film.streams.video if one.disposition & COVER)
        (picture,) = next(film.demux(cover)).decode()
        assert abs(picture.to_ndarray(format="rgb24").mean() - 99) < 1
    assert listed(made) == listed(source)
    assert chapters(made) == [("Beginning", 0.5), ("End", 1.0)]


@pytest.mark.parametrize(
    ("extension", "lost"),
    [
        (".mp4", "subrip subtitles, font.ttf attachment"),
        (".mov", "subrip subtitles, font.ttf attachment"),
        (".webm", "aac sound, subrip subtitles, mpeg4 pictures, font.ttf attachment, png pictures"),
    ],
)
def test_what_the_container_cannot_hold_is_named_once(extension, lost, tmp_path, caplog):
    made = rewritten(with_everything(tmp_path), tmp_path / f"out{extension}")
    assert caplog.messages == [f"{made} cannot hold {lost}, and goes without"]
    assert len(frames(made)) == 10
    assert chapters(made) == [("Beginning", 0.5), ("End", 1.0)]
    caplog.clear()
    rewritten(made, tmp_path / f"again{extension}")  # an MP4's chapters are a stream, too
    assert caplog.messages == []


def test_chapters_begin_with_a_film_that_starts_late(tmp_path):
    path, unit = tmp_path / "late.mkv", {"time_base": Fraction(1, 1000)}
    with av.open(str(path), "w", container_options={"output_ts_offset": "5"}) as film:
        stream = add(film, "libx264", (26, 34), "yuv420p")
        chapter = {"id": 1, "start": 5200, "end": 5900, "metadata": {"title": "Middle"}}
        film.set_chapters([chapter | unit])
        encode(film, stream, stills(10, 50))
    assert chapters(path) == [("Middle", 5.9)]
    assert chapters(rewritten(path, tmp_path / "out.mkv")) == [("Middle", 0.9)]


@pytest.mark.parametrize("extension", CODECS)
def test_one_film_is_written_twice_to_the_same_bytes(extension, tmp_path):
    source = make(tmp_path / "in.mkv", greys(5), sound=["libopus"])
    made = [rewritten(source, tmp_path / f"{name}{extension}") for name in "ab"]
    assert made[0].read_bytes() == made[1].read_bytes()
    with Film(source) as film, FilmWriter(tmp_path / "c.mkv", film, "how") as writer:
        writer.write(*next(film.frames()))
    with Film(tmp_path / "c.mkv") as film:
        assert film.comment == "how"
    assert sounds(made[0]) or extension == ".mov"
