"""Writing films: H.264 or VP9, with the sound of the film they are made of."""

import logging
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.films.codecs import CODECS, check_writable, partial
from styletransfer.films.library import pyav, reason, url
from styletransfer.films.read import Film
from styletransfer.films.samples import BT709, LIMITED, from_tensor
from styletransfer.films.sound import Sound
from styletransfer.system.signals import raise_waiting, signals_held

logger = logging.getLogger(__name__)


# MP4 and MOV in pieces until the end, when they become ordinary files: so what a full disk or a
# killed process leaves can be played. The other containers are so anyway.
IN_PIECES = {"movflags": "hybrid_fragmented+delay_moov"}


class FilmWriter:
    """A film that is being written: `with` completes it, and it has its name only then.

    Until then it is NAME.partial.EXTENSION, and if a signal or an error ends the body, it remains
    that: a film that plays, as far as it goes. H.264 needs even sides: of an odd number of rows or
    columns the last one is written twice. VP9 keeps the size. Times are those of `like`, in
    Matroska and WebM rounded to milliseconds. Its sound is copied along.

    Args:
        path: ends in an extension of CODECS; missing folders are created.
        like: the film that this one is made of.

    Raises:
        UserError: as `check_writable`, or the new film would overwrite `like`.
    """

    def __init__(self, path: str | os.PathLike[str], like: Film) -> None:
        check_writable(path)
        self._path = path
        # A link is followed, so that it keeps pointing at the file instead of being replaced by it.
        self._target = Path(os.path.realpath(path))
        self._partial = partial(self._target)
        self._like = like
        for written in (self._target, self._partial):
            if written.exists() and written.samefile(like.path):
                raise UserError(f"output={path} would overwrite the film {like.path}; name another")
        self._format, self._codec = CODECS[self._target.suffix.lower()]
        self._container: Any = None
        self._stream: Any = None
        self._sound: Sound | None = None

    def __enter__(self) -> Self:
        return self

    def write(self, image: Tensor, time: Fraction) -> None:
        """Add a frame; signals wait until it is written.

        Args:
            image: (1, 3, H, W), any floating dtype and device, clamped to [0, 1]; of all frames the
                same size.
            time: when it is shown, in seconds; later than the frame before.

        Raises:
            UserError: the picture holds NaN or infinity, or the file cannot be written, such as on
                a full disk.
        """
        if not all(math.isfinite(extreme) for extreme in image.detach().aminmax()):
            raise UserError(f"cannot write {self._path}: a frame holds NaN or infinity")
        frame = from_tensor(image, even=self._codec.even)
        with signals_held(), self._told():
            if self._container is None:
                self._open(frame)
            assert self._sound is not None
            self._sound.copy(time)
            frame.time_base = self._like.time_base
            frame.pts = round(time / frame.time_base)
            self._container.mux(self._stream.encode(frame))
        raise_waiting()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._container is None:
            return
        with signals_held():
            if error is None:
                try:
                    with self._told():
                        self._complete()
                except UserError:
                    self._keep()
                    raise
            else:
                self._keep()
        if error is None:
            raise_waiting()

    def _open(self, frame: Any) -> None:
        """Begin the file, for frames like this one."""
        self._target.parent.mkdir(parents=True, exist_ok=True)
        self._container = pyav().open(url(self._partial), "w", format=self._format)
        stream = self._container.add_stream(
            self._codec.encoder, rate=self._like.rate, options=self._codec.options
        )
        stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, frame.format.name
        stream.time_base = stream.codec_context.time_base = self._like.time_base
        stream.codec_context.sample_aspect_ratio = self._like.pixel_aspect
        context = stream.codec_context
        context.colorspace = context.color_primaries = context.color_trc = BT709
        context.color_range = LIMITED
        self._stream = stream
        self._sound = Sound(self._like, self._container, str(self._path))
        if not self._sound.is_broadcast:  # which FFmpeg does not take in pieces
            self._container.container_options.update(IN_PIECES)

    def _complete(self) -> None:
        """Write what is left, and give the film its name."""
        assert self._sound is not None
        self._sound.copy()
        self._close()
        with self._partial.open("rb+") as file:
            os.fsync(file.fileno())  # some file systems report a full disk only here
        self._partial.replace(self._target)

    def _close(self) -> None:
        """Write the frames that the encoder holds back, and the end of the file."""
        assert self._sound is not None
        self._sound.close()
        self._container.mux(self._stream.encode(None))
        self._container.close()

    def _keep(self) -> None:
        """Make of what there is a film that plays, and say where it is."""
        with suppress(OSError, pyav().FFmpegError):
            if self._sound is not None:
                self._close()
        with suppress(OSError, pyav().FFmpegError):
            self._container.close()
        try:
            Film(self._partial)
        except UserError:  # too little was written
            self._partial.unlink(missing_ok=True)
        else:
            logger.warning("the film up to here is in %s", self._partial)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what the system and FFmpeg say into one line."""
        try:
            yield
        except (OSError, pyav().FFmpegError) as error:
            raise UserError(
                f"cannot write {self._path}: {reason(error)}; choose a writable folder with space "
                "left"
            ) from error
