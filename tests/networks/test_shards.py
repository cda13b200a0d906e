"""`apply` on tar archives: each member is painted, copied or named, whatever the archive states."""

import bz2
import gzip
import lzma
import re
import tarfile
from functools import partial
from io import BytesIO
from pathlib import Path
from random import Random

import pytest
from helpers import check_error, files_in, write_pictures
from networks.archives import END, header, member, packed, pax, unpacked
from networks.nets import applying, write_network

from styletransfer.errors import UserError
from styletransfer.networks.apply import archive
from styletransfer.pictures import images

apply = applying("in.tar", "out.tar")
PACK = {"plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


@pytest.fixture
def check_made(caplog):
    """Return a function that asserts what an archive becomes, and that each problem is told."""
    return partial(_check_made, caplog)


@pytest.fixture(autouse=True)
def photo(here):
    """Write a network and a picture, a.png; return the bytes of the picture."""
    write_network("oil", "wash")
    write_pictures("a.png", height=12, width=16)
    return Path("a.png").read_bytes()


def _check_made(caplog, data, names, *problems):
    Path("in.tar").write_bytes(data)
    if len(problems) == 1:
        check_error(problems[0], apply)
    else:
        caplog.clear()
        check_error(f"{len(problems)} problems, see above; the rest is in out.tar", apply)
        for problem, told in zip(problems, caplog.messages, strict=True):
            assert re.search(problem, told)
    assert list(unpacked("out.tar")) == names
    for name, made in unpacked("out.tar").items():
        assert made.startswith(b"\x89PNG") == name.endswith(".png")
    assert not any(name.startswith(".") for name in files_in("."))


def test_the_pictures_of_a_shard_are_painted_in_place(photo, caplog):
    """Check order, other members, the bytes of a picture, and one that cannot be painted."""
    members = {"0_png": photo[:90], "1_json": b"{}", "1_png": photo, "2_json": b"[]"}
    packed(Path("shards/a.tar"), **members)
    packed(Path("shards/b.tar"), x_png=photo)
    check_error("1 of 2 files could not", apply, input="shards", output="out")
    assert "a.tar: 0.png is damaged" in caplog.text
    made = unpacked("out/a.tar")
    assert list(made) == ["1.json", "1.png", "2.json"]
    assert (made["1.json"], made["2.json"]) == (b"{}", b"[]")
    Path("1.png").write_bytes(photo)
    apply(input="1.png", output="one.png")
    assert made["1.png"] == Path("one.png").read_bytes()
    before = files_in("out")
    apply(input="shards", output="out")
    assert files_in("out") == before
    again = partial(apply, input="shards", output="out", style="oil")
    check_error("was painted with another style", again)


def test_shards_that_cannot_be_are_told(photo):
    packed(Path("shards/a.tar"), x_png=photo)
    Path("bad.tar").write_bytes(b"no archive")
    check_error("of a .tar archive a .tar", apply, input="shards/a.tar", output="a.png")
    check_error("bad.tar is no tar archive, or is", apply, input="bad.tar", output="a.tar")
    random = partial(apply, input="shards", output="out", random=True, style="shards")
    check_error("unpack the shards in", random)
    assert not Path("a.tar").exists()


@pytest.mark.parametrize("kind", PACK)
def test_what_comes_before_a_cut_is_kept_and_named(kind, photo, check_made):
    noise = Random(0).randbytes(4000)  # what no program packs into fewer bytes
    cut = PACK[kind](member("a.png", photo)) + PACK[kind](member("b.bin", noise) + END)[:2000]
    told = r"in.tar: (b.bin is cut|it is cut or damaged after a.png).*; the rest is in out.tar"
    check_made(cut, ["a.png"], told)


@pytest.mark.parametrize("kind", ["gzip", "xz"])
def test_a_wrong_checksum_is_told(kind, photo, check_made):
    whole = bytearray(PACK[kind](member("a.png", photo) + END))
    whole[-6] ^= 1
    check_made(bytes(whole), ["a.png"], r"it is cut or damaged after a.png \(")


def test_sparse_members_are_refused_by_name(photo, check_made):
    """Check GNU tar's own form, of 400 MB without data, and that of pax headers."""
    holes = bytearray(header("a.png", 0, tarfile.GNUTYPE_SPARSE))
    holes[386:410] = b"%011o\0%011o\0" % (400_000_000, 0)
    holes[483:495] = b"%011o\0" % 400_000_000
    holes[148:156] = b" " * 8
    holes[148:156] = b"%06o\0 " % sum(holes)
    stated = pax((b"GNU.sparse.name", b"c.png"), (b"GNU.sparse.realsize", b"4000"))
    data = bytes(holes) + member("b.png", photo) + stated + member("x/c.png") + END
    check_made(data, ["b.png"], "a.png is stored without its zeros", "c.png is stored without")


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz"])
def test_a_bomb_is_refused_by_name(kind, photo, monkeypatch, check_made):
    monkeypatch.setattr(archive, "FLOOR", 2**17)
    monkeypatch.setattr(archive, "RATIO", 1)
    bombs = member("a.png", bytes(2**19)) + member("a.txt", bytes(2**19))
    data = PACK[kind](bombs + member("b.png", photo) + END)
    check_made(data, ["b.png"], "a.png states 524288 bytes", "a.txt states 524288 bytes")


def test_no_more_is_unpacked_than_the_bound(photo, monkeypatch):
    for name, value in {"FLOOR": 2**17, "RATIO": 1, "SKIPPED": 3}.items():
        monkeypatch.setattr(archive, name, value)
    bombs = member("b.png", bytes(2**18)) + member("c.png", bytes(2**18)) + member("d.png", photo)
    Path("in.tar").write_bytes(gzip.compress(member("a.png", photo) + bombs + END))
    check_error("3 problems, see above; the rest is in out.tar", apply)
    assert list(unpacked("out.tar")) == ["a.png"]


def test_headers_without_end_end_the_archive(photo, monkeypatch):
    monkeypatch.setattr(archive, "FLOOR", 2**15)
    monkeypatch.setattr(archive, "RATIO", 1)
    Path("in.tar").write_bytes(lzma.compress(member("a.png", photo) + member("empty") * 1000))
    check_error("it is cut or damaged after empty .a wrong size, or above 0 MiB", apply)
    assert list(unpacked("out.tar"))[:2] == ["a.png", "empty"]


def test_a_dictionary_beyond_the_memory_is_refused(photo):
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**29}]
    data = lzma.compress(member("a.png", photo) + END, filters=filters)
    Path("in.tar").write_bytes(data)
    check_error("in.tar is no tar archive, or is damaged", apply)


