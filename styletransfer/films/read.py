"""Reads films in the containers and codecs of FFmpeg, by PyAV; converts frames to tensors."""

import errno
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.films.clock import Clock
from styletransfer.films.ffmpeg import (
    decoder,
    deinterlaced,
    display_matrix,
    failures,
    has_alpha,
    interpolation,
    open_container,
    pyav,
    readable,
    reason,
)
from styletransfer.films.frame import MAX_PIXELS, Frame, check_size
from styletransfer.films.stills import Animation, FrameFolder, animation
from styletransfer.formats.profiles import unit
from styletransfer.formats.stated_colors import frame_colors
from styletransfer.pictures.images import on_white, resize
from styletransfer.system.progress import progress_bar

logger = logging.getLogger(__name__)

FrameCallback = Callable[[int, Tensor, Tensor], bool]
"""Callback after each painted frame: (`Film.count`, input frame, painted frame) -> whether to
continue. Frames are (1, 3, H, W). False ends the film after the frames painted so far."""

# USUAL_RATE, in frames per second, is used if a film states no frame rate, or a rate above
# LARGEST_RATE.
USUAL_RATE, LARGEST_RATE = Fraction(25), 1000
# Largest width and height in pixels of a standard-definition frame. If a film does not state the
# matrix of its YUV colours, larger frames are read with BT.709, others with BT.601, as in players.
LARGEST_SD = (1279, 576)
# FFmpeg's number (AVColorSpace) for a film that does not state the matrix of its YUV colours.
UNSPECIFIED = 2
# (Whether colours must be converted to sRGB, whether frames have alpha) -> pixel format into which
# FFmpeg converts frames.
FORMATS = {
    (False, False): "rgb24",
    (False, True): "rgba",
    (True, False): "rgb48le",
    (True, True): "rgba64le",
}


