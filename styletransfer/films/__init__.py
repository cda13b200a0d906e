"""Films in and out: `Film` yields frames and their times, `FilmWriter` encodes them."""

from styletransfer.films.codecs import CODECS, check_writable
from styletransfer.films.read import EXTENSIONS, Film, Frame
from styletransfer.films.write import FilmWriter

__all__ = ["CODECS", "EXTENSIONS", "Film", "FilmWriter", "Frame", "check_writable"]
