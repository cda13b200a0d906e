"""The sound of a film, copied into another as it is: packets are moved, nothing is decoded."""

import io
import logging
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from styletransfer.films.ffmpeg import pyav
from styletransfer.films.read import Film

logger = logging.getLogger(__name__)


class Sound:
    """All sound of a film, on its way into PyAV's container `output`, whose header is not written.

    A kind of sound that the container cannot hold is left out, with a warning that says `name`.
    """

    def __init__(self, film: Film, output: Any, name: str) -> None:
        self._input = film.opened()
        self._start = film.start
        self._output = output
        self._streams: dict[int, Any] = {}
        for stream in self._input.streams.audio:
            if _holds(output.format.name, film, stream.index):
                self._streams[stream.index] = output.add_stream_from_template(stream)
            else:
                kind = stream.codec_context.codec.canonical_name if stream.codec_context else "such"
                logger.warning("%s cannot hold %s sound, and goes without", name, kind)
        self._packets = self._moved()
        self._next = next(self._packets, None)

    @property
    def is_broadcast(self) -> bool:
        """Whether there is AAC that is described in every packet, and not at the beginning."""
        contexts = [stream.codec_context for stream in self._streams.values()]
        return any(context.name == "aac" and not context.extradata for context in contexts)

    def copy(self, until: Fraction | None = None) -> None:
        """Write what is heard until a time in seconds; without one, all that is left."""
        while self._next is not None:
            time, packet = self._next
            if until is not None and time > until:
                return
            self._output.mux(packet)
            self._next = next(self._packets, None)

    def _moved(self) -> Iterator[tuple[Fraction, Any]]:
        """Yield packets that belong to the new film, and their times."""
        if not self._streams:
            return
        last: dict[int, int] = {}
        for packet in self._input.demux([self._input.streams[index] for index in self._streams]):
            if packet.dts is None or packet.dts <= last.get(packet.stream_index, packet.dts - 1):
                continue  # the end, or damage that no container takes
            last[packet.stream_index] = packet.dts
            start = round(self._start / packet.time_base)
            packet.dts -= start
            packet.pts = packet.dts if packet.pts is None else packet.pts - start
            time = packet.dts * Fraction(packet.time_base)
            packet.stream = self._streams[packet.stream_index]
            yield time, packet


def _holds(container: str, film: Film, index: int) -> bool:
    """Tell whether a container takes a sound: some only say so after a packet and their end."""
    av = pyav()
    try:
        with film.opened() as source, av.open(io.BytesIO(), "w", format=container) as trial:
            stream = source.streams[index]
            copy = trial.add_stream_from_template(stream)
            packet = next(source.demux(stream))
            packet.stream = copy
            trial.mux(packet)
    except (ValueError, OSError, av.FFmpegError):
        return False
    return True
