"""Paints the pictures in tar archives: the shards of a data set in WebDataset's layout.

A shard holds the files of a sample one after the other, with equal names up to the first dot, such
as 0001.jpg and 0001.json. The painted shard has the same members in the same order, with pastiches
in place of the pictures.
"""

import logging
import os
import re
import tarfile
from pathlib import Path
from posixpath import dirname, join, normpath
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from styletransfer.errors import UserError
from styletransfer.formats.folders import picture_extensions
from styletransfer.formats.stored import MAX_PIXELS
from styletransfer.networks.apply.archive import Archive, shown
from styletransfer.networks.apply.painter import Painter, as_written, paint_file
from styletransfer.system.files import atomic
from styletransfer.system.signals import interruptible

logger = logging.getLogger(__name__)

LARGEST = 16 * MAX_PIXELS  # largest picture in bytes: MAX_PIXELS pixels of four 32-bit samples
LATEST = 8**11 - 1  # latest modification time, in seconds, that a tar header can hold


def is_shard(path: Path) -> bool:
    """Return whether a path has the extension of a tar archive."""
    return path.suffix.lower() == ".tar"


def paint_shard(painter: Painter, source: Path, target: Path) -> None:
    """Paint the pictures of the shard `source`; write the shard `target`, once it is complete.

    A member that cannot be painted or copied is left out; a UserError that names it is raised after
    the shard is written. If there are several, warnings name them. (UserError, and no shard, if
    nothing could be painted or copied.)
    """
    with (
        atomic(target) as temporary,
        Archive(source) as archive,
        TemporaryDirectory(prefix="styletransfer-") as folder,
        tarfile.open(temporary, "w") as made,
        interruptible(),  # a shard takes long, so a signal stops it at once
    ):
        shard = Shard(painter, archive, made, Path(folder))
        for member in archive.members():
            try:
                shard.add(member)
            except UserError as error:
                archive.problems.append(str(error))
        problems = archive.problems
        if problems[1:]:
            for problem in problems:
                logger.warning("%s: %s", source, problem)
            problems = [f"{len(problems)} problems, see above"]
        if problems and not shard.kept:
            raise UserError(f"{source}: {problems[0]}; nothing could be painted or copied")
    if not shard.pictures:
        logger.warning("%s holds no picture", source)
    if problems:
        rest = f"the rest is in {target}; to paint that again, remove it"
        raise UserError(f"{source}: {problems[0]}; {rest}")


class Shard:
    """A Shard paints and copies the members of an archive into a new one.

    Attributes:
        kept: path of a member of the new archive -> path of the member that it is made of.
        pictures: number of painted pictures.
    """

    def __init__(
        self, painter: Painter, archive: Archive, made: tarfile.TarFile, folder: Path
    ) -> None:
        """Write to `made`, with temporary files in `folder`."""
        self._painter, self._archive, self._made, self._folder = painter, archive, made, folder
        self.kept, self.pictures = dict[str, str](), 0

    def add(self, member: tarfile.TarInfo) -> None:
        """Add a member; paint it if it is a picture (UserError if painting or copying failed)."""
        name = _plain(member.name)
        info = tarfile.TarInfo(name if member.isdir() else _written(name))
        path, source = normpath(info.name), normpath(name)
        if self.kept.get(path, source) != source:
            raise UserError(f"{shown(name)} and another member would become {shown(info.name)}")
        info.type, info.mode = member.type, member.mode & 0o7777
        info.mtime = int(min(max(0, member.mtime), LATEST))  # a header may state inf or nan
        if member.isreg():
            info.type = tarfile.REGTYPE
            (self._paint if _is_picture(name) else self._copy)(member, info)
        else:
            if not member.isdir():
                info.linkname = self._link(member, name)
            self._made.addfile(info)
        self.kept[path] = source

    def _paint(self, member: tarfile.TarInfo, info: tarfile.TarInfo) -> None:
        if member.size > LARGEST:
            raise UserError(f"{shown(member.name)} has {member.size} bytes, too many for a picture")
        path = self._folder / _file_name(member.name)
        pastiche = self._folder / "made" / as_written(path.name)
        try:
            with path.open("wb") as file:
                self._archive.copy(member, file)
            paint_file(self._painter, path, pastiche)
            with pastiche.open("rb") as painted:
                self._add(info, painted)
        except UserError as error:
            raise UserError(str(error).replace(str(path), shown(member.name))) from error
        finally:
            path.unlink(missing_ok=True)
            pastiche.unlink(missing_ok=True)
        self.pictures += 1

    def _copy(self, member: tarfile.TarInfo, info: tarfile.TarInfo) -> None:
        # The data is copied first, so that a member that is cut off fails before its header.
        with TemporaryFile(dir=Path(str(self._made.name)).parent) as file:
            self._archive.copy(member, file)
            self._add(info, file)

    def _add(self, info: tarfile.TarInfo, file: IO[bytes]) -> None:
        info.size = file.seek(0, os.SEEK_END)
        file.seek(0)
        self._made.addfile(info, file)

    def _link(self, member: tarfile.TarInfo, name: str) -> str:
        """Return the target of a link in the new archive (UserError if it is not there yet)."""
        beside = dirname(name) if member.issym() else ""
        meant = normpath(join(beside, member.linkname.lstrip("/")))
        is_kept = self.kept.get(normpath(_written(meant))) == meant
        if not is_kept or _is_picture(name) != _is_picture(meant):
            problem = f"is a link to {shown(member.linkname)}, which is not kept before it"
            raise UserError(f"{shown(name)} {problem}; put the file in its place")
        return _written(member.linkname.lstrip("/"))


def first_pair(shard: Path, painted: Path, folder: Path) -> tuple[Path, Path]:
    """Write the first pastiche of `painted` and its photograph, from `shard`, into a folder.

    Return the paths of the photograph and the pastiche. (UserError if one is missing.)
    """
    pastiche, name = _picture(painted, folder / "pastiche")
    return _picture(shard, folder / "photo", name)[0], pastiche


def _picture(shard: Path, folder: Path, wanted: str | None = None) -> tuple[Path, str]:
    """Write a shard's first picture, or the first one whose pastiche has the name `wanted`.

    Return its path in the new `folder` and its name in the shard.
    """
    folder.mkdir()
    with Archive(shard) as given:
        for member in given.members():
            is_picture = member.isreg() and member.size <= LARGEST and _is_picture(member.name)
            if is_picture and wanted in (None, _written(member.name.lstrip("/"))):
                path = folder / _file_name(member.name)
                with path.open("wb") as file:
                    given.copy(member, file)
                return path, member.name
    raise UserError(f"{shard} holds no picture")


def _is_picture(name: str) -> bool:
    path = Path(name)
    return not path.name.startswith(".") and path.suffix.lower() in picture_extensions()


def _file_name(name: str) -> str:
    """Return the name of a temporary file for a picture: the last part of its path, if short."""
    path = Path(name)
    is_long = len(os.fsencode(path.name)) > 200  # the limit is 255 bytes, and some are added
    return f"picture{path.suffix}" if is_long else path.name


def _written(name: str) -> str:
    """Return a member's name in the painted shard."""
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{as_written(last)}" if _is_picture(name) else name


def _plain(name: str) -> str:
    """Return a member's name without leading slashes (UserError if it is unsafe, as ../x is)."""
    plain = name.lstrip("/")
    if not plain or "\0" in plain or ".." in re.split(r"[/\\]", plain):
        raise UserError(f"{shown(name)!r} is no name of a file below the archive's folder")
    return plain