class Film:
    """A Film reads the frames of a video file, of a folder or of an animated picture.

    Use it as a context manager, whose exit closes the file. Of several video streams, the one that
    players show is read. A folder has `fps` frames per second; see `FrameFolder`. An animated
    picture is a GIF, PNG, WebP or AVIF.

    Colours are converted to sRGB by the stated YUV matrix, range, primaries and transfer curve. For
    HDR, the tone mapping of `formats.color_spaces` is used. If a file states neither primaries nor
    curve, or states a space that cannot be converted, frames are read as sRGB with 8 bits per
    sample. Transparent frames are laid on white; interlaced ones go through `deinterlaced`.

    Attributes:
        size: (height, width) of a frame in pixels, after its rotation upright.
        rate: frames per second, on average.
        count: number of frames, an estimate; 0 if unknown.
        start: time stamp in the file, in seconds, of the first frame or sound, whichever is first.
        time_base: unit of the time stamps of frames, in seconds.
        pixel_aspect: width of a pixel over its height, after the rotation.
        comment: the text of "comment" in the file's metadata, or "".
        painted: index in the file of the stream that is read; None for pictures.
        paths: files of the frames, in their order, if the film is a folder; else [].

    Raises:
        UserError: there is no such film, none of its frames can be decoded, its frames have more
            than MAX_PIXELS, the frames of a folder have several sizes, or PyAV is missing.
    """

    def __init__(self, path: str | os.PathLike[str], fps: float = float(USUAL_RATE)) -> None:
        pyav()
        self.path = Path(path)
        self._files = ExitStack()
        self.start, self.pixel_aspect, self.comment = Fraction(0), Fraction(1), ""
        self.painted: int | None = None
        self._told: set[str] = set()
        self._stills: FrameFolder | Animation | None
        if self.path.is_dir():
            self._stills = FrameFolder(self.path, Fraction(fps).limit_denominator(1001))
        else:
            self._stills = animation(self.path) if self.path.is_file() else None
        if self._stills is None:
            self._look()
        else:
            self.size, self.rate = self._stills.size, self._stills.rate
            self.count, self.time_base = self._stills.count, self._stills.time_base
            check_size(self.path, *self.size[::-1])
        self.paths = self._stills.paths if isinstance(self._stills, FrameFolder) else []

    def _look(self) -> None:
        """Set the attributes from the file's header and first frame, as FFmpeg reads them."""
        with self.opened() as container:
            stream = self._video(container)
            tags = {key.lower(): text for key, text in container.metadata.items()}
            self.comment = readable(tags.get("comment", ""))
            self.painted = stream.index
            rate = Fraction(stream.average_rate or stream.guessed_rate or USUAL_RATE)
            self.rate = rate if 0 < rate <= LARGEST_RATE else USUAL_RATE
            self.time_base = Fraction(stream.time_base)
            first = next(self._decoded(container.demux(), stream), None)
            if first is None:
                problem = "has no frame that FFmpeg can read; save it as MP4 or GIF"
                raise UserError(f"{self.path} {problem}")
            self.start = self._start(container)
            self.count = stream.frames or round(self._seconds(container) * self.rate)
            a, b, c, d = display_matrix(first, stream.codec_context.name)
            self._is_turned = abs(b) > abs(a)  # a quarter turn: rows become columns
            down, across = (b, c) if self._is_turned else (d, a)
            self._mirrored = [side for side, sign in ((2, down), (3, across)) if sign < 0]
            self._coded_size = (first.height, first.width)
            self.size = self._coded_size[::-1] if self._is_turned else self._coded_size
            aspect = Fraction(stream.sample_aspect_ratio or 1)
            self.pixel_aspect = 1 / aspect if self._is_turned else aspect

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def opened(self) -> Any:
        """Open the file again and return PyAV's container; `__exit__` closes it."""
        if not self.path.is_file():
            reason_why = "is a device, and no film" if self.path.exists() else "does not exist"
            raise UserError(f"{self.path} {reason_why}; check the path")
        # A playlist may name only local files and is not reloaded; "file:" allows colons in a path.
        # If time stamps start again, FFmpeg would by default treat this as an overflow; with the
        # last option it does not, and a Clock corrects them.
        options = {"protocol_whitelist": "file", "max_reload": "0", "correct_ts_overflow": "0"}
        try:
            container = open_container(f"file:{self.path}", options=options)
        except failures() as error:
            raise UserError(
                f"{self.path} is no film that FFmpeg can read ({reason(error)}); get an intact copy"
            ) from error
        return self._files.enter_context(container)

    def packets(self, container: Any) -> Iterator[Any]:
        """Yield all packets of the newly opened file, with times that a Clock corrects.

        Warnings at the end, or before an error, say what the Clock has corrected.
        """
        assert self.painted is not None
        clock, is_left = Clock(self.painted, self.rate), False
        try:
            yield from clock.mended(container.demux())
        except GeneratorExit:  # the caller stopped early, so it gets no warnings
            is_left = True
            raise
        finally:
            for each in () if is_left else clock.told():
                self._tell(each)

    def _tell(self, what: str) -> None:
        """Log a warning about the film, unless the same warning was logged before."""
        if what not in self._told:
            logger.warning("%s: %s", self.path, what)
        self._told.add(what)

    def frames(self) -> Iterator[Frame]:
        """Yield all frames; each call starts at the first (UserError if one cannot be read)."""
        for frame, time, duration in self._shown():
            yield Frame(self._upright(frame), time, duration)

    def frame(self, place: str) -> Frame:
        """Return the frame with a given number, counted from 0, or the frame at a given time.

        `place` is a number such as "120", or a time from the film's start such as "4.8s", in
        seconds. All frames before it are decoded. (UserError if the film ends before `place`.)
        """
        wanted, end, count = Fraction(place.removesuffix("s")), Fraction(0), 0
        is_time = place.endswith("s")
        for frame, time, duration in self._shown():
            end, count = time + duration, count + 1
            if (end if is_time else count) > wanted:
                return Frame(self._upright(frame), time, duration)
        has = f"has {count} frame{'s' * (count != 1)}, counted from 0"
        problem = f"ends after {float(end):.6g} seconds" if is_time else has
        raise UserError(f"there is no {self.path}:{place}; the film {problem}")

    def _shown(self) -> Iterator[tuple[Any, Fraction, Fraction]]:
        """Return an iterator over (frame, time, duration); `_upright` makes a tensor of a frame."""
        return self._timed() if self._stills is None else self._stills.frames()

    def _timed(self) -> Iterator[tuple[Any, Fraction, Fraction]]:
        """Yield PyAV's frames, each with its time and its duration in seconds.

        The duration is the time until the next frame; for the last frame, the duration that the
        file states, or else 1 / rate.
        """
        frame, time, count = None, Fraction(0), 0
        damage: Exception | None = None
        self._pushed = 0  # number of frames moved to a later time
        container = self.opened()
        try:
            packets, stream = self.packets(container), self._video(container)
            for following in deinterlaced(self._decoded(packets, stream)):
                next_time = self._time(following, None if frame is None else time)
                if frame is not None:
                    yield frame, time, next_time - time
                frame, time, count = following, next_time, count + 1
        except failures() as error:
            damage = error
        if frame is not None:
            stated = (frame.duration or 0) * Fraction(frame.time_base or 0)
            yield frame, time, stated or 1 / self.rate
        if self._pushed:
            self._tell(f"{self._pushed} frames come no later than the one before; they follow it")
        if damage is not None:
            problem = f"is damaged after frame {count} ({reason(damage)})"
            raise UserError(f"{self.path} {problem}; get an intact copy") from damage

    def images(self, size: tuple[int, int]) -> Iterator[Tensor]:
        """Yield all frames (1, 3, H, W) resized to (height, width) `size`."""
        for frame in self.frames():
            yield resize(frame.image, size)

    def bar(self, items: Iterable[Any]) -> Any:
        """Return a progress bar over `items`, one item for each frame."""
        return progress_bar(items, total=self.count or None, unit="frame", leave=None)

    def _upright(self, frame: Any) -> Tensor:
        """Return PyAV's frame as an upright tensor (1, 3, H, W), sRGB in [0, 1].

        A tensor is returned unchanged.
        """
        try:
            return frame if isinstance(frame, Tensor) else self._converted(frame)
        except failures() as error:
            damage = f"has a frame that is no picture ({reason(error)}); get an intact copy"
            if getattr(error, "errno", None) == errno.EOPNOTSUPP:
                matrix = f"matrix {frame.colorspace} of ITU-T H.273"
                damage = f"has colours that FFmpeg cannot convert ({matrix}); save it as BT.709"
            raise UserError(f"{self.path} {damage}") from error

    def _converted(self, frame: Any) -> Tensor:
        if (frame.height, frame.width) != self._coded_size:
            height, width = self._coded_size
            self._tell(f"frames of other sizes are resized to {width} x {height} pixels")
        is_hd = frame.width > LARGEST_SD[0] or frame.height > LARGEST_SD[1]
        unsaid = frame.colorspace == UNSPECIFIED and not frame.format.is_rgb
        space = frame_colors(frame.color_primaries, frame.color_trc, str(self.path))
        colors = frame.reformat(
            *(*self._coded_size[::-1], FORMATS[space is not None, has_alpha(frame)]),
            src_colorspace="ITU709" if unsaid and is_hd else None,
            interpolation=interpolation(),
            threads=1,
        ).to_ndarray()
        values = unit(colors)
        if space is not None:
            values[..., :3] = space.srgb_of(colors[..., :3])
        image = torch.from_numpy(values).permute(2, 0, 1)[None]
        image = image.transpose(2, 3) if self._is_turned else image
        image = image.flip(self._mirrored).contiguous()
        return on_white(image, image[:, 3:])[:, :3] if image.shape[1] == 4 else image

    def _video(self, container: Any) -> Any:
        """Return the video stream that players show: the one that is flagged as the default.

        Covers and thumbnails are no films, and neither is a stream that states a single frame if
        there is another. Of equal streams, FFmpeg's choice is taken: it has looked at some frames.
        (UserError if there is no stream, or if its frames are too large.)
        """
        flags = pyav().stream.Disposition
        covers = flags.attached_pic | flags.timed_thumbnails
        streams = [one for one in container.streams.video if not one.disposition & covers]
        if not streams:
            problem = "holds no film, only other things such as sound"
            raise UserError(f"{self.path} {problem}; name another")
        best = container.streams.best("video")
        stream = max(
            [one for one in streams if one.frames != 1] or streams,
            key=lambda one: (
                one.codec_context is not None,
                bool(one.disposition & flags.default),
                best is not None and one.index == best.index,
            ),
        )
        context = stream.codec_context
        if context is not None:
            check_size(self.path, context.width, context.height)
            context.options = {"max_pixels": str(MAX_PIXELS)}  # a later frame may be larger
        return stream

    def _decoded(self, packets: Iterator[Any], stream: Any) -> Iterator[Any]:
        """Yield PyAV's decoded frames; skip broken packets that come before the first frame.

        Such packets exist if the file was cut out of the middle of a film. One of `failures()` is
        raised for damage after the first frame.
        """
        count, lost, decode = 0, 0, decoder(stream)
        while True:
            try:
                packet = next(packets, None)
                if packet is None:
                    break
                # The empty packet at a stream's end names its stream only in this attribute.
                source = packet.stream
                is_video = source.index == stream.index and source.type == "video"
                frames = decode(packet) if is_video else []
            except failures():
                if count:
                    raise
                lost += 1
                continue
            if lost and frames and not count:
                self._tell(f"{lost} packets before the first frame cannot be decoded")
            count += len(frames)
            yield from frames

    def _time(self, frame: Any, last: Fraction | None) -> Fraction:
        """Return a frame's time in seconds; it is later than `last`, the previous frame's time."""
        if frame.pts is None:
            return Fraction(0) if last is None else last + 1 / self.rate
        time: Fraction = frame.pts * Fraction(frame.time_base) - self.start
        if last is None or time > last:
            return time
        self._pushed += 1
        return last + self.time_base

    def _start(self, container: Any) -> Fraction:
        """Return the time stamp of the file's first frame or sound, in seconds.

        It is rounded down to a multiple of the frames' time base. Sound may begin a little before
        0, because its decoder needs some samples before the first audible one.
        """
        starts = []
        for stream in (container.streams[self.painted], *container.streams.audio):
            start = stream.start_time
            if start is None:  # some Matroska files do not state it
                with self.opened() as source, suppress(*failures()):
                    start = next(source.demux(stream.index)).pts
            if start is not None:
                seconds = start * Fraction(stream.time_base)
                starts.append(seconds if stream.index == self.painted else max(0, seconds))
        return min(starts, default=Fraction(0)) // self.time_base * self.time_base

    def _seconds(self, container: Any) -> Fraction:
        """Return the duration of the file in seconds, or 0 if it is unknown."""
        end = Fraction(container.duration or 0) / 1_000_000
        # In Matroska the duration counts from time 0, even if the first frame comes later.
        is_end = "matroska" in container.format.name and end > self.start
        return end - self.start if is_end else end
