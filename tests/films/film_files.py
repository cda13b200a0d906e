"""Writes and reads tiny films for tests, with PyAV."""

from fractions import Fraction

import numpy as np
from helpers import needs
from PIL import Image

from styletransfer.films.read import Film

av = needs("video", "av")

TICK = Fraction(1, 9000)  # unit of the films' times, in seconds
BT601, BT709, UNSAID = 5, 1, 2
"""Numbers of YUV matrices in ITU-T H.273; UNSAID means that a film does not state its matrix."""


def make(
    path,
    images,
    times=None,
    *,
    codec="libx264",
    sound=(),
    rotation=None,
    aspect=None,
    matrix=BT709,
    said=None,
    start=0.0,
    **options,
):
    """Write images (1, 3, H, W) with even sides as a film; return its path.

    Frames come at `times` in seconds, or 10 per second. `sound` lists codecs, one track each.
    `rotation` is degrees anticlockwise, then flags to mirror left-right and top-bottom. The YUV
    matrix is `matrix`, but the file states `said`. All times are shifted by `start` seconds.
    """
    with av.open(str(path), "w", container_options={"output_ts_offset": str(start)}) as film:
        stream = film.add_stream(codec, rate=10, options={"crf": "10"} | options)
        stream.height, stream.width = images[0].shape[2:]
        stream.pix_fmt = "yuv420p"
        context = stream.codec_context
        context.time_base, context.sample_aspect_ratio = TICK, aspect or 1
        context.color_range, context.color_trc, context.colorspace = 1, BT709, said or matrix
        if rotation is not None:
            stream.set_display_rotation(*rotation)
        tracks = [film.add_stream(name, rate=48000, layout="mono") for name in sound]
        for number, image in enumerate(images):
            samples = np.ascontiguousarray((image[0] * 255).round().byte().permute(1, 2, 0).numpy())
            frame = av.VideoFrame.from_ndarray(samples, "rgb24").reformat(
                format="yuv420p",
                dst_colorspace="ITU709" if matrix == BT709 else "ITU601",
                dst_color_range="MPEG",
            )
            frame.colorspace = said or matrix
            time = Fraction(number, 10) if times is None else times[number]
            frame.pts, frame.time_base = round(time / TICK), TICK
            film.mux(stream.encode(frame))
        film.mux(stream.encode(None))
        for track in tracks:
            film.mux(tone(track, seconds=len(images) / 10))
    return path


def tone(stream, seconds):
    """Return encoded packets of a 440 Hz tone of `seconds`."""
    size, packets = 960, []
    shape = av.AudioResampler(stream.codec_context.format, "mono", 48000)
    for start in range(0, round(seconds * 48000), size):
        wave = 8000 * np.sin(2 * np.pi * 440 / 48000 * np.arange(start, start + size))
        frame = av.AudioFrame.from_ndarray(wave.astype(np.int16)[None], "s16", "mono")
        frame.sample_rate, frame.pts = 48000, start
        for part in shape.resample(frame):
            packets += stream.encode(part)
    return packets + stream.encode(None)


def frames(path):
    """Return all frames of a film."""
    with Film(path) as film:
        return list(film.frames())


def sounds(path):
    """Return (codec, packets, times of the packets in seconds) of each sound track of a film."""
    tracks = []
    for number in range(len(av.open(str(path)).streams.audio)):
        with av.open(str(path)) as film:
            stream = film.streams.audio[number]
            packets = [packet for packet in film.demux(stream) if packet.size]
            times = [float(packet.pts * packet.time_base) for packet in packets]
            name = stream.codec_context.codec.canonical_name
            tracks.append((name, [bytes(packet) for packet in packets], times))
    return tracks


def still(path, lengths, size=(34, 26)):
    """Write an animated picture whose frames take `lengths` in seconds; return its path."""
    first, *others = (Image.new("RGB", size, (50 * n + 9, 80, 120)) for n in range(len(lengths)))
    milliseconds = [round(1000 * length) for length in lengths]
    first.save(path, save_all=True, append_images=others, duration=milliseconds)
    return path


def seconds(path):
    """Return the duration that a film's file states, and that of its last frame, in seconds."""
    with av.open(str(path)) as container:
        stated = container.duration / 1e6
        shown = [frame.duration * frame.time_base for frame in container.decode(video=0)]
    return stated, float(shown[-1])
