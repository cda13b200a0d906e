"""Reads films in every container and codec of FFmpeg, by PyAV; converts frames to tensors."""

import errno
import glob
import math
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.nn.functional import pad
from tqdm.auto import tqdm

from styletransfer.errors import UserError, pip_install
from styletransfer.pictures.formats import in_folder
from styletransfer.pictures.images import resize
from styletransfer.pictures.profiles import unit
from styletransfer.pictures.stated_colors import frame_colors

FrameCallback = Callable[[int, Tensor, Tensor], bool]
"""Callback after each painted frame: (number of frames in the film, input frame, painted frame) ->
whether to go on. Frames are (1, 3, H, W). False ends the film after the frames painted so far."""

# Frame rate, in frames per second, of a film that states no frame rate.
USUAL_RATE = Fraction(25)
# Codecs whose side data is not read: it may hold the name of a colour profile. PyAV frees this name
# twice, which crashes the process. Frames of other codecs have no such name.
PNGS = ("png", "apng")
# Largest width and height in pixels of a standard-definition frame. If a film does not state the
# matrix of its YUV colours, larger frames are read with BT.709, others with BT.601, as in players.
LARGEST_SD = (1279, 576)
# FFmpeg's number (AVColorSpace) for a film that does not state the matrix of its YUV colours.
UNSPECIFIED = 2


def pyav() -> ModuleType:
    """Import and return the module `av` (UserError: PyAV is not installed)."""
    try:
        import av
    except ImportError as error:
        raise UserError(f"films need PyAV; run: {pip_install('video')}") from error
    return av


def reason(error: Exception) -> str:
    """Return the message of an error of FFmpeg or of the system, in a few words."""
    return getattr(error, "strerror", None) or str(error)


def _interpolation() -> Any:
    """Return FFmpeg's flags for bicubic resampling with full chroma and accurate rounding."""
    kinds = pyav().video.reformatter.Interpolation
    return kinds.BICUBIC | kinds.ACCURATE_RND | kinds.FULL_CHR_H_INT | kinds.FULL_CHR_H_INP


def from_tensor(image: Tensor, *, even: bool) -> Any:
    """Return an image (1, 3, H, W) as a frame of PyAV: 8-bit YUV 4:2:0, BT.709, limited range.

    Values are clamped to [0, 1]. With `even`, the last row or column is repeated if the number of
    rows or columns is odd.
    """
    height, width = image.shape[2:]
    pixels = image.detach().to("cpu", torch.float32).clamp(0.0, 1.0)
    if even:
        pixels = pad(pixels, (0, width % 2, 0, height % 2), mode="replicate")
    samples = (pixels[0] * 255).round().byte().permute(1, 2, 0).contiguous().numpy()
    frame = pyav().VideoFrame.from_ndarray(samples, "rgb24")
    stored = {"format": "yuv420p", "dst_colorspace": "ITU709", "dst_color_range": "MPEG"}
    return frame.reformat(**stored, interpolation=_interpolation(), threads=1)


class Frame(NamedTuple):
    """A Frame is one frame of a film, rotated upright, and its time."""

    image: Tensor  # (1, 3, H, W), float32, sRGB in [0, 1], on the CPU
    time: Fraction  # in seconds from the film's start


