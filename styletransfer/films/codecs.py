"""What films are written in, and whether one can be."""

import os
from dataclasses import dataclass
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.films.library import pyav
from styletransfer.system.files import check_folder


@dataclass(frozen=True)
class Codec:
    """How films are encoded."""

    encoder: str
    """FFmpeg's name."""
    options: dict[str, str]
    """The encoder's."""
    even: bool
    """Sides must be even, because chroma has half the resolution."""


# Quality that is hard to tell from the painting. Without B-frames a frame is stored in the order in
# which it is shown, so that every time, and the length of the film, is stored as it is.
H264 = Codec("libx264", {"crf": "18", "bf": "0"}, even=True)
# crf only counts with b=0; cpu-used=4 takes a quarter of the time at little loss (ffmpeg.org, VP9).
VP9 = Codec("libvpx-vp9", {"crf": "24", "b": "0", "cpu-used": "4", "row-mt": "1"}, even=False)

CODECS = {
    ".mp4": ("mp4", H264),
    ".m4v": ("mp4", H264),
    ".mov": ("mov", H264),
    ".mkv": ("matroska", H264),
    ".webm": ("webm", VP9),
}
"""Extensions that can be written, each with FFmpeg's name of the container, and the codec."""


def partial(path: Path) -> Path:
    """Return the name that a film has until it is complete."""
    return path.with_name(f"{path.stem}.partial{path.suffix}")


def check_writable(path: str | os.PathLike[str]) -> None:
    """Fail before a long run if a `FilmWriter` would fail after it.

    Raises:
        UserError: PyAV or its encoder is missing, the extension is not in CODECS, or the folder
            takes no file.
    """
    extension = Path(path).suffix.lower()
    if extension not in CODECS:
        raise UserError(
            f"cannot write {path}: unknown extension {extension!r}; use {' '.join(CODECS)}"
        )
    av, encoder = pyav(), CODECS[extension][1].encoder
    try:
        av.codec.Codec(encoder, "w")
    except ValueError as error:
        raise UserError(
            f"cannot write {path}: this PyAV has no {encoder}; install PyAV from its wheel"
        ) from error
    check_folder(path)
    check_folder(partial(Path(os.path.realpath(path))))
