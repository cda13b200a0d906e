"""Times that jump: recordings that were joined, long pauses, sound and frames out of order."""

from fractions import Fraction
from itertools import pairwise

import pytest
from films.film_files import av, frames, make, sounds, tone
from films.test_read_write import greys, noise, rewritten


def recording(path, count, start):
    """Write a film of `count` frames, 25 per second, with sound; return its bytes."""
    with av.open(str(path), "w", container_options={"output_ts_offset": str(start)}) as film:
        stream = film.add_stream("mpeg2video", rate=25, options={"bf": "2", "g": "12"})
        stream.width, stream.height, stream.pix_fmt = 34, 26, "yuv420p"
        sound = film.add_stream("mp2", rate=48000, layout="mono")
        for number, image in enumerate(greys(count)):
            pixels = (image[0] * 255).byte().permute(1, 2, 0).contiguous().numpy()
            frame = av.VideoFrame.from_ndarray(pixels, "rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            film.mux(stream.encode(frame))
        film.mux(stream.encode(None))
        film.mux(tone(sound, seconds=count / 25))
    return path.read_bytes()


def joined(folder, starts, count=12, extension=".ts"):
    """Write a film of recordings of `count` frames that were joined; each starts at its time."""
    path, part = folder / f"in{extension}", folder / f"part{extension}"
    path.write_bytes(b"".join(recording(part, count, start) for start in starts))
    return path


def distances(path):
    """Return the times between the frames of a film, in seconds."""
    return [float(b.time - a.time) for a, b in pairwise(frames(path))]


@pytest.mark.parametrize("extension", [".ts", ".vob", ".mpg"])
@pytest.mark.parametrize("starts", [(0, 0), (0, 0, 0), (3600, 0), (100, 99.5, 7)])
@pytest.mark.parametrize("target", ["out.mkv", "out.mp4"])
def test_joined_recordings_follow_one_another(starts, extension, target, tmp_path, caplog):
    source = joined(tmp_path, starts, extension=extension)
    made = rewritten(source, tmp_path / target)
    counted = f"{source}: its times begin anew {len(starts) - 1} times, as in joined recordings; "
    assert caplog.messages == [f"{counted}each part follows the one before"]
    assert distances(source) == pytest.approx([0.04] * (12 * len(starts) - 1))
    assert distances(made) == pytest.approx([0.04] * (12 * len(starts) - 1), abs=0.0011)
    (_, packets, _), (_, kept, new) = *sounds(source), *sounds(made)
    assert len(packets) == len(sounds(tmp_path / f"part{extension}")[0][1]) * len(starts)
    assert kept == packets
    steps = [b - a for a, b in pairwise(new)]
    assert min(steps) > 0.022
    assert max(steps) < 0.1
    assert max(abs(sound - picture) for sound, picture in parts(made, new, len(starts))) < 0.1


def parts(path, sound, count):
    """Return the times of the first sound and the first frame of each of `count` recordings."""
    times = [float(frame.time) for frame in frames(path)]
    return [(sound[n * len(sound) // count], times[n * 12]) for n in range(count)]


def test_many_joined_recordings_keep_sound_and_picture_together(tmp_path):
    source = joined(tmp_path, [0] * 20, count=3)
    new = sounds(rewritten(source, tmp_path / "out.mkv"))[0][2]
    times = [float(frame.time) for frame in frames(tmp_path / "out.mkv")]
    assert (len(times), len(new)) == (60, len(sounds(source)[0][1]))
    for part in range(20):
        assert abs(new[part * len(new) // 20] - times[3 * part]) < 0.1


def test_a_jump_ahead_by_an_hour_is_kept_and_told(tmp_path, caplog):
    source = joined(tmp_path, (0, 3600))
    made = rewritten(source, tmp_path / "out.mkv")
    assert caplog.messages == [f"{source}: 1 pauses of more than 10 s, of up to 3600 s, are kept"]
    for path in (source, made):
        steps = distances(path)
        assert steps.pop(11) == pytest.approx(3599.56, abs=0.1)
        assert steps == pytest.approx([0.04] * 22, abs=0.0011)
    assert sounds(made)[0][1] == sounds(source)[0][1]
    assert sounds(made)[0][2][-1] == pytest.approx(3600.48, abs=0.1)


def test_sound_with_one_wrong_time_stays_with_its_picture(tmp_path):
    """An hour too late in a packet would shift all that follow."""
    source = make(tmp_path / "in.ts", noise(40), sound=["mp2"], bf="0")
    good = sounds(rewritten(source, tmp_path / "good.mkv"))[0]
    data, wrong = bytearray(source.read_bytes()), 0
    for start in range(0, len(data), 188):
        head = data.find(b"\x00\x00\x01\xc0", start, start + 188)  # a packet of sound
        if head >= 0 and (wrong := wrong + 1) == 8:
            data[head + 9] ^= 0x04  # a high bit of its time
    source.write_bytes(data)
    made = sounds(rewritten(source, tmp_path / "out.mkv"))[0]
    assert wrong > 20
    assert made[1] == good[1]
    assert made[2] == pytest.approx(good[2], abs=0.05)