class Film:
    """A Film reads the first video stream of a file. `with` closes the file at the end.

    A folder is a film of `fps` frames per second: its pictures in the order of their names. Only
    pictures with the extension of the first one are read, and the first one gives the size.

    Its YUV matrix and range are respected, and colours become sRGB by its primaries and transfer
    curve, HDR with the tone mapping of `pictures.color_spaces`. A film that states neither, or what
    cannot be converted, is read as sRGB, with 8 bits per sample. Transparency is dropped.

    Attributes:
        size: (height, width) of a frame in pixels, after its rotation upright.
        rate: frames per second, on average.
        count: number of frames, an estimate; 0 if unknown.
        start: time stamp in the file of its first frame or sound, in seconds.
        time_base: unit of the time stamps of frames, in seconds.
        pixel_aspect: width of a pixel over its height, after the rotation.
        comment: the text of "comment" in the file's metadata, or "".

    Raises:
        UserError: there is no such film, none of its frames can be decoded, or PyAV is missing.
    """

    def __init__(self, path: str | os.PathLike[str], fps: float = float(USUAL_RATE)) -> None:
        self.path = Path(path)
        self._folder_rate = Fraction(fps).limit_denominator(1001)
        self._files = ExitStack()
        with self.opened() as container:
            stream = self._video(container)
            tags = {key.lower(): text for key, text in container.metadata.items()}
            self.comment: str = tags.get("comment", "")
            self.rate = Fraction(stream.average_rate or stream.guessed_rate or USUAL_RATE)
            self.time_base = Fraction(stream.time_base)
            self.start = _start(container, stream)
            self.count = stream.frames or round((container.duration or 0) / 1e6 * self.rate)
            first = next(self._decoded(container, stream), None)
            if first is None:
                raise UserError(f"{path} has no frame that FFmpeg can read; save it as MP4 or GIF")
            a, b, c, d = _display_matrix(first, stream.codec_context.name)
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
        """Open the file once more, and return PyAV's container; it is closed with the film."""
        av = pyav()
        # A playlist may name only local files and is not reloaded; "file:" allows colons in a path.
        name, kind = f"file:{self.path}", None
        options = {"protocol_whitelist": "file", "max_reload": "0"}
        if self.path.is_dir():
            pictures = in_folder(self.path)
            if not pictures:
                raise UserError(f"{self.path} is a folder without pictures; name a film or frames")
            name, kind = f"{glob.escape(str(self.path))}/*{Path(pictures[0]).suffix}", "image2"
            rate = str(self._folder_rate)
            options = {"protocol_whitelist": "file", "pattern_type": "glob", "framerate": rate}
        elif not self.path.is_file():
            reason_why = "is a device, and no film" if self.path.exists() else "does not exist"
            raise UserError(f"{self.path} {reason_why}; check the path")
        try:
            container = av.open(name, format=kind, metadata_errors="replace", options=options)
        except (av.FFmpegError, OSError) as error:
            raise UserError(
                f"{self.path} is no film that FFmpeg can read ({reason(error)}); get an intact copy"
            ) from error
        return self._files.enter_context(container)

    def frames(self) -> Iterator[Frame]:
        """Yield all frames; each call starts at the first one (UserError: the film is damaged)."""
        last: Fraction | None = None
        container = self.opened()
        for frame in self._decoded(container, self._video(container)):
            last = self._time(frame, last)
            try:
                image = self._upright(frame)
            except (pyav().FFmpegError, ValueError) as error:
                damage = f"has a frame that is no picture ({reason(error)}); get an intact copy"
                if getattr(error, "errno", None) == errno.EOPNOTSUPP:
                    matrix = f"matrix {frame.colorspace} of ITU-T H.273"
                    damage = f"has colours that FFmpeg cannot convert ({matrix}); save it as BT.709"
                raise UserError(f"{self.path} {damage}") from error
            yield Frame(image, last)

    def images(self, size: tuple[int, int]) -> Iterator[Tensor]:
        """Yield all frames (1, 3, H, W) resized to (height, width) `size`."""
        for frame in self.frames():
            yield resize(frame.image, size)

    def bar(self, items: Iterable[Any]) -> Any:
        """Return a progress bar over `items`, one item for each frame."""
        look: dict[str, Any] = {"unit": "frame", "dynamic_ncols": True, "leave": None}
        return tqdm(items, total=self.count or None, disable=sys.stderr is None, **look)

    def _upright(self, frame: Any) -> Tensor:
        """Return PyAV's frame, rotated upright, as (1, 3, H, W), float32, sRGB in [0, 1]."""
        is_hd = frame.width > LARGEST_SD[0] or frame.height > LARGEST_SD[1]
        unsaid = frame.colorspace == UNSPECIFIED and not frame.format.is_rgb
        space = frame_colors(frame.color_primaries, frame.color_trc, str(self.path))
        colors = frame.reformat(
            *(*self._coded_size[::-1], "rgb24" if space is None else "rgb48le"),
            src_colorspace="ITU709" if unsaid and is_hd else None,
            interpolation=_interpolation(),
            threads=1,
        ).to_ndarray()
        values = unit(colors) if space is None else space.srgb_of(colors)
        image = torch.from_numpy(values).permute(2, 0, 1)[None]
        image = image.transpose(2, 3) if self._is_turned else image
        return image.flip(self._mirrored).contiguous()

    def _video(self, container: Any) -> Any:
        """Return the first video stream of a file, except the cover picture of a song."""
        cover = pyav().stream.Disposition.attached_pic
        for stream in container.streams.video:
            if not stream.disposition & cover:
                return stream
        raise UserError(f"{self.path} holds no film, only other things such as sound; name another")

    def _decoded(self, container: Any, stream: Any) -> Iterator[Any]:
        """Yield PyAV's frames; skip errors before the first, as in a film that lacks its start."""
        av = pyav()
        packets, count = container.demux(), 0
        while True:
            try:
                packet = next(packets, None)
                if packet is None:
                    break
                is_video = packet.stream_index == stream.index and packet.stream.type == "video"
                frames = packet.decode() if is_video else []
            except av.FFmpegError as error:
                if not count:
                    continue
                damage = f"is damaged after frame {count} ({reason(error)})"
                raise UserError(f"{self.path} {damage}; get an intact copy") from error
            count += len(frames)
            yield from frames

    def _time(self, frame: Any, last: Fraction | None) -> Fraction:
        """Return the time of a frame in seconds, later than `last`, the previous frame's time."""
        if frame.pts is None:
            return Fraction(0) if last is None else last + 1 / self.rate
        time = frame.pts * Fraction(frame.time_base) - self.start
        return time if last is None or time > last else last + self.time_base


def _display_matrix(frame: Any, codec: str) -> tuple[float, float, float, float]:
    """Return a, b, c, d: (x, y) of the frame is shown at (ax+cy, bx+dy) (ISO 14496-12)."""
    try:
        kind = pyav().sidedata.sidedata.Type.DISPLAYMATRIX
        if codec not in PNGS and (data := frame.side_data.get(kind)):
            a, b, _, c, d = struct.unpack("9i", bytes(data))[:5]
            return a, b, c, d
    except ValueError:  # PyAV does not know all side data of FFmpeg 8, such as EXIF
        angle = math.radians(frame.rotation)
        return math.cos(angle), -math.sin(angle), math.sin(angle), math.cos(angle)
    return 1, 0, 0, 1


def _start(container: Any, video: Any) -> Fraction:
    """Return the time stamp of a file's first frame or sound, in seconds, at least 0.

    It is rounded down to a multiple of the video's time base. Sound may begin a little before 0,
    because its decoder needs some samples before the first audible one.
    """
    streams = [video, *container.streams.audio]
    starts = [one.start_time * one.time_base for one in streams if one.start_time is not None]
    first = max(Fraction(0), min(starts, default=Fraction(0)))
    base = Fraction(video.time_base)
    return first // base * base
