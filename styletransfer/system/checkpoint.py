"""Checkpoint files: written atomically, verified before loading; the previous one is kept.

A file is MAGIC, the SHA-256 of the payload in hexadecimal, a line feed, and the payload, written by
`torch.save`. The hash detects damage, which torch does not (a flipped bit loads silently), and is
verified before the payload is parsed. Parsing executes no code (`weights_only=True`).
"""

import hashlib
import io
import logging
import os
import time
from pathlib import Path
from typing import Any

import torch

from styletransfer.errors import UserError
from styletransfer.system.files import atomic

logger = logging.getLogger(__name__)

KIND = b"styletransfer checkpoint "
# Version; increase it when stored values change meaning.
SCHEMA = 2
MAGIC = KIND + b"%d\n" % SCHEMA
HEADER = len(MAGIC) + 64 + 1
# Pause after a save, in multiples of its duration: saving takes at most 5 % of a run.
REST = 20


class Checkpoint:
    """A checkpoint file, and beside it the previous one, such as `checkpoint.previous.pt`.

    A save is due after `every` seconds; 0 means never.
    """

    def __init__(self, path: Path, every: float = 0.0) -> None:
        self.path, self.every = path, every
        self.previous = path.with_name(f"{path.stem}.previous{path.suffix}")
        self._next = time.monotonic() + every

    def exists(self) -> bool:
        """Tell whether a checkpoint, current or previous, exists."""
        return self.path.exists() or self.previous.exists()

    def is_due(self) -> bool:
        """Tell whether a save is due."""
        return self.every > 0 and self._next <= time.monotonic()

    def save(self, state: dict[str, Any]) -> None:
        """Write plain values and tensors; keep the previous checkpoint until the next save.

        If writing fails (UserError), the last checkpoint stays.
        """
        began = time.monotonic()
        try:
            with atomic(self.path) as temporary:
                _write(temporary, state)
                if self.path.exists():
                    self.path.replace(self.previous)
        finally:
            now = time.monotonic()
            self._next = now + max(self.every, REST * (now - began))

    def try_to_save(self, state: dict[str, Any]) -> None:
        """Save; after a failure, warn, and no more saves are due."""
        try:
            self.save(state)
        except UserError as error:
            self.every = 0.0
            logger.warning("%s; going on without checkpoints", error)

    def load(self) -> dict[str, Any]:
        """Return the saved state, tensors on the CPU; if it is damaged, the previous state.

        Raise UserError if neither file is a complete checkpoint of this version.
        """
        try:
            return _read(self.path)
        except UserError as error:
            try:
                state = _read(self.previous)
            except UserError:
                raise error from None
            if self.path.exists():
                logger.warning("%s; going on from the one before", error)
            return state

    def remove(self) -> None:
        """Remove both files, if they exist."""
        self.path.unlink(missing_ok=True)
        self.previous.unlink(missing_ok=True)


class _Payload(io.FileIO):
    """A checkpoint file with positions counted from the payload."""

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return super().seek(offset + (HEADER if whence == os.SEEK_SET else 0), whence) - HEADER

    def tell(self) -> int:
        return super().tell() - HEADER


def _write(path: Path, state: dict[str, Any]) -> None:
    with path.open("w+b") as file:
        file.write(bytes(HEADER))
        try:
            torch.save(state, file)
        except RuntimeError as error:  # torch raises this for an OSError, as of a full disk
            inner = error.__context__
            raise (inner if isinstance(inner, OSError) else error) from error
        file.seek(HEADER)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        file.write(MAGIC + digest.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            kind, schema, digest = file.read(len(KIND)), file.readline(20), file.read(65)[:64]
            actual = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise UserError(f"there is no checkpoint at {path}") from error
    except OSError as error:
        raise UserError(f"cannot read the checkpoint {path}: {error.strerror}") from error
    if kind != KIND:
        raise UserError(f"{path} is not a checkpoint of this program; move it away")
    if KIND + schema != MAGIC:
        raise UserError(
            f"{path} is a checkpoint of another version ({schema.decode(errors='replace').strip()}"
            f", not {SCHEMA}); go on with that version, or start afresh"
        )
    if actual.encode() != digest:
        raise UserError(
            f"{path} is damaged or was tampered with: its SHA-256 is not the one it was saved "
            "with; start afresh"
        )
    try:
        with _Payload(path) as payload:
            payload.seek(0)
            state = torch.load(payload, map_location="cpu", weights_only=True)
        if not isinstance(state, dict):
            raise TypeError(type(state))
    except Exception as error:  # torch's message would advise weights_only=False, which is unsafe
        raise UserError(f"{path} holds something else than a checkpoint; start afresh") from error
    return state
