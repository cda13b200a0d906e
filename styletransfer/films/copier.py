"""Paints a film with pixels that are copied from paintings of known photographs.

For each pixel of a frame, the most similar pixel of the photographs is found. The painting's pixel
at the same position is copied.
"""

import logging
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from styletransfer.copying.copied import copied, pixels
from styletransfer.copying.paired import Photographs
from styletransfer.errors import UserError
from styletransfer.films.flicker import crossfade
from styletransfer.films.motion import Motion, motion_between, warp
from styletransfer.job import Job
from styletransfer.objective.inputs import Correspondence
from styletransfer.optimize import Outcome
from styletransfer.pictures.images import blurred, resize, scaled_size, size_of
from styletransfer.system.files import write_atomic
from styletransfer.system.progress import progress_bar
from styletransfer.system.signals import interruptible

logger = logging.getLogger(__name__)

# A match is the position in a painting from which a pixel of a frame is copied. It is taken from
# the previous frame, moved by the motion, if the motion's reliability at the pixel, in [0, 1], is
# above RELIED; otherwise a search finds the match.
RELIED = 0.5
# A photograph in `style_source` may be a frame of the film. To find it, both are reduced to LOOKED
# pixels along the longer side. The photograph is the most similar frame if their mean square
# difference is below UNLIKE times the photograph's variance. For frames exported as JPEG or at a
# quarter of the size, this ratio is at most 0.03; for other photographs, it is above 1. The frame
# then replaces the photograph where their mean absolute difference, blurred by a Gaussian of
# standard deviation WIDE in pixels, is below UNLIKE_HERE.
LOOKED, UNLIKE, WIDE, UNLIKE_HERE = 96, 0.05, 4.0, 0.1
# A key is a frame that is also a photograph in `style_source`. The frame that the user is asked to
# paint next is more than NEAR_KEY frames away from each key.
NEAR_KEY = 5
# A search prefers keys that are near in time. The distance between a frame and a key is TIME_WEIGHT
# times the number of frames from one to the other, divided by the number of frames from the last to
# the next key. Other keys have the distance FAR, so that none of their pixels are taken.
TIME_WEIGHT, FAR = 0.1, 100.0
# A frame (1, 3, h, w), reduced to the size at which matches are searched, and its matches.
Matched = tuple[Tensor, Correspondence]
Frames = Callable[[], Iterable[Tensor]]
Numbers = Mapping[int, int]
EMPTY: Numbers = {}


