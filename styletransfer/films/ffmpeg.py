"""Calls FFmpeg through PyAV: opens and decodes films, and reads and makes their frames."""

import math
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from styletransfer.errors import imported
from styletransfer.films.frame import MAX_PIXELS

# In these codecs, the side data of frames is not read. It may hold the name of a colour profile;
# PyAV frees this name twice, and the process crashes. Frames of other codecs hold no profile name.
PNGS = ("png", "apng")
# Codec -> FFmpeg's name of a decoder that reads transparency.
TRANSPARENT = {"vp8": "libvpx", "vp9": "libvpx-vp9"}


def pyav() -> Any:
    """Return the module `av` (UserError if PyAV is not installed)."""
    return imported("av", "films need PyAV;", "video")


def open_container(file: Any, mode: str = "r", **options: Any) -> Any:
    """Open a file as PyAV's container; metadata bytes that are not UTF-8 become surrogates."""
    av = pyav()
    # PyAV 19 has no argument `metadata_errors`, because it always uses "surrogateescape".
    if hasattr(av.container.Container, "metadata_errors"):
        options["metadata_errors"] = "surrogateescape"
    return av.open(file, mode, **options)


def failures() -> tuple[type[Exception], ...]:
    """Return the exceptions that PyAV raises for wrong or damaged files.

    FFmpeg's errors have a class of their own. PyAV also raises Python's errors, for example for a
    decoder that could not be opened, a number that is too large or a text that is not UTF-8.
    """
    python = (OSError, EOFError, ValueError, ArithmeticError, LookupError, RuntimeError)
    return (pyav().FFmpegError, *python)


def reason(error: Exception) -> str:
    """Return the message of an error of FFmpeg, PyAV or the system."""
    return getattr(error, "strerror", None) or str(error)


def readable(text: str) -> str:
    """Return a text from metadata, with U+FFFD in place of bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def interpolation() -> Any:
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
    return frame.reformat(**stored, interpolation=interpolation(), threads=1)


def display_matrix(frame: Any, codec: str) -> tuple[float, float, float, float]:
    """Return (a, b, c, d): pixel (x, y) is shown at (ax + cy, bx + dy), times a positive factor.

    See ISO 14496-12. A shift of the picture is left out.
    """
    try:
        kind = pyav().sidedata.sidedata.Type.DISPLAYMATRIX
        if codec not in PNGS and (data := frame.side_data.get(kind)):
            a, b, _, c, d = struct.unpack("9i", bytes(data))[:5]
            return a, b, c, d
    except ValueError:  # raised for side data that PyAV does not know, such as EXIF
        angle = math.radians(frame.rotation)
        return math.cos(angle), -math.sin(angle), math.sin(angle), math.cos(angle)
    return 1, 0, 0, 1


def has_alpha(frame: Any) -> bool:
    """Return whether a frame of PyAV may have transparent pixels."""
    kind = frame.format
    return kind.has_palette or any(component.is_alpha for component in kind.components)


def decoder(stream: Any) -> Callable[[Any], list[Any]]:
    """Return the function that decodes a packet of a stream to PyAV's frames.

    FFmpeg's own decoders of VP8 and VP9 ignore transparency; libvpx decodes transparent films.
    """
    context = stream.codec_context  # None for a codec that FFmpeg does not know
    name = TRANSPARENT.get(context.name) if context is not None else None
    if name is None or stream.metadata.get("alpha_mode") != "1":
        return lambda packet: packet.decode()
    context = pyav().CodecContext.create(name, "r")
    context.options = {"max_pixels": str(MAX_PIXELS)}
    return lambda packet: context.decode(packet if packet.size else None)


def deinterlaced(frames: Iterable[Any]) -> Iterator[Any]:
    """Yield PyAV's frames; interlaced frames are deinterlaced, so that each shows one moment.

    Every second line of an interlaced frame shows another moment, so edges of moving objects look
    like combs. FFmpeg's filter bwdif replaces these lines, from the frame and its neighbours. If
    `frames` raises one of `failures()`, it is raised after the last frame.
    """
    graph, kind = None, None
    damage: Exception | None = None
    try:
        for frame in frames:
            now = frame.width, frame.height, frame.format.name
            if graph is not None and kind != now:
                yield from _filtered(graph, None)
                graph = None
            if graph is None and not frame.interlaced_frame:
                yield frame
                continue
            if graph is None:
                graph, kind = _bwdif(frame), now
            yield from _filtered(graph, frame)
    except failures() as error:
        damage = error
    if graph is not None:
        yield from _filtered(graph, None)
    if damage is not None:
        raise damage


def _bwdif(frame: Any) -> Any:
    """Return FFmpeg's filter graph that deinterlaces frames of the size and format of `frame`."""
    graph = pyav().filter.Graph()
    size = {"width": frame.width, "height": frame.height, "format": frame.format}
    source = graph.add_buffer(**size, time_base=frame.time_base)
    bwdif, sink = graph.add("bwdif", "mode=send_frame:deint=interlaced"), graph.add("buffersink")
    source.link_to(bwdif)
    bwdif.link_to(sink)
    graph.configure()
    return graph


def _filtered(graph: Any, frame: Any) -> Iterator[Any]:
    """Push a frame, or None for the end, into a filter graph; yield the frames that are ready."""
    graph.push(frame)
    with suppress(BlockingIOError, EOFError):
        while True:
            yield graph.pull()
