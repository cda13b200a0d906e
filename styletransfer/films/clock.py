"""Corrects the time stamps of a film's packets where they cannot be true.

If several recordings were joined byte after byte, as .ts and .vob files can be, the time stamps
start again in the middle of the file. They are then shifted, so that each recording follows the
previous one.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

# A new recording begins where the time stamps of a stream go back: for sound, by more than BACK
# seconds, as in the program ffmpeg; for the frames, by more than half a frame's duration. Pauses
# longer than LONG seconds are kept, and a warning reports them.
BACK, LONG = Fraction(1, 10), Fraction(10)
# Largest delay of sound behind its picture, in seconds, where recordings were joined (EBU R 37).
LATE = Fraction(60, 1000)
# In H.264 and HEVC, at most this number of frames are stored before a frame that is shown earlier.
REORDERED = 16


class Track:
    """A Track holds the newest times of one stream, in ticks: units of the stream's time base."""

    def __init__(self, stream: Any, usual: Fraction) -> None:
        self.kind, self.unit = stream.type, Fraction(stream.time_base)
        self.usual = max(1, round(usual / self.unit)) if self.kind == "video" else 1
        self.stated: int | None = None  # the newest time stamp in the file
        self.without = 0  # total duration of later packets, which have no time stamp
        self.time: int | None = None  # corrected time of the newest packet
        self.end = 0  # corrected time at which that packet ends
        # In the file, the new recording's sound may begin before its frames. Until these frames
        # come: the time at which the old sound ends, and the number of new packets that are moved
        # to a later time, so that they begin after it.
        self.old_end: int | None = None
        self.early = 0

    def ticks(self, seconds: Fraction) -> int:
        """Return `seconds` as a number of ticks, rounded to the nearest integer."""
        return round(seconds / self.unit)

    def set(self, packet: Any, stated: int | None, time: int) -> None:
        """Store a packet's times; sound without a duration takes the time since the last packet."""
        if self.kind == "audio" and self.time is not None:
            step = time - self.time
            self.usual = step if 0 < step <= self.ticks(BACK) else self.usual
        length = max(1, packet.duration or self.usual)
        self.without = self.without + length if stated is None else 0
        self.stated, self.time = self.stated if stated is None else stated, time
        self.end = time + length

    def is_back(self, stated: int) -> bool:
        """Return whether a time stamp is so early that a new recording must have begun."""
        if self.stated is None:
            return False
        slack = self.usual // 2 if self.kind == "video" else self.ticks(BACK)
        return stated < self.stated + self.without - max(slack, self.without // 2)


class Clock:
    """A Clock corrects the times of a film's packets, which it reads in the order of the file.

    The frames of a recording follow the frames of the previous one, and its sound the sound of the
    previous one. If sound would come later than its picture by more than LATE, the picture is
    delayed. In the stream `painted`, frames without a duration come at `rate` per second.
    """

    def __init__(self, painted: int, rate: Fraction) -> None:
        self.painted, self.usual = painted, 1 / rate
        self.tracks: dict[int, Track] = {}
        # Seconds that are added to the times of the current and of the previous recording.
        self.shift = self.old_shift = Fraction(0)
        self.joins = self.moved = 0
        self.pauses: list[float] = []  # in seconds

    def mended(self, packets: Iterator[Any]) -> Iterator[Any]:
        """Yield the packets of all streams of a newly opened file, with corrected times."""
        for packet in packets:
            if packet.size:
                stream = packet.stream
                if stream.index not in self.tracks:
                    self.tracks[stream.index] = Track(stream, self.usual)
                move = self._frame if stream.index == self.painted else self._copied
                move(self.tracks[stream.index], packet)
            yield packet

    def told(self) -> list[str]:
        """Return warnings about joined recordings, long pauses and moved packets, a line each."""
        told = []
        if self.joins:
            said = f"its times begin anew {self.joins} times, as in joined recordings"
            told.append(f"{said}; each part follows the one before")
        if self.pauses:
            said = f"{len(self.pauses)} pauses of more than {LONG} s, of up to"
            told.append(f"{said} {max(self.pauses):.0f} s, are kept")
        if self.moved:
            told.append(
                f"{self.moved} packets beside the frames come later than stated, after others"
            )
        return told

    def _frame(self, track: Track, packet: Any) -> None:
        """Shift the times of a packet of the painted stream; a missing time stays missing."""
        stated, shown = packet.dts, packet.pts
        if stated is not None:
            if track.is_back(stated):
                self._join(track, packet)
            time = stated + track.ticks(self.shift)
            if track.time is not None and time - track.time > track.ticks(LONG):
                self.pauses.append(float((time - track.time) * track.unit))
            track.set(packet, stated, time)
            packet.dts = time
        elif track.time is not None:
            track.set(packet, None, track.end)
        if shown is not None:
            packet.pts = shown + track.ticks(self.shift)

    def _join(self, track: Track, packet: Any) -> None:
        """Change the shift: `packet` has the first frame of the next of the joined recordings."""
        ahead = 0 if packet.pts is None else max(0, packet.pts - packet.dts)
        begin = track.end * track.unit
        for sound in self.tracks.values():
            if sound.kind == "audio":
                end = sound.end if sound.old_end is None else sound.old_end
                begin = max(begin, end * sound.unit - LATE - ahead * track.unit)
            self.moved -= sound.early  # with the new shift, these packets are not late
            sound.old_end, sound.early = None, 0
        self.old_shift, self.shift = self.shift, begin - packet.dts * track.unit
        self.joins += 1

    def _copied(self, track: Track, packet: Any) -> None:
        """Shift the times of a packet of another stream, so that they never go back."""
        shift, back, shown = track.ticks(self.shift), track.ticks(BACK), packet.pts
        stated = shown if packet.dts is None and track.kind != "video" else packet.dts
        if stated is None:
            first = 0 if shown is None else shown + shift - REORDERED * track.usual
            time = first if track.time is None else track.end
        else:
            time = stated + shift
        if stated is not None and track.time is not None and abs(time - track.end) > back:
            if track.is_back(stated):
                track.old_end = track.end if track.old_end is None else track.old_end
            old, film = stated + track.ticks(self.old_shift), self.tracks.get(self.painted)
            if abs(old - track.end) <= back:  # the packet still belongs to the previous recording
                time = old
            elif track.kind == "audio":
                near = film and abs(time * track.unit - film.end * film.unit) <= LONG
                time = time if near else track.end
        is_rising = track.kind in ("audio", "video")  # several subtitles may have the same time
        if track.time is not None and time < track.time + is_rising:
            time = track.end if is_rising else track.time
        late = 0 if stated is None else time - stated - shift
        # In joined recordings, a packet counts as moved only if it is more than LATE seconds late.
        is_late = late > (track.ticks(LATE) if self.joins else 0)
        self.moved += is_late
        track.early += is_late and track.old_end is not None
        track.set(packet, stated, time)
        packet.dts = time
        if is_rising and not packet.duration:
            packet.duration = track.end - time  # players leave out a last packet without duration
        packet.pts = time if shown is None or stated is None else max(time, time + shown - stated)
