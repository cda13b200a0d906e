"""Reads the members of tar archives that may come from anybody, also past damaged places.

Python's tarfile ends at the first damaged header, keeps headers of any size in memory, and unpacks
as much as a header states. Here the size of the archive's file bounds what is read. tarfile's
TarInfo parses a header. The format: POSIX, pax, and GNU tar's manual, "Basic Tar Format".
"""

import logging
import re
import tarfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any, Self

from styletransfer.errors import UserError
from styletransfer.networks.apply.unpack import BLOCK, CHUNK, Unpacked
from styletransfer.system.devices import readable

logger = logging.getLogger(__name__)

MAGIC, MAGIC_AT = re.compile(rb"ustar[\0 ]"), 257  # a header's mark, and where it stands
TRIAL = 2**12  # bytes that are charged for each mark that is found in a search
LONGEST = 2**20  # most bytes of an extended header, which holds long names
# Members and headers together may have FLOOR bytes and RATIO times the bytes of the archive's file,
# which only those of a compressed archive exceed. SKIPPED times as many may be passed over.
FLOOR, RATIO, SKIPPED = 2**26, 100, 20
EXTENDED = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
LONG = {tarfile.GNUTYPE_LONGNAME: "path", tarfile.GNUTYPE_LONGLINK: "linkpath"}
ABOUT_ALL = (tarfile.XGLTYPE, b"V")  # headers with defaults, and with a label, of the archive
FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
LINKS = (tarfile.LNKTYPE, tarfile.SYMTYPE)
SPECIAL = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
SPARSE = "is stored without its zeros (sparse); pack it without --sparse"


