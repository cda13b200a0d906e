"""Divides a folder into parts, which several jobs may paint at once into one output."""

import hashlib
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.networks.settings import ApplyConfig
from styletransfer.system.files import LOCK, is_locked, lock_held

# Seconds for which a lock must be held to be that of a run: another job that looks whether a lock
# is held has it for less than a millisecond.
PATIENCE = 0.5

Pair = tuple[Path, Path]  # a file and its pastiche


def of_part(config: ApplyConfig, files: list[Pair], target: Path) -> list[Pair]:
    """Return those of `files` that are in the part `config.part` of `config.parts`.

    The hash of a pastiche's path below `target` says in which part it is. A file is thus in the
    same part whatever other files there are. Names that one file system may take for equal (in
    other case, or with accents in another form) are in one part, where `check_outputs` sees them.
    (UserError: there is no such part.)
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
    """Hold the lock of a part in the folder `target`, or of all of it, while the body runs.

    (UserError: this part, the whole, or a part of another division is at work there.)
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
