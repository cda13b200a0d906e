"""Where a run's pictures go."""

import logging
import tempfile
import time
from pathlib import Path

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.job.job import Job
from styletransfer.pictures import images
from styletransfer.runs.folder import CONTENT, PASTICHE

logger = logging.getLogger(__name__)


def write_picture(
    path: Path, folder: Path, image: Tensor, alpha: Tensor | None
) -> tuple[Path, str | None]:
    """Write the pastiche to `path`; or into `folder`, or among the system's temporary files.

    Return where it is, and one line if that is not `path` (UserError: it is nowhere).
    """
    elsewhere = (folder, Path(tempfile.gettempdir()) / f"styletransfer-{time.time_ns()}")
    places = dict.fromkeys((path, *(parent / f"pastiche{path.suffix}" for parent in elsewhere)))
    errors = []
    for place in places:
        try:
            images.write(place, image, alpha)
        except UserError as error:
            errors.append(error)
        else:
            return place, f"{errors[0]}; the picture is at {place} instead" if errors else None
    raise errors[0]


def keep_pictures(folder: Path, picture: Path, image: Tensor, job: Job) -> None:
    """Keep the pastiche (1, 3, H, W) and its content in the run's folder, without loss, for `mix`.

    Nothing is written over `picture`, where the pastiche is already.
    """
    depth = images.BIT_DEPTHS[picture.suffix.lower()][0]
    try:
        for name, rgb in ((CONTENT, job.pictures.content), (PASTICHE, image)):
            path = folder / name
            if not (path.exists() and path.samefile(picture)):
                images.write(path, rgb, job.alpha, bit_depth=depth)
    except UserError as error:
        logger.warning("%s; going on without", error)
