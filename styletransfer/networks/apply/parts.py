"""Divides a folder into parts, which several jobs may paint at once into one output."""

import hashlib
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.system.locks import LOCK, is_locked, lock_held

# A lock that stays held for PATIENCE seconds is held by a run that paints. A job also holds a lock
# while it checks whether another job has it, but for less than a millisecond.
PATIENCE = 0.5

Pair = tuple[Path, Path]  # a file and its pastiche


def of_part(config: ApplyConfig, files: list[Pair], target: Path) -> list[Pair]:
    """Return the pairs in `files` that belong to part `config.part` of `config.parts` parts.

    The part depends only on the hash of the pastiche's path below `target`, not on other files.
    For some file systems, two names are equal if they differ only in upper and lower case, or in
    the Unicode form of accents. Such names are in the same part, so `check_outputs` finds them.
    (UserError if there is no such part.)
    """
    if config.part >= config.parts:
        raise UserError(f"part={config.part} must be below parts={config.parts}; the first is 0")

    def part(pastiche: Path) -> int:
        name = unicodedata.normalize("NFC", pastiche.relative_to(target).as_posix()).casefold()
        code = hashlib.sha256(name.encode(errors="surrogateescape")).digest()
        return int.from_bytes(code[:8], "big") % config.parts

    return [pair for pair in files if part(pair[1]) == config.part]


@contextmanager
def part_locked(config: ApplyConfig, target: Path) -> Iterator[None]:
    """While the body runs, lock a part of the folder `target`, or the whole folder if `parts` is 1.

    (UserError if another run paints the same part, the whole folder, or a part for another value
    of `parts`. The whole folder can be locked only if no other run paints there.)
    """
    division = f"-of-{config.parts}.lock"
    is_part = config.parts > 1
    message = f"another run is at work in {target}; wait for it, or choose another output"
    with lock_held(target / (f".part-{config.part}{division}" if is_part else LOCK), message):
        others = [path.name for path in target.glob(".part-*.lock")]
        others = [LOCK, *(name for name in others if not name.endswith(division))]
        if any(is_locked(target, name, PATIENCE) for name in others[0 if is_part else 1 :]):
            raise UserError(message)
        yield
