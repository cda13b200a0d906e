"""Training pictures for networks: crops of photographs."""

import logging
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.pictures.transparency import fill_transparent

logger = logging.getLogger(__name__)

# PHOTO_SIZE: longer side, in pixels, to which photographs are reduced. KEPT: number of photographs
# that stay in memory, which take at most 0.5 GB.
PHOTO_SIZE, KEPT = 1536, 16


class Photos:
    """`Photos` are the pictures (3, H, W) in [0, 1] of a folder, at most PHOTO_SIZE pixels a side.

    A picture is read when it is asked for by its index. Only the last KEPT pictures stay in memory.
    If a file cannot be read, a warning says so, and the next readable file replaces it. (UserError
    if `folder` does not exist, or holds no readable picture.)
    """

    def __init__(self, folder: Path) -> None:
        if not os.path.isdir(folder):
            raise UserError(f"pictures={folder} is not a folder; name a folder of pictures")
        self.folder = folder
        # Hidden files, such as macOS's ._a.jpg, are no pictures.
        shown = (path for path in folder.iterdir() if not path.name.startswith("."))
        self.files = sorted(filter(Path.is_file, shown))
        self.broken: set[Path] = set()
        self._recent = lru_cache(KEPT)(self._read)
        self[0]  # raises UserError if no picture can be read

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Tensor:
        for path in (*self.files[index:], *self.files[:index]):
            if path in self.broken:
                continue
            try:
                return self._recent(path)
            except UserError as error:
                self.broken.add(path)
                skipped = len(self.broken)
                logger.warning("skipped %d unreadable files so far: %s", skipped, error)
        raise UserError(f"no readable picture in {self.folder}; name another folder")

    @staticmethod
    def _read(path: Path) -> Tensor:
        picture = images.read(path)
        picture = images.resize_picture(picture, min(PHOTO_SIZE, max(picture.size)))
        return fill_transparent(picture)[0]


class Crops:
    """`Crops` makes pictures (3, size, size) from random square parts of photographs."""

    def __init__(self, photos: Sequence[Tensor] | Photos, size: int) -> None:
        self.photos, self.size = photos, size

    def __call__(self, count: int, generator: torch.Generator) -> Tensor:
        """Return `count` random pictures, (count, 3, size, size) in [0, 1]."""
        return torch.stack([self._picture(generator) for _ in range(count)])

    def _picture(self, generator: torch.Generator) -> Tensor:
        photo = self._photo(generator)
        shorter = min(photo.shape[1:])
        closest = min(1.0, self.size / shorter)
        # The random number is squared, which gives more close-ups than overviews.
        zoom = closest + (1 - closest) * float(torch.rand((), generator=generator)) ** 2
        crop = square(photo, max(1, int(shorter * zoom)), generator)[None]
        crop = interpolate(crop, (self.size, self.size), mode="bilinear", antialias=True)[0]
        return crop.flip(2) if torch.rand((), generator=generator) < 0.5 else crop

    def _photo(self, generator: torch.Generator) -> Tensor:
        return self.photos[int(torch.randint(len(self.photos), (), generator=generator))]


def square(photo: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """Return a random square part (C, side, side) of a picture (C, H, W)."""
    top, left = (
        int(torch.randint(length - side + 1, (), generator=generator)) for length in photo.shape[1:]
    )
    return photo[:, top : top + side, left : left + side]
