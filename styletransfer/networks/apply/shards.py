"""Paints the pictures in tar archives: the shards of a data set in WebDataset's layout.

A shard holds the files of a sample one after the other, with equal names up to the first dot, such
as 0001.jpg and 0001.json. The painted shard has the same members in the same order, with pastiches
in place of the pictures.
"""

import logging
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO

from styletransfer.errors import UserError
from styletransfer.formats.folders import picture_extensions
from styletransfer.networks.apply.painter import Painter, as_written, paint_picture
from styletransfer.system.files import atomic
from styletransfer.system.signals import interruptible

logger = logging.getLogger(__name__)


def is_shard(path: Path) -> bool:
    """Return whether a path has the extension of a tar archive."""
    return path.suffix.lower() == ".tar"


def paint_shard(painter: Painter, source: Path, target: Path) -> None:
    """Paint the pictures of the shard `source`; write the shard `target`, once it is complete.

    A picture that cannot be painted is left out; UserError is raised after the shard is written.
    (UserError, and no shard, if `source` is no tar archive or is damaged.)
    """
    failed = count = 0
    with (
        atomic(target) as temporary,
        _opened(source) as given,
        TemporaryDirectory() as folder,
        tarfile.open(temporary, "w") as made,
    ):
        for member in filter(tarfile.TarInfo.isfile, given):
            path, data = PurePosixPath(member.name), given.extractfile(member)
            assert data is not None, "a file"
            if not _is_picture(path):
                _add(made, member, member.name, data)
                continue
            count += 1
            pastiche = Path(folder, "made", as_written(path.name))
            try:
                _paint_bytes(painter, data.read(), Path(folder, path.name), pastiche)
            except UserError as error:
                failed += 1
                logger.warning("%s: %s", source, str(error).replace(f"{folder}/", ""))
                continue
            with pastiche.open("rb") as file:
                member.size = pastiche.stat().st_size
                _add(made, member, str(path.with_name(pastiche.name)), file)
    if failed:
        raise UserError(f"{source}: {failed} of {count} pictures could not be painted")


def first_picture(shard: Path, folder: Path) -> Path:
    """Write a shard's first picture into a new folder; return its path (UserError if none)."""
    with _opened(shard) as given:
        for member in filter(tarfile.TarInfo.isfile, given):
            path, data = PurePosixPath(member.name), given.extractfile(member)
            if _is_picture(path) and data is not None:
                folder.mkdir()
                (folder / path.name).write_bytes(data.read())
                return folder / path.name
    raise UserError(f"{shard} holds no picture")


def _is_picture(path: PurePosixPath) -> bool:
    return not path.name.startswith(".") and path.suffix.lower() in picture_extensions()


def _paint_bytes(painter: Painter, data: bytes, path: Path, pastiche: Path) -> None:
    """Paint the picture whose file has the bytes `data`; write the result to `pastiche`.

    The bytes are written to the temporary file `path` first, which is deleted afterwards.
    """
    path.write_bytes(data)
    try:
        with interruptible():  # so that a signal need not wait for the whole shard
            paint_picture(painter, path, pastiche)
    finally:
        path.unlink()


def _add(made: tarfile.TarFile, member: tarfile.TarInfo, name: str, data: IO[bytes]) -> None:
    """Add a file to an archive, with `member`'s size, permissions and modification time."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = member.size, member.mode, int(member.mtime)
    made.addfile(info, data)


@contextmanager
def _opened(shard: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(shard) as given:
            yield given
    except tarfile.TarError as error:
        raise UserError(f"{shard} is no tar archive, or is damaged; get an intact copy") from error
