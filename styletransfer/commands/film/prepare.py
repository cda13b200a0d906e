"""What painting a film needs, loaded and checked before anything is written."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from styletransfer import __version__
from styletransfer.config import FilmConfig
from styletransfer.errors import UserError
from styletransfer.films import Film, check_writable
from styletransfer.films.flow import check_flow
from styletransfer.job.job import Job
from styletransfer.job.prepare import prepare as prepare_picture
from styletransfer.job.sources import picture_files
from styletransfer.pictures.images import Picture, scaled_size
from styletransfer.system.files import atomic, sha256

# In the folder of a film: what its frames depend on, and where they are.
RECORD, FRAMES, PAINTED = "film.json", "frames", "painted.mp4"
# Settings that change no frame.
FREE_SETTINGS = ("output", "device")


@dataclass(frozen=True)
class FilmJob:
    """A film, ready to be painted.

    Attributes:
        config: what was asked for.
        film: the input.
        picture: the job of a single frame; it holds the first.
        output: where the painted film goes.
        folder: where its frames are.
    """

    config: FilmConfig
    film: Film
    picture: Job
    output: Path
    folder: Path

    def path(self, number: int) -> Path:
        """Return the file of a painted frame, from 0; before `color` has its way."""
        return self.folder / FRAMES / f"{number:06d}.png"

    def contents(self) -> Iterator[Tensor]:
        """Return the frames of the input (1, 3, H, W) at the size of the painted film."""
        return self.film.images(self.picture.scales[-1].size)


def prepare(config: FilmConfig, film: Film, folder: Path) -> FilmJob:
    """Load and check all that `config` names; cheap checks come first.

    Raises:
        UserError: anything that would make the film fail, in one line.
    """
    check(config)
    output = Path(config.output) if config.output else folder / PAINTED
    check_writable(output)
    check_flow(scaled_size(film.size, config.size))
    first = Picture(next(film.frames()).image, name=config.content)
    job = prepare_picture(replace(config, output=None), {"content": first})
    return FilmJob(config, film, job, output, folder)


def check(config: FilmConfig) -> None:
    """Check the numbers of a film.

    Raises:
        UserError: naming the key, its value and what it may be.
    """
    if config.frame_steps < 1:
        raise UserError(f"frame_steps={config.frame_steps} must be 1 or more")
    if not 0 <= config.temporal_weight <= 1e6:
        raise UserError(f"temporal_weight={config.temporal_weight} must be from 0 to 1e6")


def recipe(config: FilmConfig) -> dict[str, Any]:
    """Return what the frames depend on: the version, the settings, and the files by their hashes.

    Raises:
        UserError: a file cannot be read.
    """
    kept = {key: value for key, value in asdict(config).items() if key not in FREE_SETTINGS}
    return {
        "version": __version__,
        "settings": kept,
        "files": [
            [key, sha256(path)] for key, path in picture_files(config) if Path(path).exists()
        ],
    }


def check_record(job: FilmJob) -> None:
    """Check that the frames in the folder are of this film, and note what they depend on.

    Raises:
        UserError: they were painted otherwise, or the note cannot be written.
    """
    path, told = job.folder / RECORD, recipe(job.config)
    try:
        there = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    except (OSError, ValueError):
        there = {}
    if there is not None and there != json.loads(json.dumps(told)):
        raise UserError(
            f"the frames in {job.folder} are of another film, or were painted with other settings; "
            "give the same, or another folder with hydra.run.dir=FOLDER"
        )
    with atomic(path) as temporary:
        temporary.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
