"""Reads films from picture files: a folder of frames, or an animated GIF, PNG, WebP or AVIF.

They are read with Pillow. FFmpeg would not read an animated WebP, would end a GIF without times
after its first frame, and would read the cover of an AVIF instead of the film.
"""

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from PIL import Image

from styletransfer.errors import UserError
from styletransfer.films.frame import Frame, check_size
from styletransfer.formats import read_image
from styletransfer.formats.folders import in_folder, picture_formats, warn_of_others
from styletransfer.formats.stored import ORIENTATION
from styletransfer.pictures import images

# Pillow's names of the formats that may be animated.
ANIMATED = ("GIF", "PNG", "WEBP", "AVIF")
# In an animation, a frame's duration of at most BRIEF milliseconds counts as USUAL milliseconds, as
# in all browsers.
BRIEF, USUAL = 10, 100
# Unit of the times of an animated picture, in seconds. Milliseconds and the frame durations of
# usual films are multiples of this unit.
TICK = Fraction(1, 90000)
# Largest denominator of a duration in an animated PNG.
FINEST = 2**16 - 1


class FrameFolder:
    """A FrameFolder is a film whose frames are the pictures in a folder.

    The frames are sorted by name, where numbers count as numbers: 9.png is before 10.png. If there
    are several formats, the frames are the pictures of the most frequent format; a warning names
    the other files. `rate` is in frames per second.

    Raises:
        UserError: the folder has no pictures, or two of them have different sizes.
    """

    def __init__(self, folder: Path, rate: Fraction) -> None:
        found = sorted(map(Path, in_folder(folder)), key=_natural)
        if not found:
            raise UserError(f"{folder} is a folder without pictures; name a film or frames")
        most = Counter(map(_format, found)).most_common(1)[0][0]
        self.paths = [path for path in found if _format(path) == most]
        warn_of_others(str(folder), tuple(one.name for one in found if one not in self.paths))
        self.rate, self.time_base, self.count = rate, 1 / rate, len(self.paths)
        self.size = images.read(self.paths[0]).size
        for path in self.paths:
            with suppress(Exception), _opened(path) as image:
                if (size := _upright_size(image)) != self.size:
                    break
        else:
            return
        raise self._of_another_size(path, size)

    def frames(self) -> Iterator[Frame]:
        """Yield all frames (UserError if a picture cannot be read, or has another size)."""
        for number, path in enumerate(self.paths):
            picture = images.read(path)
            if picture.size != self.size:
                raise self._of_another_size(path, picture.size)
            image = images.on_white(picture.rgb, picture.alpha)
            yield Frame(image, number * self.time_base, self.time_base)

    def _of_another_size(self, path: Path, size: tuple[int, int]) -> UserError:
        (height, width), (first_height, first_width) = size, self.size
        first = f"{self.paths[0].name} has {first_width} x {first_height}"
        problem = f"{path} has {width} x {height} pixels, and {first}"
        return UserError(f"{problem}; remove it, or give all frames one size")


class Animation:
    """An Animation is a film that is read from an animated picture file.

    `rate`, in frames per second, is 1 / duration of the first frame. (UserError if the file is
    damaged.)
    """

    time_base = TICK

    def __init__(self, path: Path) -> None:
        self._path = path
        first = next(self.frames())
        self.size = first.image.shape[2], first.image.shape[3]
        self.rate = 1 / first.duration
        with _opened(path) as image:
            self.count = sum(1 for _ in _numbers(image))

    def frames(self) -> Iterator[Frame]:
        """Yield all frames (UserError if the picture is damaged, or a frame has another size)."""
        end, count = Fraction(0), 0
        try:
            with _opened(self._path) as image:
                size = image.size
                for number in _numbers(image):
                    with warnings.catch_warnings(action="ignore"):  # Pillow's, about a large size
                        image.seek(number)
                    if image.size != size:  # a GIF's frame may be larger than its logical screen
                        raise ValueError(image.size)
                    name = str(self._path)
                    picture = images.Picture.of(read_image(image, name), name)
                    # The durations in an AVIF are rounded to milliseconds. These errors add up in
                    # the sum of durations, but not in the time stamps.
                    stated = Fraction(image.info.get("timestamp", 0), 1000)
                    time = max(end, stated) if image.format == "AVIF" else end
                    duration = _duration(image)
                    end, count = time + duration, count + 1
                    yield Frame(images.on_white(picture.rgb, picture.alpha), time, duration)
        except MemoryError:
            raise
        except Exception as error:  # Pillow raises many kinds of errors for damaged files
            where = f" after frame {count}" if count else ""
            damage = f"is damaged{where}; get an intact copy"
            raise UserError(f"{self._path} {damage}") from error


def animation(path: Path) -> Animation | None:
    """Return the film of a picture file whose format may be animated; None for any other file."""
    try:
        with _opened(path) as image:
            kind, size = image.format, image.size
    except Exception:  # Pillow raises many kinds of errors for files that are no pictures
        return None
    if kind not in ANIMATED:
        return None
    check_size(path, *size)
    return Animation(path)


def _opened(path: Path) -> Image.Image:
    """Return the Pillow image of a file, without Pillow's warning about a large size."""
    with warnings.catch_warnings(action="ignore"):
        return Image.open(path, formats=picture_formats())


def _upright_size(image: Image.Image) -> tuple[int, int]:
    """Return (height, width) of a Pillow image, upright; its pixels are not decoded."""
    # For a TIFF, Pillow states the size as it is after the rotation.
    is_turned = image.format != "TIFF" and image.getexif().get(ORIENTATION) in (5, 6, 7, 8)
    return image.size if is_turned else (image.height, image.width)


def _numbers(image: Image.Image) -> range:
    """Return the numbers of the frames that are shown; a PNG's first picture may be hidden."""
    return range(int(bool(image.info.get("default_image"))), getattr(image, "n_frames", 1))


def _duration(image: Image.Image) -> Fraction:
    """Return how long the current frame of a Pillow image is shown, in seconds."""
    stated = image.info.get("duration") or 0
    return Fraction(stated if stated > BRIEF else USUAL).limit_denominator(FINEST) / 1000


def _natural(path: Path) -> list[tuple[str, int, str]]:
    """Return a key that sorts file names: upper and lower case are equal, digits are numbers."""
    parts = re.findall("([^0-9]*)([0-9]*)", path.name)
    return [(text.casefold(), int(number or 0), text + number) for text, number in parts]


def _format(path: Path) -> str | None:
    """Return Pillow's name of the format of a file with this extension, or None."""
    return Image.registered_extensions().get(path.suffix.lower())
