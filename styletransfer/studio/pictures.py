"""Stores the studio's pictures and films, bundled and uploaded, and finds them by their ids."""

import asyncio
import json
import os
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

from styletransfer.errors import UserError
from styletransfer.films.formats import is_film
from styletransfer.settings import ASSETS
from styletransfer.studio.access import RefusedError
from styletransfer.studio.reader import Reader, copies_of, copy
from styletransfer.system.files import sha256, write_atomic

# LARGEST, LARGEST_FILM: largest size in bytes of an uploaded picture and of an uploaded film.
LARGEST, LARGEST_FILM = 64 * 2**20, 2**31
LONGEST_NAME = 120  # largest length of a picture's name in characters
# Folder of bundled pictures -> their kind.
BUNDLED = {"content": "content", "style": "style", "paintings": "style"}
bundled_sha256 = cache(sha256)  # cached, because bundled pictures do not change


@dataclass(frozen=True)
class ShelfPicture:
    """A ShelfPicture is a picture or a film that can be chosen on the page."""

    id: str  # made by the server
    name: str  # name on the page
    width: int  # in pixels
    height: int  # in pixels
    kind: str  # content, style (both come with the package) or upload
    path: str  # path of the file
    purpose: str = ""  # for an upload, the key of the control to which it was added
    frames: int = 0  # number of frames of a film, estimated; 0 if unknown
    origin: str = ""  # artist, title, year and technique of a bundled painting

    @property
    def shown(self) -> dict[str, Any]:
        """The plain values that the page receives: all fields except the path."""
        return {key: value for key, value in asdict(self).items() if key != "path"}


class PictureShelf:
    """A PictureShelf holds the bundled pictures and the uploads in `folder`, by their ids."""

    def __init__(self, folder: Path, reader: Reader) -> None:
        self._folder, self._reader = folder, reader
        self._pictures: dict[str, ShelfPicture] = {}
        self._ids: dict[str, str] = {}  # real path -> id
        for name, kind in BUNDLED.items():
            for path in sorted((ASSETS / name).glob("*.jpg")):
                with Image.open(path) as image:
                    size, comment = image.size, image.info.get("comment", b"")
                origin = comment.decode() if name == "paintings" else ""
                id, file = f"{kind}-{path.stem}", str(path)
                self._add(ShelfPicture(id, path.stem, *size, kind, file, origin=origin))
        for stale in self._folder.glob(f".{'[0-9a-f]' * 16}.upload*"):
            stale.unlink(missing_ok=True)
        # Add earlier uploads, the oldest first.
        for note in sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns):
            with suppress(OSError, ValueError, LookupError, TypeError, OverflowError):
                said = json.loads(note.read_text(encoding="utf-8"))
                path = self._folder / note.stem
                if path.is_file() and not path.is_symlink():
                    own: dict[str, Any] = {"kind": "upload", "path": str(path)}
                    own |= {key: int(said[key]) for key in ("width", "height")}
                    own |= {"name": str(said["name"]), "purpose": str(said.get("purpose", ""))}
                    own["frames"] = int(said.get("frames", 0))
                    self._add(ShelfPicture(note.stem, **own))

    def _add(self, picture: ShelfPicture) -> ShelfPicture:
        self._pictures[picture.id] = picture
        self._ids[os.path.realpath(picture.path)] = picture.id
        return picture

    @property
    def all(self) -> list[ShelfPicture]:
        """Every picture whose file exists, the bundled ones first."""
        return [kept for kept in list(self._pictures.values()) if os.path.isfile(kept.path)]

    def find(self, id: str) -> ShelfPicture:
        """Return the picture with this id (RefusedError: there is none)."""
        if id not in self._pictures:
            raise RefusedError("there is no such picture; choose another", 404)
        return self._pictures[id]

    def id_of(self, path: str) -> str | None:
        """Return the id of the picture at a path, or None if the path is unknown."""
        return self._ids.get(os.path.realpath(path))

    def size_of(self, path: str) -> tuple[int, int]:
        """Return width and height of the picture at a path (RefusedError: unknown or missing)."""
        picture = self.find(self.id_of(path) or "")
        if not os.path.isfile(path):
            raise RefusedError(f"{picture.name} is gone; choose another picture", 404)
        return picture.width, picture.height

    def with_hash(self, digest: str) -> str | None:
        """Return the id of the picture whose file has this SHA-256, or None."""
        is_hash = re.fullmatch("[0-9a-f]{64}", digest)
        for one in self.all if is_hash else []:  # an upload's id begins with half of its hash
            if digest[:32] == (one.id if one.kind == "upload" else bundled_sha256(one.path))[:32]:
                return one.id
        return None

    async def take(self, name: str, purpose: str, body: AsyncIterator[bytes]) -> ShelfPicture:
        """Store an upload in a file that is named by the hash of its bytes, `body`.

        `name` is the file's name on the user's machine, and `purpose` the key for which it was
        added, or "". (UserError: it cannot be stored, is too large, or is no picture or film.)
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        name = "".join(filter(str.isprintable, name))
        extension = Path(name).suffix.lower() if is_film(name) else ""
        temporary = self._folder / f".{secrets.token_hex(8)}.upload{extension}"
        try:
            size, most = 0, LARGEST_FILM if is_film(name) else LARGEST
            with temporary.open("wb") as file:
                async for piece in body:
                    size += len(piece)
                    if size > most:
                        said = f"the file has more than {most >> 20} MiB; shrink it"
                        raise RefusedError(said, 413)
                    file.write(piece)
            id = (await asyncio.to_thread(sha256, temporary))[:32] + extension
            if any(kept.id == id for kept in self.all):
                return self._pictures[id]
            return await self._put(id, temporary, name, purpose)
        except OSError as error:
            raise UserError(f"the picture cannot be kept: {error.strerror}") from error
        finally:
            temporary.unlink(missing_ok=True)

    async def _put(self, id: str, temporary: Path, name: str, purpose: str) -> ShelfPicture:
        name = os.path.basename(name.replace("\\", "/"))[-LONGEST_NAME:] or "picture"
        try:
            with temporary.open("rb") as file:
                head = file.read(16)
            is_text = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"#", b"<", b"ffconcat"))
            if is_film(name) and is_text:
                raise UserError(f"{name} is a playlist, which names other files, and no film")
            path = temporary.replace(self._folder / id)  # its name is in the JPEGs' names
            measured = await self._reader.ask(copy, path, first=True)
        except BaseException as error:
            for made in (self._folder / id, *copies_of(self._folder / id)):
                made.unlink(missing_ok=True)
            if isinstance(error, UserError):
                error.args = (str(error).replace(str(self._folder / id), name),)
            raise
        said = {"name": name, "purpose": purpose} | measured
        write_atomic(path.with_name(f"{id}.json"), json.dumps(said).encode())
        return self._add(ShelfPicture(id, kind="upload", path=str(path), **said))

    def remove(self, id: str) -> None:
        """Remove an upload (RefusedError: no upload has this id)."""
        picture = self.find(id)
        if picture.kind != "upload":
            raise RefusedError("that picture comes with the studio, and cannot be removed", 403)
        del self._pictures[id], self._ids[os.path.realpath(picture.path)]
        path = self._folder / id
        for made in (path, self._folder / f"{id}.json", *copies_of(path)):
            made.unlink(missing_ok=True)

    def named(self, message: str) -> str:
        """Return a message with the names of pictures in place of their paths and ids."""
        for picture in list(self._pictures.values()):
            message = message.replace(picture.path, picture.name).replace(picture.id, picture.name)
        return message
