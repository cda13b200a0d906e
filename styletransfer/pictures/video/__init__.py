"""Films in and out: `Film` yields frames and their times, `FilmWriter` encodes them."""

from styletransfer.pictures.video.codecs import CODECS, check_writable
from styletransfer.pictures.video.read import EXTENSIONS, Film, Frame
from styletransfer.pictures.video.write import FilmWriter

__all__ = ["CODECS", "EXTENSIONS", "Film", "FilmWriter", "Frame", "check_writable"]
