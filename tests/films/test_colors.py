"""Films of other primaries and transfer curves: their frames are the same picture in sRGB."""

import numpy as np
import pytest
from films.film_files import av

from styletransfer.errors import UserError
from styletransfer.films.read import Film
from styletransfer.films.write import FilmWriter
from styletransfer.formats import stated_colors

# (number, matrix from linear sRGB) of primaries; the matrix of BT.2020 is that of BT.2087.
SRGB = (1, np.eye(3))
P3 = (12, [[0.82246, 0.17754, 0.0], [0.03319, 0.96681, 0.0], [0.01708, 0.07240, 0.91052]])
BT2020 = (9, [[0.62740, 0.32928, 0.04331], [0.06910, 0.91954, 0.01136], [0.01639, 0.08801, 0.8956]])


def srgb(y):
    return np.where(y <= 0.0031308, y * 12.92, 1.055 * y ** (1 / 2.4) - 0.055)


def pq(y):
    power = (y * 203 / 10000) ** 0.1593017578125
    return ((0.8359375 + 18.8515625 * power) / (1 + 18.6875 * power)) ** 78.84375


def hlg(y):
    bright = 0.17883277 * np.log(np.maximum(12 * 0.265 * y - 0.28466892, 1e-9)) + 0.55991073
    return np.where(0.265 * y <= 1 / 12, np.sqrt(3 * 0.265 * y), bright)


def photo():
    y, x = np.mgrid[0:1:32j, 0:1:48j]
    return 0.5 + 0.3 * np.stack([np.sin(3 * x + y), np.cos(4 * y - x), np.sin(5 * x * y)], axis=2)


def film(path, primaries=SRGB, transfer=(13, srgb), codec="ffv1", matrix=1):
    """Write three frames of `photo()` in this colour space; return the path."""
    light = ((photo() + 0.055) / 1.055) ** 2.4 @ np.transpose(primaries[1])
    samples = np.round(transfer[1](light.clip(0, 1)) * 65535).astype(np.uint16)
    depth = {"ffv1": "yuv444p10le", "libx265": "yuv444p10le", "libvpx-vp9": "yuv444p"}
    with av.open(str(path), "w") as container:
        options = {"libx265": {"x265-params": "log-level=none:qp=2"}, "libvpx-vp9": {"crf": "4"}}
        stream = container.add_stream(codec, rate=10, options=options.get(codec, {}))
        stream.width, stream.height, stream.pix_fmt = 48, 32, depth[codec]
        for part in (context := stream.codec_context,):
            part.color_primaries, part.color_trc = primaries[0], transfer[0]
            part.colorspace, part.color_range = matrix, 1
        for number in range(3):
            frame = av.VideoFrame.from_ndarray(samples, "rgb48le").reformat(
                format=depth[codec], dst_colorspace="ITU709", dst_color_range="MPEG"
            )
            frame.color_primaries, frame.color_trc = context.color_primaries, context.color_trc
            frame.colorspace, frame.color_range, frame.pts = matrix, 1, number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def errors(path):
    """Return the largest difference of each frame from `photo()`, in levels of 255."""
    with Film(path) as read:
        images = [frame.image[0].permute(1, 2, 0).numpy() for frame in read.frames()]
    return [255 * np.abs(image - photo()).max() for image in images]


@pytest.mark.parametrize(
    ("primaries", "transfer"),
    [
        (P3, (13, srgb)),
        (P3, (1, srgb)),
        (BT2020, (14, srgb)),
        (BT2020, (15, srgb)),
        (BT2020, (16, pq)),
        (BT2020, (18, hlg)),
        (P3, (16, pq)),
        (SRGB, (8, lambda y: y)),
        (SRGB, (4, lambda y: y ** (1 / 2.2))),
    ],
    ids=lambda stated: str(stated[0]),
)
@pytest.mark.parametrize("name", ["a.mkv", "a.mp4"])
def test_frames_of_other_colours_become_srgb(tmp_path, primaries, transfer, name):
    codec = "ffv1" if name == "a.mkv" else "libx265"
    found = errors(film(tmp_path / name, primaries, transfer, codec))
    assert len(found) == 3
    assert max(found) < (12 if name == "a.mp4" or transfer[0] == 8 else 6)


def test_a_film_of_srgb_is_read_as_it_is(tmp_path, caplog):
    for number in (1, 2, 6, 13):
        assert max(errors(film(tmp_path / "a.mkv", transfer=(number, srgb)))) < 4
    assert not caplog.records


def test_a_curve_that_cannot_be_converted_is_told_once(tmp_path, caplog):
    stated_colors.frame_colors.cache_clear()
    path = film(tmp_path / "a.mkv", transfer=(10, srgb))
    assert max(errors(path)) < 4
    assert max(errors(path)) < 4
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{path} states primaries 1 and transfer 10 of H.273")


@pytest.mark.parametrize("matrix", [10, 14])
def test_a_matrix_that_cannot_be_converted_is_named(tmp_path, matrix):
    with pytest.raises(UserError, match=rf"\(matrix {matrix} of .*H\.273\); save it as BT\.709"):
        errors(film(tmp_path / "a.mkv", matrix=matrix))


@pytest.mark.parametrize("extension", ["mp4", "mov", "mkv", "webm"])
def test_a_film_from_hdr_is_tagged_as_what_it_is(tmp_path, extension):
    source, target = film(tmp_path / "a.mkv", BT2020, (16, pq)), tmp_path / f"b.{extension}"
    with Film(source) as read, FilmWriter(target, read) as writer:
        for frame in read.frames():
            writer.write(*frame)
    with av.open(str(target)) as container:
        frame = next(container.decode(video=0))
        stated = (frame.color_primaries, frame.color_trc, frame.colorspace, frame.color_range)
    assert stated == (1, 1, 1, 1)
    assert np.mean(errors(target)) < 20
