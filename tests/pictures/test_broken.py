"""Broken and hostile files end as a picture or in one line, cheaply: crafted ones and mutants."""

import errno
import io
import json
import os
import re
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import imagecodecs
import numpy as np
import pytest
import tifffile
import torch
from helpers import ROOT
from PIL import Image

from styletransfer.errors import UserError
from styletransfer.pictures.images import check_writable, read, write

DEEP = np.random.default_rng(0).integers(0, 2**16, (16, 20, 3)).astype(np.uint16)
SHALLOW = (DEEP >> 8).astype(np.uint8)


def tiff(samples=DEEP, **options):
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, samples, **({"photometric": "rgb", "metadata": None} | options))
    return buffer.getvalue()


def retagged(data, *, kind=None, count=None, **values):
    """Change tags, named as tifffile does, of the first page of a TIFF."""
    file = io.BytesIO(data)
    with tifffile.TiffFile(file) as pages:
        entries = {tag.name: tag.offset for tag in pages.pages[0].tags}
    for name, value in values.items():
        code, old_kind, old_count, _ = struct.unpack_from("<HHI4s", data, entries[name])
        entry = struct.pack("<HHII", code, kind or old_kind, count or old_count, value)
        data = data[: entries[name]] + entry + data[entries[name] + 12 :]
    return data


def with_tag(code, value):
    """A TIFF with a tag that tifffile would not write."""
    data = tiff(extratags=[(65000, 4, 1, value, True)])
    return data.replace(struct.pack("<HHI", 65000, 4, 1), struct.pack("<HHI", code, 4, 1))


def jpeg(scans):
    """A progressive JPEG whose last scan is repeated until there are that many."""
    buffer = io.BytesIO()
    Image.fromarray(SHALLOW).save(buffer, format="JPEG", progressive=True)
    data = buffer.getvalue()
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * (1 + scans - data.count(b"\xff\xda")) + b"\xff\xd9"


def inside(compression, encoded):
    """A TIFF of 16 x 20 pixels whose only strip is this compressed picture."""
    buffer = io.BytesIO()
    options = {"shape": SHALLOW.shape, "dtype": SHALLOW.dtype, "compression": compression}
    tifffile.imwrite(buffer, iter([encoded]), photometric="rgb", metadata=None, **options)
    return buffer.getvalue()


LARGE = np.zeros((2000, 2000, 3), np.uint8)
FOUR = np.dstack([DEEP, DEEP[..., 0]])
OFFENDERS = {
    "three inks": (
        retagged(tiff(), PhotometricInterpretation=5),
        "3 samples per pixel, too few for SEPARATED",
    ),
    "three shallow inks": (
        retagged(tiff(SHALLOW), PhotometricInterpretation=5),
        "too few for SEPARATED",
    ),
    "spot colours": (
        tiff(FOUR, photometric="separated", extratags=[(332, 3, 1, 2, True)]),
        "inks other than CMYK",
    ),
    "two slices": (tiff(np.stack([DEEP, DEEP]), volumetric=True), "a volume of 2 slices"),
    "many slices": (
        with_tag(32997, 2**31),
        "a volume of 2147483648 slices",
    ),
    "no width": (retagged(tiff(), ImageWidth=0), "0 x 16 pixels"),
    "no height": (retagged(tiff(), ImageLength=0), "20 x 0 pixels"),
    "two samples called RGB": (
        retagged(
            tiff(DEEP[..., :2], photometric="minisblack", planarconfig="contig"),
            PhotometricInterpretation=2,
        ),
        "2 samples per pixel, too few for RGB",
    ),
    "alpha without a channel": (
        with_tag(338, 2),
        "3 samples per pixel, too few for RGB and alpha",
    ),
    "two hundred samples": (
        tiff(np.zeros((4, 5, 200), np.uint16), photometric="minisblack", planarconfig="contig"),
        "200 samples per pixel, more than the limit of 8",
    ),
    "signed samples": (
        tiff(DEEP[..., 0].astype(np.int16), photometric="minisblack"),
        "16-bit int16 MINISBLACK samples",
    ),
    "large tiles": (
        retagged(tiff(tile=(16, 16), compression="zlib"), TileWidth=2**15, TileLength=2**15),
        "bytes of samples, more than the limit of 8,388,608",
    ),
    "large PNG inside": (inside("png", imagecodecs.png_encode(LARGE)), "holds 2000 x 2000 pixels"),
    "large JPEG 2000 inside": (
        inside("jpeg2000", imagecodecs.jpeg2k_encode(LARGE)),
        "holds 2000 x 2000 pixels where its tags say 320 in all",
    ),
    "missing strips": (
        retagged(tiff(compression="zlib", rowsperstrip=4), count=2, StripOffsets=8),
        "damaged or truncated TIFF",
    ),
    "LERC": (tiff(compression="lerc"), "compressed as LERC, which is not read; save it"),
    "JPEG XR": (tiff(compression="jpegxr"), "compressed as JPEGXR, which is not read"),
    "half of a JPEG XR": (
        tiff(compression="jpegxr", rowsperstrip=8)[:-900],
        "compressed as JPEGXR, which is not read",
    ),
    "JPEG XL": (tiff(SHALLOW, compression="jpegxl"), "compressed as JPEGXL, which is not read"),
    "three thousand scans in a TIFF": (inside("jpeg", jpeg(3000)), "3,000 JPEG scans"),
    "three thousand scans": (jpeg(3000), "3,000 JPEG scans, more than the limit of 100"),
}


