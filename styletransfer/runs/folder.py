"""The folder of a run: the names in it, and the record of what its picture depends on."""

import json
import logging
import os
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.system.files import atomic

logger = logging.getLogger(__name__)

RECORD = "run.json"
PASTICHE = "pastiche.png"
# Not content.png, which may well be the name of somebody's photograph.
CONTENT = "content_resized.png"
METRICS = "metrics.jsonl"
CHECKPOINT = "checkpoint.pt"
# Says in the folder of a sweep's job why it failed.
ERROR = "error.txt"
# Keys that change no pixel, and may be given anew when a run goes on.
FREE_KEYS = ("output", "snapshot_every", "checkpoint_every", "resume", "dry_run")


def read_record(folder: Path) -> dict[str, Any]:
    """Return what `write_record` wrote.

    Raises:
        UserError: `folder` is not that of a run.
    """
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        for key, kind in (("config", dict), ("status", str), ("picture", str)):
            if not isinstance(record[key], kind):
                raise TypeError(key)
    except OSError as error:
        raise UserError(f"{folder} is not the folder of a run: it holds no {RECORD}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder / RECORD} is damaged; start afresh in another folder") from error
    checked: dict[str, Any] = record
    return checked


def write_record(
    folder: Path,
    description: dict[str, Any],
    status: str,
    picture: Path,
    seconds: float | None = None,
) -> None:
    """Write `run.json`; where that cannot be, say so and do without.

    Args:
        folder: the run's.
        description: what the picture depends on, as plain values.
        status: running, stopped, gave up or finished.
        picture: where the pastiche is or will be.
        seconds: of optimisation that it took; None while that is not known.
    """
    record = {"status": status, "picture": os.path.abspath(picture), "seconds": seconds}
    record |= description
    try:
        with atomic(folder / RECORD) as temporary:
            temporary.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    except UserError as error:
        logger.warning("%s; going on without", error)
