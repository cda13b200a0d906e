"""File formats of films: the extensions that mark a file as a film, and the output formats."""

import os
from pathlib import Path
from typing import NamedTuple

# File name extensions of films. The command `film` also reads files with other extensions.
FILM_EXTENSIONS = (
    *(".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg"),
    *(".ts", ".mts", ".m2ts", ".wmv", ".flv", ".ogv", ".3gp"),
)


class Codec(NamedTuple):
    """A Codec is an encoder of FFmpeg with its options."""

    encoder: str  # FFmpeg's name of the encoder
    options: dict[str, str]  # FFmpeg's options of the encoder -> their values
    even: bool  # whether width and height must be even
    longest: int  # the longest side that the encoder takes in pixels


# With crf=18 (quality), the loss is hard to see. Without B-frames (bf=0), frames are stored in the
# order in which they are shown, so that all times and the duration are exact. Chroma has half the
# resolution, so the sides must be even.
H264 = Codec("libx264", {"crf": "18", "bf": "0"}, even=True, longest=16384)
# For VP9, crf (quality) has an effect only with b=0. With cpu-used=4, encoding takes a quarter of
# the time, at little loss of quality (ffmpeg.org, VP9).
VP9_OPTIONS = {"crf": "24", "b": "0", "cpu-used": "4", "row-mt": "1"}
VP9 = Codec("libvpx-vp9", VP9_OPTIONS, even=False, longest=65536)

CODECS = {
    ".mp4": ("mp4", H264),
    ".m4v": ("mp4", H264),
    ".mov": ("mov", H264),
    ".mkv": ("matroska", H264),
    ".webm": ("webm", VP9),
}
"""Extension that can be written -> (FFmpeg's name of the container, codec)."""


def is_film(path: str | os.PathLike[str]) -> bool:
    """Return whether a path, of an input or an output, has the extension of a film."""
    return Path(path).suffix.lower() in FILM_EXTENSIONS
