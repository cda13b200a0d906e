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

    Returns:
        Where it is, and one line if that is not `path`.

    Raises:
        UserError: it cannot be written anywhere.
    """
    try:
        images.write(path, image, alpha)
        return path, None
    except UserError as error:
        first = error
    name = f"pastiche{path.suffix}"
    for where in (folder, Path(tempfile.gettempdir()) / f"styletransfer-{time.time_ns()}"):
        if where / name == path:
            continue
        try:
            images.write(where / name, image, alpha)
        except UserError:
            continue
        return where / name, f"{first}; the picture is at {where / name} instead"
    raise first


def keep_pictures(folder: Path, picture: Path, image: Tensor, job: Job) -> None:
    """Keep the pastiche and its content in the folder of the run, without loss, for `mix`.

    Args:
        folder: of the run.
        picture: where the pastiche is already.
        image: the pastiche (1, 3, H, W).
        job: what was done.
    """
    depth = images.BIT_DEPTHS[picture.suffix.lower()][0]
    kept = {CONTENT: job.pictures.content, PASTICHE: image}
    try:
        for path, rgb in ((folder / name, rgb) for name, rgb in kept.items()):
            if not (path.exists() and path.samefile(picture)):
                images.write(path, rgb, job.alpha, bit_depth=depth)
    except UserError as error:
        logger.warning("%s; going on without", error)
