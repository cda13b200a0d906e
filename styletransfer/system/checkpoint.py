"""Checkpoints: written whole or not at all, verified before they are read, the last one kept.

A file is MAGIC, the SHA-256 of the rest in hexadecimal, a line feed, and what `torch.save` writes.
The hash guards against damage, which torch does not notice (a flipped bit loads silently), and is
verified before anything is parsed; parsing itself executes nothing (`weights_only=True`).
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
# Raise it when what is stored changes its meaning.
SCHEMA = 2
MAGIC = KIND + b"%d\n" % SCHEMA
HEADER = len(MAGIC) + 64 + 1
# A save that took t seconds is followed by at least this many times t without one.
REST = 20


class Checkpoint:
    """A checkpoint file, and beside it the one before, with "previous" before its extension.

    Saves are due `every` so many seconds; 0 for never.
    """

    def __init__(self, path: Path, every: float = 0.0) -> None:
        self.path, self.every = path, every
        self.previous = path.with_name(f"{path.stem}.previous{path.suffix}")
        self._next = time.monotonic() + every

    def exists(self) -> bool:
        """Tell whether there is something to load."""
        return self.path.exists() or self.previous.exists()

    def is_due(self) -> bool:
        """Tell whether it is time for a save."""
        return self.every > 0 and self._next <= time.monotonic()

    def save(self, state: dict[str, Any]) -> None:
        """Write plain values and tensors; the checkpoint before is kept until the next save.

        Where that fails (UserError), what was there stays.
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
        """Save; if that fails, say so, once, and save no more."""
        try:
            self.save(state)
        except UserError as error:
            self.every = 0.0
            logger.warning("%s; going on without checkpoints", error)

    def load(self) -> dict[str, Any]:
        """Return what was saved, tensors on the CPU; if that is damaged, what was before it.

        UserError if there is nothing, or neither file is a whole checkpoint of this version.
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
        """Remove both files, if they are there."""
        self.path.unlink(missing_ok=True)
        self.previous.unlink(missing_ok=True)


class _Payload(io.FileIO):
    """A checkpoint file as torch is to see it: without the header."""

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return super().seek(offset + (HEADER if whence == os.SEEK_SET else 0), whence) - HEADER

    def tell(self) -> int:
        return super().tell() - HEADER


def _write(path: Path, state: dict[str, Any]) -> None:
    with path.open("w+b") as file:
        file.write(bytes(HEADER))
        try:
            torch.save(state, file)
        except RuntimeError as error:  # torch's own, in the place of a full disk's
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
    except Exception as error:  # torch's own advice would be to execute what is in the file
        raise UserError(f"{path} holds something else than a checkpoint; start afresh") from error
    return state