class FrameCopier:
    """A FrameCopier paints frames in their order, with pixels copied from the paintings in `style`.

    These paint the photographs in `style_source`. Where the motion is reliable, a pixel is copied
    from the position of the same object in the previous frame, moved by fractions of a pixel;
    otherwise, and if the paintings have a screen such as halftone, a search finds the position.
    Colours always come from a painting, never from a
    painted frame, so the film stays crisp. The search alone paints the first frame, the first after
    a cut, and each key: a frame that is one of the photographs.

    From a key, positions are also followed back in time, to the previous key or to a cut. A frame
    between two keys is a mixture of both copies; the weight of the second rises linearly in time. A
    frame without an earlier key in its scene is the copy that is followed back.

    The positions are saved in `folder`, so that a film can be continued. `frames` is a function
    that yields all frames of the film, of the size of the job's finest scale. `numbers` maps the
    indices of photographs to the numbers of their frames, as far as these are known.
    """

    def __init__(self, job: Job, folder: Path, frames: Frames, numbers: Numbers = EMPTY) -> None:
        self.pictures, self.folder, self.frames = job.full_size(), folder, frames
        self.keys = self._find_keys(numbers)
        self.photographs = Photographs(job.extractor, self.pictures)
        self.number = 0  # number of the next frame
        # One number for each painted frame: the mean absolute difference, in [0, 1], between the
        # frame and the pixels of the photographs that match it.
        self.apart: list[float] = []
        self.before: Matched | None = None  # the last frame and its matches, or None
        self.since = -1  # number of the last key in the present scene, or -1
        self.followed = -1  # number of the key last followed back in time, or -1

    def _find_keys(self, known: Numbers) -> dict[int, int]:
        """Return the keys, as frame number -> index of the photograph that shows it; log them.

        The photograph may have been exported with other compression, in another size, or with
        slightly other colours, so the most similar frame is taken. Its pixels replace those of the
        photograph wherever the two look alike. Several frames, if they are equal, are keys alike.
        """
        size = scaled_size(size_of(self.pictures.content), LOOKED)
        sources = list(self.pictures.sources)
        photos = torch.cat([resize(one.float(), size) for one in sources])
        variance = photos.var((1, 2, 3)).clamp_min(1e-6)
        # For each photograph, the most similar frame so far: (distance, frame, frame's numbers).
        best: list[tuple[float, Tensor, list[int]]] = [(UNLIKE, one, []) for one in sources]
        film, keys = self.frames(), dict[int, int]()
        with interruptible(), suppress(UserError):  # a film is read up to its first damage
            for number, frame in enumerate(film):
                square = (photos - resize(frame.to(photos), size)).square()
                for style, apart in enumerate((square.mean((1, 2, 3)) / variance).tolist()):
                    least, _, numbers = best[style]
                    if known.get(style, number) == number and apart < least:
                        best[style] = apart, frame, [number]
                    elif style not in known and apart == least:
                        numbers.append(number)
        for style, (_, frame, numbers) in enumerate(best if film else ()):
            keys |= dict.fromkeys(numbers, style)
            what = f"frame {numbers[0]} of the film" if numbers else "no frame of the film"
            logger.info("%s: its photograph is %s", self.pictures.names[style + 1], what)
            own = resize(frame.to(sources[style]), size_of(sources[style]))
            unlike = blurred((own - sources[style]).abs().mean(1, keepdim=True), WIDE)
            sources[style] = torch.where(unlike < UNLIKE_HERE, own, sources[style])
        self.pictures = replace(self.pictures, sources=tuple(sources))
        return dict(sorted(keys.items()))

    def paint(self, content: Tensor) -> Outcome:
        """Paint the next frame (1, 3, H, W), which has the size of the job's finest scale."""
        content, number = content.to(self.pictures.content), self.number
        frame = self.photographs.reduced(content)
        found, is_carried = self._matched(number, frame, self.before)
        if not is_carried:
            self.since = number if number in self.keys else -1
        picture, since = self._copied(found, content), self.since
        apart = self._apart(found, frame)
        if (later := self._later(number)) is not None:
            share = (number - since) / (self.followed - since) if since >= 0 else 1.0
            picture = crossfade(picture, self._copied(later, content), share)
            apart = min(apart, self._apart(later, frame))
        self.apart.append(apart)
        if (protection := replace(self.pictures, content=content).protection) is not None:
            picture = protection.hold(picture)
        self._save(f"{number:06d}", found)
        image = picture.float().cpu()
        return Outcome(image, image, {}, 0)

    def worst(self) -> int | None:
        """Return the number of the frame to paint by hand next; None if all are near a key.

        In this frame and the NEAR_KEY frames before and after it, none of them a key, the least
        value of `apart` is larger than around any other frame.
        """
        least, numbers = {}, range(len(self.apart))
        for number in numbers:
            near = numbers[max(number - NEAR_KEY, 0) : number + NEAR_KEY + 1]
            if self.keys.keys().isdisjoint(near):
                least[number] = min(self.apart[one] for one in near)
        return max(least, key=least.__getitem__, default=None)

    def _apart(self, found: Correspondence, frame: Tensor) -> float:
        """Return the mean absolute difference between a reduced frame and its matched pixels."""
        return float((pixels(found, self.photographs.sources) - frame).abs().mean())

    def _copied(self, found: Correspondence, content: Tensor) -> Tensor:
        """Return the picture (1, 3, H, W) that is copied from the matches `found` of a frame."""
        places = self.photographs.full_size(found, content)
        return copied(places, self.pictures.styles)

    def follow(self, content: Tensor, _: Tensor) -> None:
        """Store the input frame `content` and its matched positions, for the next frame."""
        name, last = f"{self.number:06d}", f"{self.number - 1:06d}"
        # Only the newest frame's matches are on the disk. When a film is resumed, `follow` is also
        # called for older frames, and `_load` then finds no matches.
        found, self.since, self.apart = self._load(name)
        self.before = None if found is None else (self.photographs.reduced(content), found)
        for old in (self._path(last), self._path(f"{name}-later")):
            old.unlink(missing_ok=True)
        self.number += 1

    def _matched(
        self, number: int, frame: Tensor, near: Matched | None
    ) -> tuple[Correspondence, bool]:
        """Return the matches of a reduced frame, and whether some come from the frame `near`.

        `near` is the frame before or after it. Its matches, moved by the motion, are used where the
        motion is reliable, except for a key and across a cut. They are not used either if the
        paintings have a screen: it is fixed to the page, and does not move with things.
        """
        carried = None
        with interruptible():
            if near is not None and number not in self.keys:
                motion = motion_between(frame, near[0])
                if not motion.is_cut:
                    is_relied = motion.reliability[0, 0].cpu() > RELIED
                    carried = moved(near[1], motion), is_relied & (not self.photographs.screen)
            found = self.photographs.match(frame, carried, self._distances(number))
        return found, carried is not None

    def _around(self, number: int) -> list[int]:
        """Return the last key up to frame `number` and the next key, as far as they exist."""
        keys = list(self.keys)
        place = bisect(keys, number)
        return keys[max(place - 1, 0) : place + 1]

    def _distances(self, number: int) -> list[float]:
        """Return the weighted distance in time between frame `number` and each photograph.

        It is 0 for a photograph that is not a frame of the film.
        """
        styles, around = range(len(self.photographs.sources)), self._around(number)
        distances = [FAR if style in self.keys.values() else 0.0 for style in styles]
        for key in around:
            span = around[-1] - around[0]
            distances[self.keys[key]] = TIME_WEIGHT * abs(number - key) / span if span else 0.0
        return distances

    def _later(self, number: int) -> Correspondence | None:
        """Return the matches of frame `number` that are followed back in time from the next key.

        The result is None for a key, without a next key, and if there is a cut before the next key.
        """
        key = max(self._around(number), default=-1)
        if key <= number or number in self.keys:
            return None
        if key != self.followed:
            self.followed = key
            self._follow_back(number, key)
        return self._load(f"{number:06d}-later")[0]

    def _follow_back(self, first: int, key: int) -> None:
        """Save the matches of the frames from `key` back to frame `first` or to a cut."""
        # A film can only be decoded forward, so the frames are first stored on the disk.
        self.folder.mkdir(parents=True, exist_ok=True)  # it does not exist before frame 0
        for number, frame in enumerate(islice(self.frames(), first, key + 1), first):
            reduced = self.photographs.reduced(frame).half()
            self._waiting(number).write_bytes(save({"frame": reduced}))
        later: Matched | None = None
        back = range(key, first - 1, -1)
        with progress_bar(back, desc="following back", unit="frame", leave=False) as bar:
            for number in bar:
                frame = load_file(self._waiting(number))["frame"]
                frame = frame.to(self.pictures.content.device, torch.float32)
                found, is_carried = self._matched(number, frame, later)
                if not is_carried and number < key:
                    break
                later = frame, found
                self._save(f"{number:06d}-later", found)
        for number in range(first, key + 1):
            self._waiting(number).unlink()

    def _waiting(self, number: int) -> Path:
        return self._path(f"{number:06d}-frame")

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.safetensors"

    def _save(self, name: str, found: Correspondence) -> None:
        tensors = {"places": found.places, "since": torch.tensor(self.since)}
        tensors["apart"] = torch.tensor(self.apart)
        # `save_file` is not used: on a full disk, it raises an error that is not an OSError.
        write_atomic(self._path(name), save(tensors))

    def _load(self, name: str) -> tuple[Correspondence | None, int, list[float]]:
        """Return the saved matches, `since` and `apart`, or None, -1 and zeros if unreadable."""
        try:
            tensors = load_file(self._path(name))
            cells = list(map(size_of, self.photographs.sources))
            found = Correspondence(tensors["places"], cells)
            return found, int(tensors["since"]), tensors["apart"].tolist()
        except (OSError, SafetensorError, KeyError):
            return None, -1, [0.0] * (self.number + 1)


def moved(shown: Correspondence, motion: Motion) -> Correspondence:
    """Return the matches of a frame, made from `shown`, the matches of a neighbouring frame.

    `motion` leads from the frame to its neighbour, the frame before or after it. The displacement
    from a pixel to its match is interpolated, except where it jumps.
    """
    flow = motion.flow.cpu().float()
    moves = (shown.places - shown.own)[None]
    near, smooth = (warp(moves, flow, mode) for mode in ("nearest", "bilinear"))
    jumps = (near - smooth).abs().amax(1, keepdim=True) > 0.5
    places = shown.own
    places[1:] += flow[0].flip(0)
    places += torch.where(jumps, near, smooth)[0]
    places[0].round_()
    return replace(shown, places=places)
