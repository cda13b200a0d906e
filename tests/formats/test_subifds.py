"""TIFF and DNG with several versions of a picture: thumbnails, SubIFDs, and RAW photographs."""

import struct

import numpy as np
import pytest
import tifffile
import torch

from styletransfer.errors import UserError
from styletransfer.pictures.images import read

CFA, LINEAR_RAW = 32803, 34892
ORIENTATION = 274


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


def tensor(samples):
    return torch.from_numpy(samples.astype(np.float32).transpose(2, 0, 1))[None] / 255


def dng(path, first, versions, marked=False, first_tags=(), **options):
    """Write a TIFF whose first page has SubIFDs; `versions` are (samples, options) of each."""
    plain = {"photometric": "rgb", "metadata": None, **options}
    with tifffile.TiffWriter(path) as file:
        kind = {"subfiletype": int(marked), "extratags": list(first_tags)}
        file.write(first, subifds=len(versions), **plain, **kind)
        for samples, further in versions:
            file.write(samples, **{**plain, **further})
    return path


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_the_largest_of_page_and_subifds_is_read(tmp_path, marked, order):
    whole, half = noise(64, 96), noise(32, 48, 1)
    versions = [(whole, {"subfiletype": 0}), (half, {"subfiletype": 1})][::order]
    path = dng(tmp_path / "a.dng", noise(20, 30, 2), versions, marked)
    assert torch.equal(read(path).rgb, tensor(whole))


def test_a_pyramid_is_read_at_its_full_size(tmp_path):
    whole = noise(64, 96)
    versions = [(noise(32, 48), {"subfiletype": 1}), (noise(16, 24), {"subfiletype": 1})]
    assert torch.equal(read(dng(tmp_path / "a.tif", whole, versions)).rgb, tensor(whole))


def test_a_marked_first_page_gives_way_to_a_later_page(tmp_path):
    whole, path = noise(64, 96), tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as file:
        file.write(noise(20, 30), photometric="rgb", metadata=None, subfiletype=1)
        file.write(whole, photometric="rgb", metadata=None)
    assert torch.equal(read(path).rgb, tensor(whole))


def test_pages_of_a_document_stay_the_first(tmp_path, caplog):
    first, path = noise(20, 30), tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as file:
        file.write(first, photometric="rgb", metadata=None)
        file.write(noise(64, 96), photometric="rgb", metadata=None)
    assert torch.equal(read(path).rgb, tensor(first))
    assert "has several pages; only the first is read" in caplog.text


def test_a_picture_that_is_only_a_thumbnail_is_read(tmp_path):
    small = noise(20, 30)
    tifffile.imwrite(tmp_path / "a.tif", small, photometric="rgb", metadata=None, subfiletype=1)
    assert torch.equal(read(tmp_path / "a.tif").rgb, tensor(small))


def test_a_subifd_is_turned_as_its_file_says(tmp_path):
    whole = noise(64, 96)
    tag = (ORIENTATION, "H", 1, 6, True)
    path = dng(tmp_path / "a.dng", noise(20, 30), [(whole, {})], first_tags=[tag])
    assert torch.equal(read(path).rgb, tensor(np.rot90(whole, -1).copy()))


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("photometric", [CFA, LINEAR_RAW])
def test_a_raw_photograph_is_refused_as_one(tmp_path, marked, photometric):
    raw = noise(64, 96)[..., : 1 if photometric == CFA else 3].squeeze()
    cfa = [(33421, "H", 2, (2, 2), True), (33422, "B", 4, bytes([0, 1, 1, 2]), True)]
    options = {"photometric": photometric, "extratags": cfa}
    if photometric == LINEAR_RAW:
        options["planarconfig"] = "contig"  # tifffile may guess another one from the shape
    versions = [(raw, options), (noise(32, 48), {"subfiletype": 1})]
    path = dng(tmp_path / "a.dng", noise(20, 30), versions, marked)
    with pytest.raises(UserError, match=r"a\.dng is a RAW photograph; export it as JPEG or TIFF"):
        read(path)


def test_raw_files_that_are_no_tiff_are_refused_as_raw(tmp_path):
    for name, head in (
        ("a.cr3", b"\0\0\0\x18ftypcrx \0\0\0\1"),
        ("a.raf", b"FUJIFILMCCD-RAW 0201"),
        ("a.orf", b"IIRO\x08\0\0\0"),
        ("a.rw2", b"IIU\0\x18\0\0\0"),
        ("a.x3f", b"FOVb\0\0\2\0"),
    ):
        (tmp_path / name).write_bytes(head + bytes(400))
        with pytest.raises(UserError, match=f"{name} is a RAW photograph"):
            read(tmp_path / name)


def test_a_raw_file_of_canon_is_no_tiff(tmp_path):
    tags = [(256, 1), (257, 1), (258, 8), (259, 1), (262, 1)]
    tags += [(273, 16), (277, 1), (278, 1), (279, 1)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    head = b"II*\0" + struct.pack("<I", 16) + b"CR\2\0\0\0\0\0"
    content = head + struct.pack("<H", len(tags)) + entries + bytes(4)
    (tmp_path / "a.cr2").write_bytes(content)
    with pytest.raises(UserError, match=r"a\.cr2 is a RAW photograph"):
        read(tmp_path / "a.cr2")