class Archive:
    """An Archive is a tar archive, open for reading; also one packed by gzip, bzip2 or xz.

    Attributes:
        is_tar: whether an intact header was found so far.
        problems: one text for each damaged place and each member that cannot be read; complete when
            `members` has ended. The reader of the members may add texts.

    Raises:
        UserError: the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.problems = path, list[str]()
        try:
            if not path.is_file():
                raise UserError(f"{path} is no file; name a .tar archive")
            self._left = self._most = FLOOR + RATIO * path.stat().st_size
            self._bytes = Unpacked(path, SKIPPED * self._most)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}; check the path") from error
        self.is_tar = False
        self._is_cut = False  # whether the archive ends within the last member

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._bytes.close()

    def members(self) -> Iterator[tarfile.TarInfo]:
        """Yield the files, links and folders in the archive.

        Where a header is damaged, the next intact one is searched. The search begins at the data of
        the member before, because its stated size may be wrong.
        """
        try:
            is_whole = yield from self._walk()
        except UserError as error:
            self.problems.append(str(error))
            return
        damage = self._bytes.damage and f" ({self._bytes.damage})"
        if not is_whole and not self._is_cut:
            self.problems.append(f"it is cut or damaged at its end{damage}; members may be missing")
        elif is_whole and damage and not self._is_cut:
            logger.warning("%s is damaged%s; members may be wrong or missing", self.path, damage)

    def copy(self, member: tarfile.TarInfo, file: IO[bytes]) -> None:
        """Write a member's data to a file in blocks (UserError if the archive ends before)."""
        for begin in range(0, member.size, CHUNK):
            size = min(CHUNK, member.size - begin)
            data = self._bytes.read(member.offset_data + begin, size)
            file.write(data)
            if len(data) < size:
                self._is_cut = True
                name = shown(member.name)
                raise UserError(f"{name} is cut, because the archive is cut or damaged there")

    def _walk(self) -> Generator[tarfile.TarInfo, None, bool]:
        """Yield the members; return whether the archive ends with its mark, a block of zeros."""
        at = back = 0  # the next header, and where it is searched if it is not there
        is_whole, stated = False, dict[str, Any]()
        while True:
            block = self._bytes.read(at, BLOCK)
            if len(block) < BLOCK:
                if at == back or self._bytes.read(at - 1, 1):
                    return is_whole
                at = back = self._search(back)  # the last member's size may be wrong
                continue
            if not any(block):
                chunk = self._bytes.read(at, CHUNK)
                at += (len(chunk) - len(chunk.lstrip(b"\0"))) // BLOCK * BLOCK
                back, is_whole = at, True
                continue
            self._charge(BLOCK)
            header = _parsed(block)
            if header is None:
                back = self._search(back, at)
                is_last = len(self._bytes.read(back, BLOCK)) < BLOCK
                self._tell_damage(at, block, is_whole and is_last)
                # Where no other header follows, the archive may still have its end mark.
                at = back = back if any(self._bytes.read(back - 1, BLOCK)) else back - 1
                stated = {}
                continue
            is_whole, self._is_cut, self.is_tar = False, False, True
            back = at = header.offset_data = at + BLOCK
            if header.type in (*EXTENDED, *LONG):
                self._read_extended(header, stated)
            elif header.type not in ABOUT_ALL:
                self._complete(header, stated)
                if self._is_readable(header, stated):
                    yield header
                at, stated = header.offset_data, {}
            at += -(-header.size // BLOCK) * BLOCK

    def _search(self, at: int, known: int = -1) -> int:
        """Return the position of the next intact header, or that of the archive's end.

        It may be anywhere, because bytes may be missing before it. Damaged headers are problems,
        except the one at the position `known`.
        """
        while len(chunk := self._bytes.read(at, CHUNK)) >= BLOCK:
            for found in MAGIC.finditer(chunk, MAGIC_AT, len(chunk) - BLOCK + MAGIC_AT + 6):
                self._charge(TRIAL)
                begin = found.start() - MAGIC_AT
                block = chunk[begin : begin + BLOCK]
                if _parsed(block) is not None:
                    return at + begin
                if at + begin != known:
                    self._tell_damage(at + begin, block)
            at += len(chunk) - BLOCK + 1
        return at

    def _charge(self, count: int) -> None:
        """Take `count` bytes from those that may still be read (UserError if they are too many)."""
        if count > self._left:
            raise UserError(f"it unpacks to more than {readable(self._most)}; the rest is left out")
        self._left -= count

    def _tell_damage(self, at: int, block: bytes, is_behind: bool = False) -> None:
        """Add a problem: a header is damaged. A warning is enough if it is behind the archive."""
        if is_behind:
            logger.warning("%s goes on after its end with other data, from byte %d", self.path, at)
        elif at:
            name = shown(block[:100].partition(b"\0")[0].decode("ascii", "replace"))
            self.problems.append(f"the header of {name!r}, at byte {at}, is damaged")
        else:
            self.problems.append("it begins with no header")

    def _read_extended(self, header: tarfile.TarInfo, stated: dict[str, Any]) -> None:
        """Read what a header states about the next member, in up to LONGEST bytes."""
        if header.size > LONGEST:
            stated["problem"] = f"has a name or header of more than {readable(LONGEST)}"
            return
        self._charge(header.size)
        data = self._bytes.read(header.offset_data, header.size)
        if header.type in LONG:
            stated[LONG[header.type]] = data.partition(b"\0")[0]
            return
        try:
            records = dict[str, Any](_records(data))
            if "size" in records:
                records["size"] = _size(records["size"])
            stated.update(records)
        except ValueError:
            stated["problem"] = "has a damaged extended header"

    def _complete(self, header: tarfile.TarInfo, stated: dict[str, Any]) -> None:
        """Change a member's header to what the extended headers before it have stated."""
        name = stated.get("GNU.sparse.name", stated.get("path"))
        header.name = _text(name, header.name)
        header.linkname = _text(stated.get("linkpath"), header.linkname)
        if header.isdir():
            header.name = header.name.rstrip("/") or "."
        header.size = stated.get("size", header.size)
        if header.type in (*LINKS, *SPECIAL) or header.isdir():
            header.size = 0  # what some programs state here is the size of the file meant
        if header.type == tarfile.GNUTYPE_SPARSE:
            stated["problem"], flag = SPARSE, 482  # where a header says that another follows
            at = header.offset_data - BLOCK
            while self._bytes.read(at + flag, 1) not in (b"", b"\0"):
                self._charge(BLOCK)
                at, flag = at + BLOCK, 504
            header.offset_data = at + BLOCK
        elif any(key.startswith("GNU.sparse.") for key in stated):
            stated["problem"] = SPARSE

    def _is_readable(self, member: tarfile.TarInfo, stated: dict[str, Any]) -> bool:
        """Return whether a member can be read; otherwise add the problem."""
        problem = stated.get("problem")
        if not problem and member.type not in (*FILES, *LINKS) and not member.isdir():
            problem = "is no file, folder or link"
        if not problem and member.size > self._left:
            most = f"an archive of {self._bytes.size} bytes"
            problem = f"states {member.size} bytes, too many for {most}; unpack it, or leave it out"
        if problem:
            self.problems.append(f"{shown(member.name)} {problem}")
        else:
            self._charge(member.size)
        return not problem


def shown(name: str) -> str:
    """Return a member's name for a message: printable, and at most 80 characters."""
    short = name if len(name) <= 80 else f"{name[:38]}...{name[-38:]}"
    return "".join(char if char.isprintable() else "?" for char in short)


def _parsed(block: bytes) -> tarfile.TarInfo | None:
    """Return a header's TarInfo, or None if the block is no intact header."""
    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError):
        return None
    return info if info.size >= 0 else None


def _records(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield (key, value) of a pax header's records, each "LENGTH KEY=VALUE" and a line feed.

    (ValueError if there is another text.)
    """
    at = 0
    while at < len(data):
        digits = data[at : at + 8].partition(b" ")[0]
        end = at + _size(digits)
        key, is_there, value = data[at + len(digits) + 1 : end - 1].partition(b"=")
        if not is_there or data[end - 1 : end] != b"\n":
            raise ValueError("no record of a pax header")
        yield key.decode(errors="replace"), value
        at = end


def _size(digits: bytes) -> int:
    """Return a decimal number of at most 20 digits (ValueError if it is none)."""
    if not digits.isdigit() or len(digits) > 20:
        raise ValueError("no size")
    return int(digits)


def _text(stated: bytes | None, otherwise: str) -> str:
    return otherwise if stated is None else stated.decode("utf-8", "surrogateescape")
