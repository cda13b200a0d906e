"""Writes films in H.264 or VP9 with the input's sound."""

import logging
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.films.ffmpeg import failures, from_tensor, open_container, pyav, reason
from styletransfer.films.formats import CODECS, H264
from styletransfer.films.read import Film
from styletransfer.films.tracks import Tracks
from styletransfer.system.outputs import check_outputs
from styletransfer.system.signals import raise_waiting, signals_held

logger = logging.getLogger(__name__)

# ITU-T H.273 has this number for BT.709's YUV matrix, and also for its primaries and its curve.
BT709 = 1
# FFmpeg's number for limited range: black is 16, and white 235.
LIMITED = 1
# Option of x264: use AVX2, not AVX-512. On a busy machine, encoding the same frames twice gave
# different bytes in 7 of 30 000 cases with AVX-512 (one thread or several), and in none with AVX2.
WITHOUT_AVX512 = {"x264-params": "asm=avx2"}


def check_writable(path: str | os.PathLike[str], size: tuple[int, int] | None = None) -> None:
    """Raise UserError if a film with frames of (height, width) `size` cannot be written.

    PyAV or an encoder may be missing, CODECS may have no such extension, or the size is too large.
    """
    extension = Path(path).suffix.lower()
    if extension not in CODECS:
        raise UserError(
            f"cannot write a film to {path}; use {' '.join(CODECS)}, which ffmpeg converts into "
            "other formats and single frames"
        )
    av, (_, (encoder, _, _, longest)) = pyav(), CODECS[extension]
    if size and max(size) > longest:
        pixels = f"{size[1]} x {size[0]} pixels, {longest} at most"
        raise UserError(
            f"cannot write {path}: {extension} cannot hold {pixels}; choose a smaller size"
        )
    try:
        av.codec.Codec(encoder, "w")
    except ValueError as error:
        raise UserError(
            f"cannot write {path}: this PyAV has no {encoder}; install PyAV from its wheel"
        ) from error


def film_files(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Return the path of a film, and the path of its file while it is incomplete."""
    # A symbolic link is resolved, so that the film replaces the link's target, not the link.
    target = Path(os.path.realpath(path))
    return Path(path), target.with_name(f"{target.stem}.styletransfer-partial{target.suffix}")


class FilmWriter:
    """A FilmWriter writes a film; its file gets the final name at the end of the `with` block.

    Until then, its name is NAME.styletransfer-partial.EXTENSION. If a signal or an error ends the
    block, the file keeps this name, and can be played up to its last frame. H.264 needs even sides:
    if the number of rows or columns is odd, the last one is written twice. VP9 keeps the size.
    Times are in units of `time_base` of `like`, the input film; Matroska and WebM round them to
    milliseconds. The sound of `like` is copied. The film carries the text `recipe` as its comment.
    (UserError if `check_writable` refuses the output, or if the output would overwrite `like` or
    cannot be written.)
    """

    def __init__(self, path: str | os.PathLike[str], like: Film, recipe: str = "") -> None:
        check_writable(path)
        self._path, self._recipe = path, recipe
        check_outputs(film_files(path), [("input", like.path)])
        self._target, self._partial = Path(os.path.realpath(path)), film_files(path)[1]
        self._like = like
        self._format, self._codec = CODECS[self._target.suffix.lower()]
        # PyAV's container, its video stream, and the copier of the other streams. They are made for
        # the first frame, because its size is the size of the film.
        self._container: Any = None
        self._stream: Any = None
        self._tracks: Any = None
        # Time -> duration of a frame that is not yet written, both in units of time_base.
        self._durations: dict[int, int] = {}

    def __enter__(self) -> Self:
        with self._one_line():
            self._target.parent.mkdir(parents=True, exist_ok=True)
        return self

    def write(self, image: Tensor, time: Fraction, duration: Fraction) -> None:
        """Add a frame (1, 3, H, W), clamped to [0, 1], that begins at `time` in seconds.

        Times must increase. A frame is shown until the next frame; only a film's last frame is
        shown for its `duration` in seconds. Signals wait until the frame is written. (UserError if
        the frame cannot be written, or holds NaN or infinity.)
        """
        if not all(math.isfinite(extreme) for extreme in image.detach().aminmax()):
            raise UserError(f"cannot write {self._path}: a frame holds NaN or infinity")
        frame = from_tensor(image, even=self._codec.even)
        with signals_held(), self._one_line():
            if self._container is None:
                self._open(frame)
            self._tracks.copy(time)
            frame.time_base = self._like.time_base
            frame.pts = round(time / frame.time_base)
            self._durations[frame.pts] = round(duration / frame.time_base)
            self._encode(frame)
        raise_waiting()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with signals_held():
            if kind is not None or self._container is None:
                self._keep()
                return
            try:
                with self._one_line():
                    self._tracks.copy()
                    self._encode(None)
                    self._container.close()
                    with self._partial.open("rb+") as file:
                        os.fsync(file.fileno())  # some file systems report a full disk only here
                    self._partial.replace(self._target)
            except UserError:
                self._keep()
                raise
        raise_waiting()

    def _open(self, frame: Any) -> None:
        # This option keeps the input's default tracks; without it, Matroska would choose others.
        flags = {"default_mode": "passthrough"} if self._format in ("matroska", "webm") else {}
        self._container = open_container(
            f"file:{self._partial}", "w", format=self._format, container_options=flags
        )
        # bitexact leaves out random identifiers and versions: equal frames then give equal files.
        self._container.flags |= pyav().container.core.Flags.bitexact.value
        if self._recipe:
            self._container.metadata["comment"] = self._recipe
        encoder, options = self._codec.encoder, self._codec.options
        if encoder == H264.encoder and torch.cpu.get_capabilities().get("avx512_f"):
            options = options | WITHOUT_AVX512
        stream = self._container.add_stream(encoder, rate=self._like.rate, options=options)
        stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, frame.format.name
        context = stream.codec_context
        stream.time_base = context.time_base = self._like.time_base
        context.sample_aspect_ratio = self._like.pixel_aspect
        context.colorspace = context.color_primaries = context.color_trc = BT709
        context.color_range = LIMITED
        self._stream = stream
        self._tracks = Tracks(self._like, self._container, stream, str(self._path))

    def _encode(self, frame: Any) -> None:
        """Encode and write a frame; with None, write the frames that the encoder still holds."""
        for packet in self._stream.encode(frame):
            # Players show a frame until the next one; for the last frame they need this duration.
            packet.duration = self._durations.pop(packet.pts, 0)
            self._container.mux(packet)

    def _keep(self) -> None:
        """Complete the partial film, if there is one, so that it plays; log its path."""
        if self._container is None:
            return
        with suppress(*failures()), self._container:
            if self._tracks is not None:
                self._encode(None)
        logger.warning("the film up to here is in %s", self._partial)

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        """Turn errors of the system and of FFmpeg into a UserError of one line."""
        try:
            yield
        except failures() as error:
            is_system = isinstance(error, OSError)
            advice = "; choose a writable folder with space left" if is_system else ""
            raise UserError(f"cannot write {self._path}: {reason(error)}{advice}") from error
