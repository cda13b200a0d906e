"""Reads untrusted tar archives, member by member, in blocks of bytes.

Python's tarfile parses the headers. This file limits how many bytes are read and unpacked.
"""

import bz2
import gzip
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Self

from styletransfer.errors import UserError
from styletransfer.system.devices import readable

BLOCK, CHUNK = 2**9, 2**16  # largest number of bytes unpacked at once, and of bytes copied at once
LONGEST = 2**20  # largest size in bytes of a member's headers, which hold its name
LZMA_MEMORY = 2**27  # most bytes of memory for unpacking xz; a file of `xz -9` needs about half
# All headers, and the members that are read, may have FLOOR + RATIO * (size of the archive's file)
# bytes together. Only a compressed archive can have more. With the members that are skipped, at
# most SKIPPED times this number of bytes is unpacked.
FLOOR, RATIO, SKIPPED = 2**26, 100, 20
# A header with 300 digits in a row is refused. Before Python 3.12.6, the time that tarfile takes to
# read digits in a row is quadratic in their number.
DIGITS = re.compile(rb"[0-9]{300}")  # longer than the name of any file
DAMAGE = (tarfile.TarError, ArithmeticError, LookupError, RecursionError, ValueError)


class Archive:
    """An Archive reads a tar archive, which may be compressed by gzip, bzip2 or xz.

    Attributes:
        problems: one text for each member that cannot be read, and one text if the archive is cut
            or damaged, where reading ends. The list is complete when `members` has ended. Whoever
            reads the members may add texts.

    Raises:
        UserError: the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.problems = path, list[str]()
        try:
            if not path.is_file():
                raise UserError(f"{path} is no file; name a .tar archive")
            self._most = FLOOR + RATIO * path.stat().st_size
            self._file = path.open("rb")
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}; check the path") from error
        self._blocks, self._buffer, self._at = _unpacked(self._file), bytearray(), 0
        self._block, self._left = b"", LONGEST  # last block tarfile read; bytes it may still read
        self._damage = ""  # why the bytes end too early, or ""
        self._is_cut = False  # whether `copy` has reported that the archive ends in a member

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def members(self) -> Iterator[tarfile.TarInfo]:
        """Yield the files, links and folders in the archive (UserError if it is no archive)."""
        last, left = None, self._most
        try:
            tar = tarfile.TarFile(fileobj=self, encoding="utf-8")  # type: ignore[arg-type]
            while (member := tar.next()) is not None:
                size = member.size if member.isreg() else 0
                left -= member.offset_data - member.offset
                if size < 0 or left < 0:
                    raise tarfile.HeaderError(f"a wrong size, or above {readable(self._most)}")
                last = shown(member.name)
                if problem := _problem(member, size > left):
                    self.problems.append(f"{last} {problem}")
                else:
                    left -= size
                    yield member
                # Otherwise tarfile would keep all members, and apply their headers to later ones.
                tar.members, tar.pax_headers = [], {}  # type: ignore[attr-defined]
                self._left = LONGEST
            is_whole, reason = self._is_whole(), self._damage
        except DAMAGE as error:
            is_whole, reason = False, self._damage or str(error)
        detail = f" ({reason})" if reason else ""
        if not is_whole and last is None:
            problem = f"is no tar archive, or is damaged{detail}"
            raise UserError(f"{self.path} {problem}; get an intact copy")
        if not is_whole and not self._is_cut:
            self.problems.append(f"it is cut or damaged after {last}{detail}")

    def copy(self, member: tarfile.TarInfo, file: IO[bytes]) -> None:
        """Write a member's data to a file in blocks (UserError if the archive ends too early)."""
        self.seek(member.offset_data)
        end = member.offset_data + member.size
        while data := self._next(min(end - self._at, CHUNK)):
            file.write(data)
        if self._at < end:
            self._is_cut = True
            name = shown(member.name)
            raise UserError(f"{name} is cut, because the archive is cut or damaged there")

    def tell(self) -> int:
        """Return the position of the next byte, for tarfile."""
        return self._at

    def seek(self, position: int) -> None:
        """Skip bytes up to `position`, or up to the end of the archive."""
        while self._next(min(position - self._at, CHUNK)):
            pass

    def read(self, size: int) -> bytes:
        """Return bytes to tarfile (HeaderError if one member's headers have too many bytes)."""
        self._left -= size
        if size < 0 or self._left < 0:
            raise tarfile.HeaderError(f"a name or header of more than {readable(LONGEST)}")
        self._block = self._next(size)
        if DIGITS.search(self._block):
            raise tarfile.HeaderError("a name or header of many digits")
        return self._block

    def _next(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer at the end, and none if `size` is negative."""
        size = max(size, 0)
        try:
            while len(self._buffer) < size and self._at < SKIPPED * self._most:
                self._buffer += next(self._blocks)
        except StopIteration:
            pass
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            self._damage = str(error)
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._at += len(data)
        return data

    def _is_whole(self) -> bool:
        """Return whether the archive ends as it should: with a block of zeros, then only zeros."""
        if len(self._block) < tarfile.BLOCKSIZE or any(self._block):
            return False
        while data := self._next(CHUNK):
            if any(data):
                self._damage = "another archive or other data follows"
                return False
        return not self._damage


def shown(name: str) -> str:
    """Return a member's name for a message: printable, and at most 80 characters."""
    short = name if len(name) <= 80 else f"{name[:38]}...{name[-38:]}"
    return "".join(char if char.isprintable() else "?" for char in short)


def _problem(member: tarfile.TarInfo, is_large: bool) -> str:
    """Return why a member cannot be read, or ""."""
    if member.issparse() or any(key.startswith("GNU.sparse") for key in member.pax_headers):
        return "is stored without its zeros (sparse); pack it without --sparse"
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        return "is no file, folder or link"
    if is_large:
        return f"states {member.size} bytes, too many for this archive; unpack it, or leave it out"
    return ""


def _unpacked(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks, unpacked if it is packed by gzip, bzip2 or xz."""
    head = file.read(10)
    file.seek(0)
    if head.startswith(b"\xfd7zXZ\0"):
        yield from _unpacked_xz(file)
    elif head.startswith(b"\x1f\x8b\x08"):
        yield from iter(partial(gzip.GzipFile(fileobj=file).read, BLOCK), b"")
    elif re.match(rb"BZh[1-9]1AY&SY", head):
        yield from iter(partial(bz2.BZ2File(file).read, BLOCK), b"")
    else:
        yield from iter(partial(file.read, CHUNK), b"")


def _unpacked_xz(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the unpacked bytes of an .xz file. Unlike lzma.LZMAFile, this limits the memory."""
    packed = file.read(CHUNK)
    while packed:
        unpacker = lzma.LZMADecompressor(memlimit=LZMA_MEMORY)
        while not unpacker.eof:
            yield unpacker.decompress(packed, BLOCK)
            packed = b""
            if unpacker.needs_input and not (packed := file.read(CHUNK)):
                raise EOFError("compressed data is cut")
        packed = (unpacker.unused_data or file.read(CHUNK)).lstrip(b"\0")
