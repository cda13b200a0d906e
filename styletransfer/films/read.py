"""Reads films in the containers and codecs of FFmpeg, by PyAV; converts frames to tensors."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.films.ffmpeg import (
    decoder,
    deinterlaced,
    display_matrix,
    has_alpha,
    interpolation,
    pyav,
    reason,
)
from styletransfer.films.frame import MAX_PIXELS, Frame, check_size
from styletransfer.films.stills import Animation, FrameFolder, animation
from styletransfer.formats.profiles import unit
from styletransfer.formats.stated_colors import frame_colors
from styletransfer.pictures.images import on_white, resize
from styletransfer.system.progress import progress_bar

FrameCallback = Callable[[int, Tensor, Tensor], bool]
"""Callback after each painted frame: (`Film.count`, input frame, painted frame) -> whether to
continue. Frames are (1, 3, H, W). False ends the film after the frames painted so far."""

# Frame rate, in frames per second, of a film that states no frame rate.
USUAL_RATE = Fraction(25)
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
    """A Film reads the video stream with the most frames in a file.

    Use it as a context manager, whose exit closes the file. A folder is a film of `fps` frames per
    second; see `FrameFolder`. An animated GIF, PNG, WebP or AVIF is a film, too.

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
        has_sound: whether the file has sound.

    Raises:
        UserError: there is no such film, none of its frames can be decoded, its frames have more
            than MAX_PIXELS or several sizes, or PyAV is missing.
    """

    def __init__(self, path: str | os.PathLike[str], fps: float = float(USUAL_RATE)) -> None:
        pyav()
        self.path = Path(path)
        self._files = ExitStack()
        self.start, self.pixel_aspect, self.comment = Fraction(0), Fraction(1), ""
        self.has_sound = False
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

    def _look(self) -> None:
        """Set the attributes from the file's header and first frame, as FFmpeg reads them."""
        with self.opened() as container:
            stream = self._video(container)
            tags = {key.lower(): text for key, text in container.metadata.items()}
            self.comment = tags.get("comment", "")
            self.has_sound = bool(container.streams.audio)
            self.rate = Fraction(stream.average_rate or stream.guessed_rate or USUAL_RATE)
            self.time_base = Fraction(stream.time_base)
            first = next(self._decoded(container, stream), None)
            if first is None:
                problem = "has no frame that FFmpeg can read; save it as MP4 or GIF"
                raise UserError(f"{self.path} {problem}")
            self.start = self._start(stream, first)
            self.count = stream.frames or round(self._seconds(container) * self.rate)
            a, b, c, d = display_matrix(first, stream.codec_context.name)
            self._is_turned = abs(b) > abs(a)  # rows become columns
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
        """Open the file once more and return PyAV's container, which the film's exit closes."""
        av = pyav()
        if not self.path.is_file():
            reason_why = "is a device, and no film" if self.path.exists() else "does not exist"
            raise UserError(f"{self.path} {reason_why}; check the path")
        # A playlist may name only local files and is not reloaded; "file:" allows colons in a path.
        options = {"protocol_whitelist": "file", "max_reload": "0"}
        try:
            container = av.open(f"file:{self.path}", metadata_errors="replace", options=options)
        except (av.FFmpegError, OSError) as error:
            raise UserError(
                f"{self.path} is no film that FFmpeg can read ({reason(error)}); get an intact copy"
            ) from error
        return self._files.enter_context(container)

    def frames(self) -> Iterator[Frame]:
        """Yield all frames; each call starts at the first (UserError if one cannot be read)."""
        if self._stills is not None:
            yield from self._stills.frames()
            return
        for frame, time, duration in self._timed():
            try:
                image = self._upright(frame)
            except (pyav().FFmpegError, ValueError) as error:
                damage = f"has a frame that is no picture ({reason(error)}); get an intact copy"
                if getattr(error, "errno", None) == errno.EOPNOTSUPP:
                    matrix = f"matrix {frame.colorspace} of ITU-T H.273"
                    damage = f"has colours that FFmpeg cannot convert ({matrix}); save it as BT.709"
                raise UserError(f"{self.path} {damage}") from error
            yield Frame(image, time, duration)

    def _timed(self) -> Iterator[tuple[Any, Fraction, Fraction]]:
        """Yield PyAV's frames, each with its time and its duration in seconds.

        The duration is the time until the next frame; for the last frame, the duration that the
        file states, or else 1 / rate.
        """
        frame, time, damage = None, Fraction(0), None
        container = self.opened()
        try:
            for following in deinterlaced(self._decoded(container, self._video(container))):
                next_time = self._time(following, None if frame is None else time)
                if frame is not None:
                    yield frame, time, next_time - time
                frame, time = following, next_time
        except UserError as error:
            damage = error
        if frame is not None:
            stated = (frame.duration or 0) * Fraction(frame.time_base or 0)
            yield frame, time, stated or 1 / self.rate
        if damage is not None:
            raise damage

    def images(self, size: tuple[int, int]) -> Iterator[Tensor]:
        """Yield all frames (1, 3, H, W) resized to (height, width) `size`."""
        for frame in self.frames():
            yield resize(frame.image, size)

    def bar(self, items: Iterable[Any]) -> Any:
        """Return a progress bar over `items`, one item for each frame."""
        return progress_bar(items, total=self.count or None, unit="frame", leave=None)

    def _upright(self, frame: Any) -> Tensor:
        """Return PyAV's frame, rotated upright, as (1, 3, H, W), float32, sRGB in [0, 1]."""
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
        """Return the video stream with the most frames by the file's header; the first of equals.

        Streams that are marked as the cover of a song are left out. The number of frames decides,
        because streams with few frames may be still pictures, such as the cover of an AVIF.
        (UserError if there is no stream, or if its frames are too large.)
        """
        cover = pyav().stream.Disposition.attached_pic
        streams = [one for one in container.streams.video if not one.disposition & cover]
        if not streams:
            problem = "holds no film, only other things such as sound"
            raise UserError(f"{self.path} {problem}; name another")
        stream = max(streams, key=lambda one: one.frames)
        context = stream.codec_context
        if context is not None:
            check_size(self.path, context.width, context.height)
            context.options = {"max_pixels": str(MAX_PIXELS)}  # a later frame may be larger
        return stream

    def _decoded(self, container: Any, stream: Any) -> Iterator[Any]:
        """Yield PyAV's frames; skip errors before the first frame: the film may be cut there."""
        av = pyav()
        packets, count, decode = container.demux(), 0, decoder(stream)
        while True:
            try:
                packet = next(packets, None)
                if packet is None:
                    break
                # The empty packet at the end of a stream tells its stream only by this attribute.
                source = packet.stream
                is_video = source.index == stream.index and source.type == "video"
                frames = decode(packet) if is_video else []
            except av.FFmpegError as error:
                if not count:
                    continue
                damage = f"is damaged after frame {count} ({reason(error)})"
                raise UserError(f"{self.path} {damage}; get an intact copy") from error
            count += len(frames)
            yield from frames

    def _time(self, frame: Any, last: Fraction | None) -> Fraction:
        """Return a frame's time in seconds, later than `last`, the time of the frame before."""
        if frame.pts is None:
            return Fraction(0) if last is None else last + 1 / self.rate
        time = frame.pts * Fraction(frame.time_base) - self.start
        return time if last is None or time > last else last + self.time_base

    def _start(self, video: Any, first: Any) -> Fraction:
        """Return the time stamp of the file's first frame or sound, in seconds, at least 0.

        It is rounded down to a multiple of the video's time base. Sound may begin a little before
        0, because its decoder needs some samples before the first audible one.
        """
        starts = [video.start_time * video.time_base] if video.start_time is not None else []
        if not starts and first.pts is not None:  # as in some Matroska files
            starts = [first.pts * Fraction(first.time_base)]
        starts += self._sound_starts()
        begin = max(Fraction(0), min(starts, default=Fraction(0)))
        return begin // self.time_base * self.time_base

    def _sound_starts(self) -> list[Fraction]:
        """Return the time stamp of the first packet of each sound stream, in seconds."""
        starts = []
        for number in range(len(self.opened().streams.audio)) if self.has_sound else ():
            container = self.opened()
            stream = container.streams.audio[number]
            start = stream.start_time
            if start is None:
                start = next(container.demux(stream)).pts
            if start is not None:
                starts.append(start * Fraction(stream.time_base))
        return starts

    def _seconds(self, container: Any) -> Fraction:
        """Return the duration of the file in seconds, or 0 if it is unknown."""
        end = Fraction(container.duration or 0) / 1_000_000
        # Matroska counts from 0, even if the first frame comes later.
        is_end = "matroska" in container.format.name and end > self.start
        return end - self.start if is_end else end
