"""Checkpoint files, which are written atomically and verified before they are loaded.

A file is the ZIP archive that `torch.save` writes. Its checksums detect damage, which `torch.load`
does not (a flipped bit loads silently). Loading executes no code (`weights_only=True`).
"""

import logging
import math
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from styletransfer.errors import UserError
from styletransfer.system.devices import is_out_of_memory
from styletransfer.system.files import atomic

logger = logging.getLogger(__name__)

# Version of the file format; increase it when stored values change meaning.
SCHEMA = 8
# After a save, the next one waits at least REST times as long as this save took, so that saves take
# at most 5 % of a run.
REST = 20


@contextmanager
def refused(problem: str) -> Iterator[None]:
    """Turn errors that a malformed state causes in the `with` block into a UserError `problem`."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise UserError(problem) from error
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        raise UserError(problem) from error


def check_like(value: Any, *likes: Any) -> None:
    """Raise ValueError unless a loaded value has the form of one of `likes`.

    Tensors must have the same shape, dtype and layout, and need no gradient. Mappings must have the
    same keys, and lists the same length; the values in them are compared in the same way. If the
    entry in `likes` is a number, the value must be a finite number; if it is inf, any number. Other
    values, such as a text or None, must have the type of the entry.
    """
    if not any(_is_like(value, like) for like in likes):
        raise ValueError("a value of another form")


def natural(value: Any, least: int = 0, most: float = math.inf) -> int:
    """Return a loaded value; raise ValueError unless it is an int from `least` to `most`."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError("not a whole number in its range")
    return value


def _is_like(value: Any, like: Any) -> bool:
    if isinstance(like, torch.Tensor):
        if not isinstance(value, torch.Tensor) or value.is_meta or value.requires_grad:
            return False
        form = value.shape, value.dtype, value.layout
        return form == (like.shape, like.dtype, like.layout)
    if isinstance(like, dict):
        is_dict = isinstance(value, dict) and value.keys() == like.keys()
        return is_dict and all(_is_like(value[key], like[key]) for key in like)
    if isinstance(like, list | tuple):
        is_list = isinstance(value, list | tuple) and len(value) == len(like)
        return is_list and all(map(_is_like, value, like))
    if isinstance(like, int | float) and not isinstance(like, bool):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and (math.isfinite(value) or like == math.inf)
    return type(value) is type(like)


class Checkpoint:
    """A checkpoint is a file with a run's state; a save is due `every` seconds after the last one.

    With `every` 0, no save is due.
    """

    def __init__(self, path: Path, every: float = 0.0) -> None:
        self.path, self.every = path, every
        self._next = time.monotonic() + every

    def exists(self) -> bool:
        """Tell whether there is a checkpoint."""
        return self.path.exists()

    def is_due(self) -> bool:
        """Tell whether it is time to save."""
        return self.every > 0 and self._next <= time.monotonic()

    def save(self, state: dict[str, Any]) -> None:
        """Write a state of plain values and tensors; on failure (UserError), the old file stays."""
        began = time.monotonic()
        try:
            with atomic(self.path) as temporary, temporary.open("wb") as file:
                torch.save({"schema": SCHEMA, "state": state}, file)
        except RuntimeError as error:  # torch raises this for an OSError, such as a full disk
            reason = getattr(error.__context__, "strerror", None) or "writing failed"
            raise UserError(f"cannot write {self.path}: {reason}") from error
        finally:
            now = time.monotonic()
            self._next = now + max(self.every, REST * (now - began))

    def try_to_save(self, state: dict[str, Any]) -> None:
        """Save the state; if that fails, log a warning, and let `is_due` be False from then on."""
        try:
            self.save(state)
        except UserError as error:
            self.every = 0.0
            logger.warning("%s; going on without checkpoints", error)

    def load(self, device: torch.device | str = "cpu") -> dict[str, Any]:
        """Return the saved state, tensors on `device`.

        Raise UserError if the file is missing, damaged, or not a checkpoint of this version.
        """
        try:
            with zipfile.ZipFile(self.path) as archive:
                damaged = archive.testzip()  # the name of a file whose checksum is wrong
            if damaged is not None:
                raise zipfile.BadZipFile(damaged)
            saved = torch.load(self.path, map_location=device, weights_only=True)
            schema, state = saved["schema"], saved["state"]
            if not isinstance(state, dict):
                raise TypeError(type(state))
        except FileNotFoundError as error:
            raise UserError(f"there is no checkpoint at {self.path}") from error
        except OSError as error:
            raise UserError(f"cannot read the checkpoint {self.path}: {error.strerror}") from error
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # torch's own message advises weights_only=False: unsafe
            raise UserError(
                f"{self.path} is damaged, or no checkpoint of this version; start afresh"
            ) from error
        if schema != SCHEMA:
            raise UserError(
                f"{self.path} is a checkpoint of another version ({schema}, not {SCHEMA}); go on "
                "with that version, or start afresh"
            )
        return state

    def remove(self) -> None:
        """Remove the file, if it exists."""
        self.path.unlink(missing_ok=True)
