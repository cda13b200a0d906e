"""Times of films: how long the last frame is shown, and films that begin late."""

from fractions import Fraction
from itertools import pairwise

import pytest
from films.film_files import frames, make, seconds, sounds, still
from films.test_read_write import greys, rewritten

from styletransfer.films.formats import CODECS
from styletransfer.films.read import Film
from styletransfer.films.write import FilmWriter

# Seconds that each frame of a film is shown; the film lasts as long as their sum.
LENGTHS = [[0.5, 5.0], [0.5, 0.5, 0.5, 5.0], [2.0, 0.25], [3.0]]


@pytest.mark.parametrize("extension", CODECS)
@pytest.mark.parametrize("lengths", LENGTHS[:3])
def test_the_last_frame_is_shown_as_long_as_in_the_input(lengths, extension, tmp_path):
    source = still(tmp_path / "in.png", lengths)
    made = rewritten(source, tmp_path / f"out{extension}")
    assert seconds(made) == (sum(lengths), lengths[-1])
    again = rewritten(made, tmp_path / f"again{extension}")  # now a film, not a picture
    assert seconds(again) == (sum(lengths), lengths[-1])


@pytest.mark.parametrize("extension", [".gif", ".png", ".webp", ".avif"])
@pytest.mark.parametrize("lengths", LENGTHS[1:3])
def test_so_it_is_from_all_animated_pictures(lengths, extension, tmp_path):
    if extension == ".avif":
        pytest.importorskip("PIL._avif")
    made = rewritten(still(tmp_path / f"in{extension}", lengths), tmp_path / "out.mp4")
    assert seconds(made) == (sum(lengths), lengths[-1])


@pytest.mark.parametrize("extension", CODECS)
def test_a_film_of_one_frame_has_its_time(extension, tmp_path):
    path = tmp_path / f"a{extension}"
    with Film(make(tmp_path / "in.mp4", greys(1))) as film, FilmWriter(path, film) as writer:
        writer.write(greys(1)[0], Fraction(0), Fraction(3))
    assert seconds(path) == (3, 3)


def test_each_duration_reaches_up_to_the_next_frame(tmp_path):
    times = [Fraction(n, 10) for n in (0, 1, 3, 4, 9)]
    shown = frames(make(tmp_path / "in.mp4", greys(5), times))
    for frame, following in pairwise(shown):
        assert frame.duration == following.time - frame.time


def test_a_film_that_is_stopped_ends_after_its_last_frame(tmp_path):
    """A film of which only a part is painted must not show its last frame for the rest."""
    source = still(tmp_path / "in.png", [0.5, 0.25, 0.5, 5.0])
    with Film(source) as film, FilmWriter(tmp_path / "out.mp4", film) as writer:
        for frame, _ in zip(film.frames(), range(2), strict=False):
            writer.write(*frame)
    assert seconds(tmp_path / "out.mp4") == (0.75, 0.25)


@pytest.mark.parametrize(
    ("name", "codec"),
    [("in.mkv", "libx264"), ("in.webm", "libvpx-vp9"), ("in.mp4", "libx264"), ("in.ts", "mpeg4")],
)
@pytest.mark.parametrize("sound", [(), ("libopus",)])
def test_a_film_that_starts_late_begins_at_0(name, codec, sound, tmp_path):
    if name == "in.ts":
        sound = sound and ("aac",)
    made = make(tmp_path / name, greys(), codec=codec, sound=sound, start=5.0)
    with Film(made) as film:
        assert abs(film.start - 5) < 0.05
        assert film.count in (10, 11) or name == "in.ts"
    shown = frames(rewritten(made, tmp_path / "out.mp4"))
    first = shown[0].time
    assert first < 0.05  # the sound may begin a little earlier
    assert len(shown) == 10
    for number, frame in enumerate(shown):
        assert abs(frame.time - first - Fraction(number, 10)) < 0.001
    assert seconds(tmp_path / "out.mp4")[0] < 1.2
    for _, _, times in sounds(tmp_path / "out.mp4"):
        assert abs(times[0]) < 0.05


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("sound", [(), ("aac",)])
def test_a_short_film_that_starts_late_begins_at_0(count, sound, tmp_path):
    made = make(tmp_path / "in.mkv", greys(count), sound=sound, start=5.0)
    with Film(made) as film:
        assert (film.start, film.count) == (5, count)
    shown = frames(rewritten(made, tmp_path / "out.mp4"))
    assert [frame.time * 10 for frame in shown] == list(range(count))
