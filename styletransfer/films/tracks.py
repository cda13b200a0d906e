"""Copies sound, subtitles, chapters, attachments and data from one film into another."""

import io
import logging
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from styletransfer.errors import UserError
from styletransfer.films.ffmpeg import failures, open_container, pyav, readable, reason
from styletransfer.films.read import Film

logger = logging.getLogger(__name__)

# PyAV's name of a kind of stream -> its name in messages.
KINDS = {"audio": "sound", "video": "pictures", "subtitle": "subtitles"}


class Tracks:
    """Tracks copies all streams of a film, except the painted one, into PyAV's container `output`.

    Packets are not decoded. Chapters, and the languages, titles and flags of streams are copied.
    The new stream `painted`, of the painted frames, gets the language and title of the input's,
    and becomes the default. Make a Tracks before the container's header is written. What the
    container cannot hold is left out; a warning then calls the output `name`.
    """

    def __init__(self, film: Film, output: Any, painted: Any, name: str) -> None:
        self._film, self._output = film, output
        self._streams: dict[int, Any] = {}  # index in the film -> copy in `output`
        self._packets: Iterator[tuple[Fraction, Any]] = iter(())
        painted.disposition = pyav().stream.Disposition.default
        if film.painted is not None:
            source = film.opened()
            painted.metadata.update(_names(source.streams[film.painted].metadata))
            output.set_chapters([self._moved_chapter(one) for one in source.chapters()])
            self._add(source.streams, name)
            self._packets = self._moved(source)
        self._next = next(self._packets, None)

    def copy(self, until: Fraction | None = None) -> None:
        """Write the packets up to the time `until` in seconds, or all that remain if None."""
        while self._next is not None:
            time, packet = self._next
            if until is not None and time > until:
                return
            self._output.mux(packet)
            self._next = next(self._packets, None)

    def _add(self, streams: Any, name: str) -> None:
        """Add a copy of each stream that `output` can hold; log the names of the others."""
        lost = []
        for stream in streams:
            # A stream with the flag "discard" holds the titles of an MP4's chapters.
            hidden = stream.discard == pyav().stream.Discard.all
            if stream.index == self._film.painted or hidden:
                continue
            if not _holds(self._output.format.name, self._film, stream.index):
                codec = stream.codec_context and stream.codec_context.codec.canonical_name
                what = codec or stream.metadata.get("filename") or "unknown"
                lost.append(f"{readable(what)} {KINDS.get(stream.type, stream.type)}")
            elif (copy := _copied(stream, self._output, self._film)) is not None:
                self._streams[stream.index] = copy
        if lost:
            all_lost = ", ".join(dict.fromkeys(lost))
            logger.warning("%s cannot hold %s, and goes without", name, all_lost)

    def _moved(self, source: Any) -> Iterator[tuple[Fraction, Any]]:
        """Yield (time in seconds, packet); times are shifted so that the new film starts at 0."""
        try:
            for packet in self._film.packets(source):
                copy = self._streams.get(packet.stream.index)
                if copy is None or not packet.size:
                    continue  # a packet of another stream, or an empty one at a stream's end
                start = round(self._film.start / packet.time_base)
                packet.dts, packet.pts = packet.dts - start, packet.pts - start
                time = packet.dts * Fraction(packet.time_base)
                packet.stream = copy
                yield time, packet
        except failures() as error:
            damage = f"is damaged ({reason(error)}); get an intact copy"
            raise UserError(f"{self._film.path} {damage}") from error

    def _moved_chapter(self, chapter: dict[str, Any]) -> dict[str, Any]:
        start = round(self._film.start / chapter["time_base"])
        moved = {key: max(0, chapter[key] - start) for key in ("start", "end")}
        return chapter | moved


def _names(metadata: dict[str, str]) -> dict[str, str]:
    """Return the language and the title in a stream's metadata; MP4 calls some titles "name"."""
    title = metadata.get("title") or metadata.get("name")
    language = metadata.get("language")
    return {key: text for key, text in (("title", title), ("language", language)) if text}


def _copied(stream: Any, output: Any, film: Film) -> Any:
    """Add a copy of a stream to a container; return it, or None if it holds no packets."""
    cover = pyav().stream.Disposition.attached_pic
    if stream.disposition & cover and "matroska" in output.format.name:
        with film.opened() as source:
            data = bytes(next(source.demux(stream.index)))
        kind = stream.codec_context.name
        name = stream.metadata.get("filename", f"cover.{kind.replace('mjpeg', 'jpg')}")
        output.add_attachment(name, f"image/{kind.replace('mjpeg', 'jpeg')}", data)
        return None
    copy = output.add_stream_from_template(stream, opaque=True)
    copy.metadata.update(stream.metadata | _names(stream.metadata))
    copy.disposition = stream.disposition
    return None if stream.type == "attachment" else copy


def _holds(container: str, film: Film, index: int) -> bool:
    """Return whether a container format accepts stream `index`, by writing its first packet."""
    try:
        with film.opened() as source, open_container(io.BytesIO(), "w", format=container) as trial:
            stream = source.streams[index]
            if stream.type == "attachment" and container == "webm":
                return False  # FFmpeg raises no error, but would leave the attachment out
            copy = _copied(stream, trial, film)
            packet = next(source.demux(stream))
            if copy is None or not packet.size:
                trial.start_encoding()
            else:
                packet.stream = copy
                trial.mux(packet)
    except failures():
        return False
    return True
