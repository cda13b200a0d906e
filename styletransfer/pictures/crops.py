"""What teacher and student look at: procedural pictures mixed with crops of real ones."""

import logging
import os
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from styletransfer.errors import UserError
from styletransfer.pictures import images, procedural

logger = logging.getLogger(__name__)

# Longer side in pixels to which real pictures are reduced, so that a folder fits in memory.
PHOTO_SIZE = 1536


def load_photos(folder: Path) -> list[Tensor]:
    """Return the pictures (3, H, W) in [0, 1] of a folder, in the order of their names.

    Files that cannot be read are skipped, counted and logged.

    Raises:
        UserError: there is no such folder, or no readable picture in it.
    """
    if not os.path.isdir(folder):
        raise UserError(f"pictures={folder} is not a folder; name one, or leave it out")
    photos: list[Tensor] = []
    broken: list[str] = []
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        try:
            picture = images.read(path)
            if max(picture.size) > PHOTO_SIZE:
                picture = images.resize_picture(picture, PHOTO_SIZE)
            photos.append(images.fill_transparent(picture)[0])
        except UserError:
            broken.append(path.name)
    if broken:
        shown = ", ".join(broken[:3])
        logger.warning("skipped %d unreadable files in %s: %s", len(broken), folder, shown)
    if not photos:
        raise UserError(f"no readable picture in {folder}; name another folder, or leave it out")
    return photos


class Crops:
    """Endless square training pictures.

    Args:
        photos: real pictures (3, H, W) in [0, 1].
        share: how many of the crops come from them.
        size: side of a crop in pixels.
    """

    def __init__(self, photos: list[Tensor], share: float, size: int) -> None:
        self.photos, self.share, self.size = photos, share if photos else 0.0, size

    def __call__(self, count: int, generator: torch.Generator) -> Tensor:
        """Return (count, 3, size, size) in [0, 1], every choice taken from the CPU generator."""
        return torch.stack([self._one(generator) for _ in range(count)])

    def _one(self, generator: torch.Generator) -> Tensor:
        if torch.rand((), generator=generator) >= self.share:
            return procedural.picture(self.size, generator)
        photo = self.photos[int(torch.randint(len(self.photos), (), generator=generator))]
        height, width = photo.shape[1:]
        shorter = min(height, width)
        closest = min(1.0, self.size / shorter)
        # Squared: more close-ups than overviews.
        zoom = closest + (1 - closest) * float(torch.rand((), generator=generator)) ** 2
        side = max(1, int(shorter * zoom))
        top = int(torch.randint(height - side + 1, (), generator=generator))
        left = int(torch.randint(width - side + 1, (), generator=generator))
        crop = photo[None, :, top : top + side, left : left + side]
        crop = interpolate(crop, (self.size, self.size), mode="bilinear", antialias=True)[0]
        return crop.flip(2) if torch.rand((), generator=generator) < 0.5 else crop