@pytest.mark.parametrize("make", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_are_painted(make, photo):
    names = ["x" * 300 + ".png", "d/" * 3000 + "b.png", "y" * 5000 + ".txt"]
    with tarfile.open("in.tar", "w", format=make) as made:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(photo)
            made.addfile(info, BytesIO(photo))
    apply()
    assert list(unpacked("out.tar")) == names
    assert unpacked("out.tar")[names[2]] == photo


HOSTILE = {
    "a name above 1 MiB": member("n" * 2**20 + ".png", b""),
    "many names": member("x", b"b.png", tarfile.GNUTYPE_LONGNAME) * 400 + member("b.png"),
    "headers above 1 MiB": member("x", bytes(2**18), tarfile.GNUTYPE_LONGNAME) * 5 + member("b"),
    "digits": pax((b"1" * 2**14, b"")) + member("b.png"),
    "a size of digits": pax((b"size", b"9" * 299), (b"path", b"b" + b"9" * 5000)) + member("b"),
    "a negative size": pax((b"size", b"-1024")) + member("b.png"),
    "a list of holes": pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"))
    + member("b.png", b"9\n1"),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_headers_beyond_bounds_end_the_archive(data, photo, check_made):
    data = member("a.png", photo) + data + member("c.png", photo) + END
    check_made(data, ["a.png"], "in.tar: it is cut or damaged after a.png")


@pytest.mark.parametrize("kind", PACK)
def test_a_lying_size_is_told(kind, photo):
    """Check sizes beyond all memory, and one that ends in the data of the next member."""
    for size, names in ((2**50, []), (2**33, []), (len(photo) + 512, ["b.png"])):
        lie = member("b.png", photo, stated=size) + member("c.png", photo) + END
        Path("in.tar").write_bytes(PACK[kind](member("a.png", photo) + lie))
        check_error("in.tar: (it is cut or damaged after b.png|2 problems)", apply)
        assert list(unpacked("out.tar")) == ["a.png", *names]


def test_a_damaged_header_ends_the_archive_and_is_told(photo, check_made):
    broken = bytearray(member("b.png", photo))
    broken[100] ^= 1
    rest = bytes(broken) + member("c.png", photo) + END
    check_made(member("a.png", photo) + rest, ["a.png"], "it is cut or damaged after a.png")
    Path("in.tar").write_bytes(rest)
    check_error("in.tar is no tar archive, or is damaged .bad checksum", apply)


@pytest.mark.parametrize("rest", [b"x" * 700, member("b.txt", b"b") + END])
def test_what_follows_the_end_of_an_archive_is_told(rest, photo, check_made):
    data = member("a.png", photo) + END + rest
    check_made(data, ["a.png"], "after a.png .another archive or other data follows")


@pytest.mark.parametrize("time", [b"inf", b"nan", b"-1e300", b"1e300"])
def test_a_time_beyond_bounds_is_no_problem(time, photo):
    Path("in.tar").write_bytes(pax((b"mtime", time)) + member("a.png", photo) + END)
    apply()
    assert list(unpacked("out.tar")) == ["a.png"]


def test_links_and_folders_are_kept_or_named(photo):
    """Check links to a painted picture whose name changes, to other files, and to missing ones."""
    data = member("d/", kind=tarfile.DIRTYPE) + member("d/a.bmp", photo) + member("b.txt", b"b")
    for kind, name, meant in (
        (tarfile.LNKTYPE, "e.bmp", "d/a.bmp"),
        (tarfile.SYMTYPE, "d/f.png", "a.bmp"),
        (tarfile.LNKTYPE, "g.txt", "b.txt"),
        (tarfile.SYMTYPE, "h.png", "later.png"),
        (tarfile.SYMTYPE, "i.txt", "../../etc/passwd"),
        (tarfile.LNKTYPE, "j.png", "b.txt"),
    ):
        data += member(name, kind=kind, linkname=meant)
    Path("in.tar").write_bytes(data + END)
    check_error("3 problems", apply)
    with tarfile.open("out.tar") as made:
        found = [(one.name, one.linkname) for one in made]
        assert made.extractfile("e.bmp.png").read() == made.extractfile("d/f.png").read()
    assert found[:2] == [("d", ""), ("d/a.bmp.png", "")]
    assert found[2:] == [
        ("b.txt", ""),
        ("e.bmp.png", "d/a.bmp.png"),
        ("d/f.png", "a.bmp.png"),
        ("g.txt", "b.txt"),
    ]


def test_devices_and_pipes_are_named(photo, check_made):
    kinds = (tarfile.CHRTYPE, tarfile.FIFOTYPE, b"Z")
    data = b"".join(member(f"{number}.png", kind=kind) for number, kind in enumerate(kinds))
    problems = [f"{number}.png is no file, folder or link" for number in range(3)]
    check_made(data + member("b.png", photo) + END, ["b.png"], *problems)


@pytest.mark.parametrize("name", ["../../x.png", "a/../../x.txt", "..\\x.png", ""])
def test_names_that_lead_out_are_refused(name, photo, check_made):
    data = member(name, photo) + member("/b.png", photo) + END
    check_made(data, ["b.png"], "is no name of a file below")


def test_two_members_of_one_new_name_are_told(photo, check_made):
    data = member("a.bmp", photo) + member("a.bmp.png", photo) + END
    check_made(data, ["a.bmp.png"], "a.bmp.png and another member would become a.bmp.png")


def test_a_damaged_archive_does_not_end_the_folder(photo, caplog):
    whole = member("a.png", photo) + member("b.txt", bytes(9999)) + END
    Path("in").mkdir()
    for number, data in enumerate(
        (b"", b"no archive", gzip.compress(whole)[:-30], whole[:3000], lzma.compress(whole)[:200])
    ):
        Path(f"in/{number}.tar").write_bytes(data)
    Path("in/9.tar").write_bytes(whole)
    check_error("5 of 6 files could not be painted", apply, input="in", output="out")
    assert list(unpacked("out/9.tar")) == ["a.png", "b.txt"]
    for number in range(5):
        assert f"in/{number}.tar" in caplog.text


def test_a_lack_of_memory_concerns_one_file(photo, caplog, monkeypatch):
    write_pictures("in/a.png", "in/b.png")
    Path("in/c.tar").write_bytes(member("a.png", photo) + member("b.png", photo) + END)
    real = images.read

    def scarce(path):
        if Path(path).name == "a.png":
            raise MemoryError
        return real(path)

    monkeypatch.setattr(images, "read", scarce)
    check_error("2 of 3 files could not be painted", apply, input="in", output="out")
    assert "there is not enough memory for in/a.png; choose a smaller size" in caplog.text
    assert "in/c.tar: there is not enough memory for a.png; choose" in caplog.text
    assert list(unpacked("out/c.tar")) == ["b.png"]


def test_nothing_kept_makes_no_archive():
    Path("in.tar").write_bytes(member("../a.png") + END)
    with pytest.raises(UserError, match="nothing could be painted or copied"):
        apply()
    assert not Path("out.tar").exists()
