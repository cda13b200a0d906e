"""Broken pictures: seeded mutations of tiny files, read in a separate process.

`python tests/mutants.py COUNT SEED` prints in one line how many were read or refused. Any other
result (an exception, a hang, a value out of range, too much memory) prints the mutant and fails.
"""

import collections
import faulthandler
import io
import json
import os
import random
import resource
import sys
import tempfile
import warnings
from pathlib import Path

import imagecodecs
import numpy as np
import tifffile
from PIL import Image

from styletransfer.errors import UserError
from styletransfer.pictures import decode
from styletransfer.pictures.images import read

MAX_PIXELS, SECONDS = 2**20, 20
MEGABYTES = 256  # allowed growth: a picture of MAX_PIXELS needs less
STANDARD_ERROR = os.dup(2)
EXTREMES = (0, 1, 2, 3, 7, 8, 15, 16, 127, 255, 256, 1000, *(2**n - 1 for n in (16, 31, 32)))


def tiff(samples, **options):
    """Return a TIFF of `samples` (height, width, channels), RGB unless the options differ."""
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, samples, **({"photometric": "rgb", "metadata": None} | options))
    return buffer.getvalue()


def originals():
    """Return tiny intact files by name; they are mutated in this order."""
    rng = np.random.default_rng(0)

    def noise(channels, bits=8):
        return rng.integers(0, 2**bits, (16, 20, channels)).astype(f"uint{bits}")

    def pillow(mode, **options):
        buffer = io.BytesIO()
        Image.fromarray(noise(4 if mode == "RGBA" else 3)).convert(mode).save(buffer, **options)
        return buffer.getvalue()

    profile = imagecodecs.cms_profile("rgb", gamma=1.8)
    exif = Image.Exif()
    exif[0x0112] = 6
    tiles = {"tile": (16, 16), "extrasamples": ["assocalpha"]}
    return {
        "jpeg": pillow("RGB", format="JPEG", icc_profile=profile, exif=exif),
        "jpeg cmyk": pillow("CMYK", format="JPEG", progressive=True),
        "png": pillow("RGBA", format="PNG", icc_profile=profile, exif=exif),
        "png palette": pillow("P", format="PNG", transparency=3),
        "png 16": imagecodecs.png_encode(noise(4, 16)),
        "webp": pillow("RGBA", format="WEBP", lossless=True, icc_profile=profile, exif=exif),
        "gif": pillow("P", format="GIF"),
        "bmp": pillow("RGB", format="BMP"),
        "tiff palette": pillow("P", format="TIFF"),
        "tiff cmyk": pillow("CMYK", format="TIFF", compression="tiff_lzw"),
        "tiff 16": tiff(noise(3, 16), iccprofile=profile),
        "tiff 16 lzw": tiff(noise(3, 16), compression="lzw", byteorder=">"),
        "tiff 16 tiles": tiff(noise(4, 16), compression="zlib", predictor=True, **tiles),
        "tiff 16 planes": tiff(noise(3, 16).transpose(2, 0, 1), planarconfig="separate"),
        "tiff 16 cmyk": tiff(noise(4, 16), photometric="separated", compression="packbits"),
        "tiff float": tiff(noise(3).astype(np.float32)),
    }


def mutant(data, chance):
    """Return the file with one to three changes: a number overwritten, or a piece moved."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        # Most changes hit a header, which lies near one of the ends.
        near = chance.choice((16, 64, 256, len(data), len(data)))
        start = chance.randrange(min(near, len(data)))
        start = start if chance.random() < 0.7 else len(data) - 1 - start
        if chance.random() < 0.6:
            width, order = chance.choice((1, 2, 4)), chance.choice(("little", "big"))
            value = chance.choice((chance.choice(EXTREMES), chance.getrandbits(32)))
            piece = (value % 256**width).to_bytes(width, order)
            data = data[:start] + piece + data[start + width :]
        else:
            length = chance.choice((1, 4, 12, 50, len(data)))
            piece, rest = data[start : start + length], data[:start] + data[start + length :]
            end = chance.randrange(len(rest) + 1)
            data = (rest[:end] + piece * chance.choice((0, 1, 50)) + rest[end:]) or data
    return data


def outcome(path):
    """Read a file, and return "read" or "refused"; any other behaviour raises an error."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Decoders in C cannot be interrupted, and redirect standard error while they work.
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=STANDARD_ERROR)
    try:
        picture = read(path)
    except UserError as error:
        result, message = "refused", str(error)
    else:
        result, message = "read", str(path)
        for layer in (picture.rgb, picture.rgb if picture.alpha is None else picture.alpha):
            assert 0 <= layer.min() <= layer.max() <= 1, "out of range"
            assert layer.shape[2:] == picture.size, "layers of two sizes"
    finally:
        faulthandler.cancel_dump_traceback_later()
    assert str(path) in message, f"does not name the file: {message}"
    assert "\n" not in message, f"more than a line: {message}"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MEGABYTES, f"took {grown:.0f} MB"
    return result


def main(count, seed):
    """Read `count` mutants and print how many had which outcome."""
    decode.MAX_PIXELS = MAX_PIXELS
    files = originals()
    names = list(files)
    counts: collections.Counter[str] = collections.Counter()
    warnings.filterwarnings("ignore", message=".*colour profile is unusable")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mutant")
        for index in range(count):
            chance, name = random.Random(f"{seed} {index}"), names[index % len(names)]
            data = mutant(files[name], chance)
            path.write_bytes(data)
            try:
                counts[outcome(path)] += 1
            except BaseException:
                print(f"mutant {index} of seed {seed}, {name}: {data.hex()}", file=sys.stderr)
                raise
    print(json.dumps(counts))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
