"""Reads bytes at any position of a file that may be compressed by gzip, bzip2 or xz, in blocks."""

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from styletransfer.system.devices import readable

CHUNK = 2**16  # most bytes that are read at once
BLOCK = 2**9  # most bytes that are unpacked at once: the size of a header in a tar archive
LZMA_MEMORY = 2**27  # most bytes for xz's dictionary; that of xz -9 has half of them


def _gunzipped(file: IO[bytes]) -> Iterator[bytes]:
    packed = gzip.GzipFile(fileobj=file)
    while block := packed.read1(io.DEFAULT_BUFFER_SIZE):
        yield block


def _decompressed(new: Callable[[], Any], file: IO[bytes]) -> Iterator[bytes]:
    """Yield what a decompressor, made by `new`, makes of all streams in a file, in blocks.

    A block is small, because the one in which damage is found is lost.
    """
    data = b""
    while True:
        while not data:  # zeros may stand between two streams
            if not (data := file.read(CHUNK)):
                return
            data = data.lstrip(b"\0")
        unpacker = new()
        while not unpacker.eof:
            if unpacker.needs_input and not data and not (data := file.read(CHUNK)):
                raise EOFError("compressed data is cut")
            yield unpacker.decompress(data, BLOCK)
            data = b""
        data = unpacker.unused_data.lstrip(b"\0")


# Pattern of a compressed file's first bytes -> what yields its unpacked bytes.
KINDS: dict[bytes, Callable[[IO[bytes]], Iterator[bytes]]] = {
    rb"\x1f\x8b\x08": _gunzipped,
    rb"BZh[1-9]1AY&SY": partial(_decompressed, bz2.BZ2Decompressor),
    rb"\xfd7zXZ\0": partial(_decompressed, partial(lzma.LZMADecompressor, memlimit=LZMA_MEMORY)),
}


class Unpacked:
    """An Unpacked reads a file, unpacked if it is compressed (OSError if it cannot be opened).

    Attributes:
        size: number of bytes of the file, before it is unpacked.
        damage: why the bytes end early, or "" if they do not, as far as they were read.
    """

    def __init__(self, path: Path, most: int) -> None:
        """Open `path`; once `most` bytes were unpacked, no more are."""
        self._file: IO[bytes] = path.open("rb")
        self.size, self.damage = os.fstat(self._file.fileno()).st_size, ""
        head = self._file.read(10)
        self._unpack = next((KINDS[mark] for mark in KINDS if re.match(mark, head)), None)
        self._most = self._left = most
        # The last unpacked bytes, their position, and the blocks behind them.
        self._buffer, self._start, self._blocks = b"", 0, self._unpacked()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, position: int, size: int) -> bytes:
        """Return `size` bytes at a position, or fewer at the end of the bytes."""
        if self._unpack is None:
            if position > self.size:
                return b""
            try:
                self._file.seek(position)
                return self._file.read(size)
            except OSError as error:
                self.damage = str(error)
                return b""
        if position < self._start:
            self._buffer, self._start, self._blocks = b"", 0, self._unpacked()
        while self._start + len(self._buffer) < position + size:
            if not (block := b"".join(islice(self._blocks, CHUNK // BLOCK))):
                break
            passed = min(position - self._start, len(self._buffer))
            self._buffer, self._start = self._buffer[passed:] + block, self._start + passed
        begin = position - self._start
        return self._buffer[begin : begin + size]

    def _unpacked(self) -> Iterator[bytes]:
        """Yield the unpacked bytes from the first on, in blocks; set `damage` if they end early."""
        assert self._unpack is not None, "a compressed file"
        self._file.seek(0)
        try:
            for block in self._unpack(self._file):
                self._left -= len(block)
                if self._left < 0:
                    self.damage = f"it unpacks to more than {readable(self._most)}"
                    return
                if block:  # a decompressor may need more data first
                    yield block
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            self.damage = str(error)
