"""Broken and hostile files end as a picture or in one line, cheaply and quietly."""

import json
import os
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
from helpers import ROOT
from PIL import Image

from styletransfer.errors import UserError
from styletransfer.pictures.images import read

DEEP = np.random.default_rng(0).integers(0, 2**16, (16, 20, 3)).astype(np.uint16)


def test_what_libraries_remark_on_damage_is_not_shown(tmp_path, capfd, caplog):
    """libtiff writes to the process's standard error, which is there again afterwards."""
    Image.fromarray(DEEP.astype(np.uint8)).save(tmp_path / "a.tif", compression="tiff_lzw")
    with tifffile.TiffFile(tmp_path / "a.tif", mode="r+") as file:
        file.pages[0].tags["StripByteCounts"].overwrite(20)
    png = bytearray(imagecodecs.png_encode(DEEP))
    png[28], png[29:33] = 9, struct.pack(">I", zlib.crc32(png[12:28] + b"\x09"))  # interlacing
    (tmp_path / "a.png").write_bytes(png)

    def refused(index):
        with suppress(UserError):
            read(tmp_path / ("a.tif", "a.png")[index % 2])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(refused, range(8)))
    os.write(2, b"here")
    assert capfd.readouterr().err == "here"
    assert not caplog.records


@pytest.mark.slow
def test_mutants_are_read_or_refused_in_one_line(request):
    count = request.config.getoption("--mutants")
    command = [sys.executable, ROOT / "tests" / "mutants.py", str(count), "0"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-4000:]
    outcomes = json.loads(ended.stdout)
    assert sum(outcomes.values()) == count
    assert set(outcomes) == {"read", "refused"}
    assert ended.stderr == ""
