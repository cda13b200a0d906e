"""Names the files in a run's folder, and writes one of them, the record `run.json`."""

import json
import logging
import os
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.system.files import write_atomic

logger = logging.getLogger(__name__)

RECORD = "run.json"
PASTICHE = "pastiche.png"
# The content image in the pastiche's size. It is not called content.png, because a user's own
# photograph may have that name.
CONTENT = "content_resized.png"
# Pictures of the regions that content_regions=auto found, in which each region has a colour: a file
# for the content, and a folder with a file for each style.
CONTENT_REGIONS, STYLE_REGIONS = "content_regions.png", "style_regions"
METRICS = "metrics.jsonl"
CHECKPOINT = "checkpoint.pt"
# File in which a failed job of a sweep writes the error.
ERROR = "error.txt"
# Files that Hydra writes: its own settings, and the KEY=VALUE words of the command line.
HYDRA, OVERRIDES = ".hydra/hydra.yaml", ".hydra/overrides.yaml"
# Keys that change no pixel of a finished run, and may differ when a run is resumed.
FREE_KEYS = (
    *("output", "recipe", "checkpoint_every", "stop_after"),
    *("resume", "dry_run", "format"),
)


def write_record(
    folder: Path, recipe: dict[str, Any], status: str, picture: Path, **known: float | str | None
) -> bool:
    """Write `run.json`; return whether that succeeded, and log a warning otherwise."""
    record = {"status": status, "picture": os.path.abspath(picture), **known} | recipe
    try:
        write_atomic(folder / RECORD, (json.dumps(record, indent=2) + "\n").encode())
    except UserError as error:
        logger.warning("%s; going on without", error)
        return False
    return True