@pytest.mark.parametrize("name", OFFENDERS)
def test_crafted_offenders_are_refused_in_one_line(tmp_path, name):
    content, message = OFFENDERS[name]
    (tmp_path / "broken").write_bytes(content)
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        read(tmp_path / "broken", max_pixels=2**20)
    assert str(tmp_path / "broken") in str(caught.value)
    assert "\n" not in str(caught.value)


COMPRESSIONS = ["jpeg2000", "png", "lzma", "zstd", "packbits"]


@pytest.mark.parametrize(
    ("compression", "samples"),
    [(name, samples) for name in COMPRESSIONS for samples in (DEEP, SHALLOW)] + [("webp", SHALLOW)],
)
@pytest.mark.parametrize("tile", [None, (16, 16)])
def test_rarer_tiff_compressions(tmp_path, compression, samples, tile):
    path = tmp_path / "a.tif"
    path.write_bytes(tiff(samples, compression=compression, tile=tile))
    unit = samples.astype(np.float32) / np.iinfo(samples.dtype).max
    assert torch.equal(read(path).rgb[0].permute(1, 2, 0), torch.from_numpy(unit))
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(UserError, match="damaged or truncated TIFF"):
        read(path)


def test_eight_bit_inks_with_alpha(tmp_path):
    path = tmp_path / "a.tif"
    inks = np.dstack([np.zeros((9, 7, 4), np.uint8), np.full((9, 7), 51, np.uint8)])
    path.write_bytes(tiff(inks, photometric="separated", extrasamples=["unassalpha"]))
    picture = read(path)
    assert torch.equal(picture.rgb, torch.ones(1, 3, 9, 7))
    assert torch.allclose(picture.alpha, torch.tensor(0.2))


@pytest.mark.parametrize("samples", [DEEP, SHALLOW], ids=["deep", "shallow"])
@pytest.mark.parametrize("kind", [2, 3, 4])
def test_a_profile_of_a_wrong_type_is_ignored_with_a_warning(tmp_path, samples, kind):
    content = tiff(samples, extratags=[(34675, kind, 3, "no" if kind == 2 else (1, 2, 3), True)])
    (tmp_path / "a.tif").write_bytes(content)
    with pytest.warns(UserWarning, match=r"a\.tif: its colour profile is unusable"):
        picture = read(tmp_path / "a.tif")
    assert picture.size == (16, 20)


def test_scans_are_those_of_the_picture_alone(tmp_path):
    """A preview, metadata and a film behind the picture may hold anything."""
    path, marker = tmp_path / "a.jpg", b"\xff\xda" * 200
    data = jpeg(100)
    comment = b"\xff\xfe" + struct.pack(">H", 2 + len(marker)) + marker
    path.write_bytes(data[:2] + comment + data[2:] + marker)
    assert read(path).size == (16, 20)


def test_an_output_never_replaces_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    for check in (check_writable, lambda path: write(path, torch.zeros(1, 3, 2, 2))):
        with pytest.raises(UserError, match=r"pipe\.png: it is a device or pipe; name a file"):
            check(tmp_path / "pipe.png")
    assert (tmp_path / "pipe.png").is_fifo()


@pytest.mark.parametrize("threads", [1, 2])
def test_what_libraries_remark_on_damage_is_not_shown(tmp_path, capfd, caplog, threads):
    """libtiff writes to the process's standard error, which is there again afterwards."""
    broken = retagged(tiff(SHALLOW, compression="zlib"), StripByteCounts=20)
    (tmp_path / "a.tif").write_bytes(broken)
    png = bytearray(imagecodecs.png_encode(DEEP))
    png[28], png[29:33] = 9, struct.pack(">I", zlib.crc32(png[12:28] + b"\x09"))  # interlacing
    (tmp_path / "a.png").write_bytes(png)

    def refused(index):
        with suppress(UserError):
            read(tmp_path / ("a.tif", "a.png")[index % 2])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(refused, range(8)))
    os.write(2, b"here")
    assert capfd.readouterr().err == "here"
    assert not caplog.records


def test_a_failing_disk_is_no_damaged_picture(tmp_path, monkeypatch):
    write(tmp_path / "a.png", torch.zeros(1, 3, 2, 2))

    def fail(*args, **kwargs):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Image, "open", fail)
    with pytest.raises(UserError, match=r"a\.png cannot be read: Input/output error"):
        read(tmp_path / "a.png")


PEAK = """
import resource, sys
from styletransfer.pictures.images import read
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
read(sys.argv[1]); before = peak()
height, width = read(sys.argv[2]).size
print((peak() - before) / (height * width))
"""


@pytest.mark.parametrize(
    ("name", "channels", "bits", "most"), [("a.png", 3, 8, 20), ("a.tif", 4, 16, 34)]
)
def test_reading_takes_little_more_than_the_picture(tmp_path, name, channels, bits, most):
    """Bytes per pixel: 4 for each channel in float32, and the samples as they were stored."""
    for path, side in ((tmp_path / f"small{name}", 8), (tmp_path / name, 2048)):
        layers = torch.rand(1, channels, 1, side).expand(-1, -1, side, -1)
        alpha = layers[:, 3:] if channels == 4 else None
        write(path, layers[:, :3], alpha, bit_depth=bits)
    command = [sys.executable, "-c", PEAK, tmp_path / f"small{name}", tmp_path / name]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(ended.stdout) < most


def test_mutants_are_read_or_refused_in_one_line(request):
    count = request.config.getoption("--mutants")
    command = [sys.executable, ROOT / "tests" / "mutants.py", str(count), "0"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-4000:]
    outcomes = json.loads(ended.stdout)
    assert sum(outcomes.values()) == count
    assert set(outcomes) == {"read", "refused"}
    assert ended.stderr == ""
