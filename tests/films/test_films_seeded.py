"""Films made from seeds, whole, cut and changed: nothing is lost unsaid."""

import logging
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from films.film_files import av, tone
from films.test_read_write import greys, noise
from seeded import check

from styletransfer.films.ffmpeg import open_container
from styletransfer.films.read import Film
from styletransfer.films.write import FilmWriter

FORMATS = {
    ".mp4": ("libx264", "mpeg4", "mjpeg"),
    ".mov": ("libx264", "qtrle", "prores_ks"),
    ".mkv": ("libx264", "libvpx-vp9", "ffv1"),
    ".webm": ("libvpx-vp9", "libvpx"),
    ".ts": ("libx264", "mpeg4"),
    ".mpg": ("mpeg2video",),
    ".avi": ("mpeg4", "mjpeg", "rawvideo"),
    ".flv": ("libx264",),
}
"""Extension -> codecs of the films."""
SOUNDS = {".webm": "libopus", ".mpg": "mp2", ".avi": "libmp3lame", ".flv": "aac"}


@pytest.mark.slow
def test_films_from_seeds_are_read_or_refused(request):
    outcomes = check(__file__, request.config.getoption("--seeds"))
    assert {*outcomes} == {"success", "UserError"}


def whole(path, chance):
    """Write a film of 1 to 12 frames at random times, and sound for some."""
    codec = chance.choice(FORMATS[path.suffix])
    with av.open(str(path), "w") as film:
        stream = film.add_stream(codec, rate=25, options={"threads": "1"})
        stream.width, stream.height = 64, 48
        formats = stream.codec_context.codec.video_formats
        stream.pix_fmt = next(
            (one.name for one in formats or () if one.name in ("yuv420p", "yuvj420p")),
            formats[0].name if formats else "yuv420p",
        )
        sound = None
        if chance.random() < 0.6:
            name = SOUNDS.get(path.suffix, "aac")
            sound = film.add_stream(name, rate=48000, layout="mono")
            sound.metadata.update(language="ger", title="T\xf6n")
        images = noise(3) if chance.random() < 0.5 else greys(12, size=(48, 64))
        times = [0]
        for image in images[: chance.randrange(1, 13)]:
            pixels = (image[0] * 255).byte().permute(1, 2, 0).contiguous().numpy()
            frame = av.VideoFrame.from_ndarray(pixels, "rgb24").reformat(format=stream.pix_fmt)
            frame.pts, frame.time_base = times[-1], Fraction(1, 25)
            times.append(times[-1] + chance.choice([1, 1, 1, 2, 50]))
            film.mux(stream.encode(frame))
        film.mux(stream.encode(None))
        if sound is not None:
            film.mux(tone(sound, seconds=0.3))
    text = chance.choice([b"T\xc3\xb6n", b"T\xff\xfen"])  # UTF-8, and no UTF-8
    return path.read_bytes().replace(b"T\xc3\xb6n", text)


def moved(path, chance, data):
    """Write the packets of a film again, with some of their times changed; return the bytes."""
    path.write_bytes(data)
    new = path.with_name(f"moved{path.suffix}")
    with open_container(str(path)) as film, open_container(str(new), "w") as copy:
        streams = [copy.add_stream_from_template(one, opaque=True) for one in film.streams]
        for packet in film.demux():
            if packet.size:
                if chance.random() < 0.3:
                    packet.duration = chance.choice([0, 1, 2**31, packet.duration])
                    late = chance.choice([1, 90, 10**5, 2**33, 2**40])
                    packet.dts, packet.pts = packet.dts + late, packet.pts + late
                packet.stream = streams[packet.stream.index]
                try:
                    copy.mux(packet)
                except (av.FFmpegError, OverflowError, TypeError):
                    break
    return new.read_bytes()


def make(seed):
    chance = Random(seed)
    path = Path(f"in{chance.choice([*FORMATS])}")
    data = bytearray(whole(path, chance))
    kind = chance.choice(["whole", "joined", "cut", "flipped", "flipped", "filled", "moved"])
    if kind == "moved":
        try:
            data = bytearray(moved(path, chance, data))
        except (av.FFmpegError, OSError, TypeError, OverflowError):
            kind = "whole"
    elif kind == "joined":
        data += data * chance.randrange(1, 3)
    elif kind == "cut":
        data = data[: chance.randrange(len(data))]
    elif kind == "flipped":
        near = min(len(data), chance.choice([200, 2000, len(data)]))  # of the start or the end
        for _ in range(chance.choice([1, 3, 30])):
            place = chance.randrange(near)
            data[chance.choice([place, -1 - place])] ^= 1 << chance.randrange(8)
    elif kind == "filled":
        start, length = chance.randrange(len(data)), chance.choice([1, 4, 8, 188, 2000])
        data[start : start + length] = bytes([chance.choice([0, 255])]) * length
    path.write_bytes(data)
    return path, kind


def use(file):
    """Read and write a film; a whole one loses nothing, and whatever is lost is told."""
    path, kind = file
    told = Told()
    logging.getLogger("styletransfer").addHandler(told)
    target, count = Path("out" + Random(path.stat().st_size).choice([".mp4", ".mkv"])), 0
    try:
        with Film(path) as film, FilmWriter(target, film) as writer:
            last = None
            for frame in film.frames():
                assert last is None or frame.time > last, "times do not rise"
                last, count = frame.time, count + 1
                writer.write(*frame)
            index = film.painted
    finally:
        logging.getLogger("styletransfer").removeHandler(told)
    with Film(target) as again:
        assert sum(1 for _ in again.frames()) == count, "frames are lost"
    assert packets(path, index) == packets(target, 0) or told.lines, "sound is lost without a word"
    if kind == "whole":
        assert not [line for line in told.lines if "pause" not in line and "hold" not in line], (
            told.lines
        )


def packets(path, painted):
    """Return the number of packets of all streams but the painted one."""
    with open_container(str(path)) as film:
        return sum(1 for one in film.demux() if one.size and one.stream.index != painted)


class Told(logging.Handler):
    """Told keeps the warnings."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())
