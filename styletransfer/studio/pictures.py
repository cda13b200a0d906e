"""Pictures by their ids: those that come with the package, and those that were uploaded."""

import hashlib
import json
import os
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from styletransfer.config import ASSETS
from styletransfer.errors import UserError
from styletransfer.studio.answers import Answers
from styletransfer.studio.refusal import RefusedError
from styletransfer.system.files import atomic

# Of one upload, in bytes; of all together; how many there may be, and how many at a time.
LARGEST, TOTAL, MOST, AT_ONCE = 64 * 2**20, 4 * 2**30, 1000, 4
# Of a name that a person gave, in characters.
LONGEST_NAME = 120
# Longer sides in pixels in which pictures are shown, and the bytes of them that are kept.
SIDES, KEPT = (160, 320, 640, 1024, 1600, 2048), 64 * 2**20


@dataclass(frozen=True)
class Entry:
    """A picture that can be chosen.

    Attributes:
        id: made by the server.
        name: for people.
        width: in pixels.
        height: in pixels.
        kind: content, style or upload.
        path: of the file.
    """

    id: str
    name: str
    width: int
    height: int
    kind: str
    path: str

    @property
    def shown(self) -> dict[str, Any]:
        """What the page is told of it."""
        return {key: value for key, value in asdict(self).items() if key != "path"}


class Pictures:
    """The pictures of a studio.

    Args:
        folder: of the uploads, made when the first one comes.
        answers: looks into the files.
    """

    def __init__(self, folder: Path, answers: Answers) -> None:
        self._folder, self._answers = folder, answers
        self._entries: dict[str, Entry] = {}
        self._ids: dict[str, str] = {}
        self._small: OrderedDict[tuple[str, int, int], bytes] = OrderedDict()
        self._coming = 0

        self._find()

    def _find(self) -> None:
        """Find the bundled pictures, and what was uploaded before."""
        for kind in ("content", "style"):
            for path in sorted((ASSETS / kind).glob("*.jpg")):
                with Image.open(path) as image:
                    size = image.size
                self._add(Entry(f"{kind}-{path.stem}", path.stem, *size, kind, str(path)))
        if not self._folder.is_dir():
            return
        for stale in self._folder.glob(".*.upload"):
            stale.unlink(missing_ok=True)
        for note in sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns):
            with suppress(OSError, ValueError, KeyError, TypeError):
                said = json.loads(note.read_text(encoding="utf-8"))
                path = self._folder / note.stem
                if path.is_file():
                    size = int(said["width"]), int(said["height"])
                    self._add(Entry(note.stem, str(said["name"]), *size, "upload", str(path)))

    @property
    def all(self) -> list[Entry]:
        """Every picture, the bundled ones first."""
        return list(self._entries.values())

    def find(self, id: str) -> Entry:
        """Return a picture.

        Raises:
            RefusedError: there is none of that id.
        """
        if id not in self._entries:
            raise RefusedError("there is no such picture; choose another", 404)
        return self._entries[id]

    def id_of(self, path: str) -> str | None:
        """Return the id of a picture by its path, None if it is none of ours."""
        return self._ids.get(os.path.realpath(path))

    async def take(self, name: str, body: AsyncIterator[bytes]) -> Entry:
        """Keep an upload, under a name that its bytes make.

        Args:
            name: that a person gave it.
            body: its bytes, in pieces.

        Raises:
            UserError: it is no picture that can be read, in the words of the command line.
            RefusedError: it is too large, or there are too many.
        """
        if self._coming >= AT_ONCE:
            raise RefusedError("other pictures are being uploaded; try again in a moment", 429)
        self._coming += 1
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = self._folder / f".{secrets.token_hex(8)}.upload"
        try:
            id = await self._receive(temporary, body)
            if id in self._entries:
                return self._entries[id]
            return await self._keep(id, temporary, "".join(filter(str.isprintable, name)))
        except OSError as error:
            raise UserError(f"the picture cannot be kept: {error.strerror}") from error
        finally:
            self._coming -= 1
            temporary.unlink(missing_ok=True)

    async def _receive(self, temporary: Path, body: AsyncIterator[bytes]) -> str:
        """Write an upload to a file and return its id."""
        found, size = hashlib.sha256(), 0
        free = TOTAL - sum(os.path.getsize(entry.path) for entry in self._uploads())
        if len(self._uploads()) >= MOST or free <= 0:
            raise RefusedError(
                f"the studio is full of pictures; remove some from {self._folder}", 507
            )
        with temporary.open("wb") as file:
            async for piece in body:
                size += len(piece)
                if size > min(LARGEST, free):
                    raise RefusedError(
                        f"the picture has more than {LARGEST >> 20} MiB; shrink it", 413
                    )
                found.update(piece)
                file.write(piece)
        return found.hexdigest()[:32]

    async def _keep(self, id: str, temporary: Path, name: str) -> Entry:
        """Look into an upload and give it its place."""
        name = os.path.basename(name.replace("\\", "/"))[-LONGEST_NAME:] or "picture"
        try:
            width, height = await self._answers.ask("measure", str(temporary))
        except UserError as error:
            raise UserError(str(error).replace(str(temporary), name)) from error
        path = self._folder / id
        temporary.replace(path)
        entry = Entry(id, name, width, height, "upload", str(path))
        with atomic(path.with_name(f"{id}.json")) as note:
            said = {"name": name, "width": width, "height": height}
            note.write_text(json.dumps(said), encoding="utf-8")
        self._add(entry)
        return entry

    async def small(self, path: str, side: int) -> bytes:
        """Return a JPEG of a picture file no longer than `side` pixels.

        Raises:
            UserError: it cannot be read.
        """
        side = max((one for one in SIDES if one <= side), default=SIDES[0])
        try:
            key = (path, os.stat(path).st_mtime_ns, side)
        except OSError as error:
            raise RefusedError("the picture is gone", 404) from error
        if key not in self._small:
            self._small[key] = await self._answers.ask("small", path, side)
        self._small.move_to_end(key)
        while sum(map(len, self._small.values())) > KEPT:
            self._small.popitem(last=False)
        return self._small[key]

    def _uploads(self) -> list[Entry]:
        return [entry for entry in self._entries.values() if entry.kind == "upload"]

    def _add(self, entry: Entry) -> None:
        self._entries[entry.id] = entry
        self._ids[os.path.realpath(entry.path)] = entry.id
