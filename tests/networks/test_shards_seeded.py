"""`apply` on tar archives made from seeds, whole, damaged and lying: nothing is lost unsaid."""

import bz2
import gzip
import io
import logging
import lzma
import re
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from random import Random

import pytest
from helpers import picture
from networks.archives import END, member, pax
from networks.nets import style_network
from seeded import check

from styletransfer.errors import UserError
from styletransfer.networks import file
from styletransfer.networks.apply.painter import Painter
from styletransfer.networks.apply.shards import paint_shard
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.networks.johnson import Architecture
from styletransfer.pictures import images

# Parts of messages after which any number of members may be missing.
ENDS = ("is cut", "no tar archive")


@pytest.mark.slow
def test_archives_from_seeds_are_painted_or_named(request):
    outcomes = check(__file__, request.config.getoption("--seeds"))
    assert {*outcomes} == {"success", "UserError"}


@cache
def painter():
    folder = Path(tempfile.mkdtemp())
    network = style_network(Architecture((3, 4, 5), 1), 1)
    file.write(folder / "net.safetensors", network, ["oil"])
    config = ApplyConfig(str(folder / "net.safetensors"), device="cpu", precision="float32")
    config.recipe = False
    return Painter(config)


@cache
def photo():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.png")
        images.write(path, picture(0, 12, 16))
        return path.read_bytes()


def name_of(chance, number):
    """Return a member's name, which no other member of the archive has."""
    folder = chance.choice(["", "", "d/", "./", "/", "deep/" * 60, "../", "..\\", "a/../../"])
    stem = chance.choice(["{}", "{}", "{}.b", "é{}", "line\n{}", "\udcff{}", "{} " * 99, ".{}"])
    ending = chance.choice([".png", ".png", ".PNG", ".bmp", ".jpg", ".txt", ".json", ""])
    return folder + stem.replace("{}", str(number)) + ending


def data_of(chance):
    """Return a member's data: a picture, a part of one, or something else."""
    whole, noise = photo(), chance.randbytes(chance.choice([0, 1, 511, 512, 513, 9000]))
    inner = member("inner.png", whole) + END
    return chance.choice([whole, whole, whole, whole[: chance.randrange(len(whole))], noise, inner])


def entry(chance, names):
    """Return the bytes of one or several members in some form, and how many they are."""
    name, data = name_of(chance, len(names)), data_of(chance)
    names.append(name)
    kinds = [tarfile.LNKTYPE, tarfile.SYMTYPE, b"3", b"4", b"5", b"6", b"D", b"Z"]
    match chance.randrange(16):
        case 0:
            return member(name, kind=chance.choice(kinds), linkname=chance.choice(names)), 1
        case 1:
            return member(name, data, tarfile.GNUTYPE_SPARSE), 1
        case 2:
            holes = str(chance.choice([10, 2**31, 2**60])).encode()
            return pax((b"GNU.sparse.realsize", holes)) + member(name, data), 1
        case 3:
            size = chance.choice([b"%d" % len(data), b"-1", b"x", b"9" * 5000])
            return pax((b"size", size), (b"mtime", b"inf")) + member(name, data), 1
        case 4:
            long = name.encode(errors="surrogateescape")
            return pax((b"path", long)) + member("short", data), 1
        case 5:  # lies about its size; what it seems to hold ends in the noise of the next
            behind = -(-len(data) // 512) * 512 + 1024
            stated = chance.choice([behind, 2**33, 2**50, 2**62])
            noise = chance.randbytes(3000)
            return member(name, data, stated=stated) + member("noise.bin", noise), 2
        case 6:
            return member(name, data) + member(name, data_of(chance)), 2
        case 7:
            chain = member("", name.encode(errors="surrogateescape"), tarfile.GNUTYPE_LONGNAME)
            return chain * chance.choice([1, 400]) + member("short", data), 1
        case _:
            return member(name, data, mtime=chance.choice([7, -7])), 1


def damaged(chance, data):
    """Return bytes with one kind of damage, and how many members may be gone without a trace."""
    at = chance.randrange(len(data) or 1)
    lies = data.count(b"noise.bin")  # a damaged header behind a member of a wrong size is not seen
    match chance.randrange(4):
        case 0:
            return data[:at], 0
        case 1:
            return data[:at] + chance.randbytes(chance.choice([1, 512, 2000])) + data[at:], lies
        case 2:
            return data[:at] + data[at + chance.choice([1, 512, 2000]) :], 5 + lies
        case _:
            flipped = bytearray(data)
            blocks = range(0, len(data), 512)
            for begin in chance.sample(blocks, min(3, len(blocks))):
                # One bit of a block, so that no second one makes its checksum right again.
                at = min(begin + chance.randrange(512), len(data) - 1)
                flipped[at] ^= 1 << chance.randrange(8)
            return bytes(flipped), lies


def make(seed):
    """Return the bytes of an archive; write into count.txt how many members must be found."""
    chance, names = Random(seed), list[str]()
    entries = [entry(chance, names) for _ in range(chance.randrange(9))]
    data, count = b"".join(data for data, _ in entries), sum(count for _, count in entries)
    if chance.random() < 0.1:
        data, count = data + END + data, 2 * count
    data += chance.choice([END, END, END, b"", bytes(10240)])
    when = chance.choice(["never", "before", "after"])  # before it is packed, or after
    gone = 0
    if when == "before":
        data, gone = damaged(chance, data)
    data = chance.choice([bytes, bytes, gzip.compress, bz2.compress, lzma.compress])(data)
    if when == "after":
        data, gone = damaged(chance, data)
    Path("count.txt").write_text(str(count - gone))
    Path("in.tar").write_bytes(data)
    return Path("in.tar")


def use(path):
    """Paint an archive; assert that as many members are kept or named as there are."""
    told, error = io.StringIO(), None
    handler = logging.StreamHandler(told)
    logging.getLogger().addHandler(handler)
    try:
        paint_shard(painter(), path, Path("out.tar"))
    except UserError as refused:
        error = refused
    finally:
        logging.getLogger().removeHandler(handler)
    kept = 0
    if Path("out.tar").exists():
        with tarfile.open("out.tar") as made:
            kept = sum(len(made.extractfile(one).read()) == one.size for one in made if one.isreg())
            kept += sum(not one.isreg() for one in made)
    several = re.search("([0-9]+) problems, see above", str(error))
    named = int(several[1]) if several else int(error is not None)
    count = int(Path("count.txt").read_text())
    if not any(words in f"{told.getvalue()} {error}" for words in ENDS):
        assert kept + named >= count, f"{count} members, {kept} kept, {named} named: {error}"
    if error is not None:
        raise error
