"""`apply` reads the next picture or frame and writes the last ones while another one is painted."""

import signal
import threading
from pathlib import Path

import pytest
from films.clips import pan
from films.film_files import make
from helpers import check_error, files_in, needs, picture, press
from networks.nets import applying, write_network

from styletransfer.errors import UserError
from styletransfer.films.read import Film
from styletransfer.films.write import FilmWriter
from styletransfer.networks.apply.painter import Painter
from styletransfer.pictures import images
from styletransfer.system.signals import Stopped

NAMES = ["a.png", "b.png", "c.png", "d.png"]
PATIENCE = 3  # seconds
apply = applying("in", "out")


@pytest.fixture(autouse=True)
def desk(here):
    """Write a network and a folder of four pictures."""
    write_network("oil")
    for number, name in enumerate(NAMES):
        images.write(f"in/{name}", picture(number, 13, 22))


class Meeting:
    """A Meeting lets painting wait for the next reading, and writing wait for the next painting."""

    def __init__(self, monkeypatch, writer, name, most):
        self.most, self.painted, self.changed = most, 0, threading.Condition()
        self.read, self.is_met = 0, True
        paint, write = Painter.paint, getattr(writer, name)

        def painting(painter, content):
            with self.changed:
                self.painted += 1
                self.changed.notify_all()
                self.wait(lambda: self.read > min(self.painted, self.most - 1))
            return paint(painter, content)

        def writing(*given, **more):
            with self.changed:
                begun = self.painted
                self.wait(lambda: self.painted > min(begun, self.most - 1))
            return write(*given, **more)

        monkeypatch.setattr(Painter, "paint", painting)
        monkeypatch.setattr(writer, name, writing)

    def wait(self, is_so):
        self.is_met &= self.changed.wait_for(is_so, PATIENCE if self.is_met else 0)

    def came(self):
        """Count a picture that was read."""
        with self.changed:
            self.read += 1
            self.changed.notify_all()


def test_a_picture_is_read_and_another_written_meanwhile(monkeypatch):
    apply(output="plain")
    meeting, read = Meeting(monkeypatch, images, "write", len(NAMES)), images.read

    def reading(path):
        meeting.came()
        return read(path)

    monkeypatch.setattr(images, "read", reading)
    apply()
    assert meeting.is_met
    plain = files_in("plain")
    assert files_in("out").keys() == plain.keys()
    assert all(read(f"out/{name}").rgb.equal(read(f"plain/{name}").rgb) for name in NAMES)


def test_a_frame_is_read_and_another_written_meanwhile(monkeypatch):
    needs("video", "av")
    make(Path("clip.mp4"), [pan(time).float() for time in range(4)])
    apply(input="clip.mp4", output="plain.mkv")
    meeting, frames = Meeting(monkeypatch, FilmWriter, "write", 4), Film.frames

    def reading(film):
        for frame in frames(film):
            meeting.came()
            yield frame

    monkeypatch.setattr(Film, "frames", reading)
    apply(input="clip.mp4", output="out.mkv")
    assert meeting.is_met
    with Film("plain.mkv") as plain, Film("out.mkv") as made:
        pairs = zip(frames(plain), frames(made), strict=True)
        assert all(one.image.equal(two.image) and one[1:] == two[1:] for one, two in pairs)


def test_errors_are_told_in_the_order_of_the_files(monkeypatch, caplog):
    """A picture is not written, the next one cannot be read, and the last one is not written."""
    write = images.write

    def full(path, *given, **more):
        if Path(path).name in ("b.png", "d.png"):
            raise UserError(f"no space for {path}")
        write(path, *given, **more)

    monkeypatch.setattr(images, "write", full)
    Path("in/c.png").write_text("no picture")
    check_error("3 of 4 files could not be painted", apply)
    told = [record.message for record in caplog.records]
    assert [name in line for name, line in zip(NAMES[1:], told, strict=True)] == [True] * 3
    assert [*files_in("out")] == ["a.png"]


def test_what_memory_is_too_small_for_is_read_in_its_turn(monkeypatch):
    read, tried = images.read, []

    def short(path):
        tried.append(Path(path).name)
        if tried.count("b.png") == 1 and tried[-1] == "b.png":
            raise MemoryError
        return read(path)

    monkeypatch.setattr(images, "read", short)
    apply()
    assert sorted(tried) == sorted([*NAMES, "b.png"])
    assert sorted(files_in("out")) == NAMES


@pytest.mark.parametrize("error", [MemoryError, ZeroDivisionError])
def test_a_lack_of_memory_while_writing_is_told(error, monkeypatch):
    def short(*given, **more):
        raise error

    monkeypatch.setattr(images, "write", short)
    if error is MemoryError:
        check_error("4 of 4 files could not be painted", apply)
    else:
        with pytest.raises(error):
            apply()


def test_a_signal_leaves_whole_pictures(monkeypatch, signals):
    paint, painted = Painter.paint, []

    def pressed(painter, content):
        painted.append(content)
        if len(painted) == 3:
            press(signal.SIGINT)
        return paint(painter, content)

    monkeypatch.setattr(Painter, "paint", pressed)
    with pytest.raises(Stopped):
        apply()
    assert sorted(name for name in files_in("out") if name.endswith("png")) == NAMES[:2]
    assert not [name for name in files_in("out") if name.endswith(".tmp")]
    apply()
    assert len(painted) == 5
