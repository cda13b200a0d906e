"""Paints a film in the way in which given photographs were painted.

Pixels are copied from the paintings of these photographs.
"""

from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import grid_sample

from styletransfer.films.motion import Motion, motion_between, warp
from styletransfer.job import Job
from styletransfer.objective.inputs import Correspondence
from styletransfer.objective.paired import Photographs
from styletransfer.optimize import Outcome
from styletransfer.pictures.images import size_of
from styletransfer.system.files import atomic

# RELIED: a pixel follows the motion if the motion's reliability there, in [0, 1], is above this
# value; otherwise a search finds its match. SAME: a frame counts as one of the photographs in
# `style_source`, changed by compression only, if the mean absolute difference of their reduced
# copies, in [0, 1], is below this value.
RELIED, SAME = 0.5, 0.012


class FrameCopier:
    """A FrameCopier paints frames in their order, like the photographs in `style_source`.

    Each pixel of a frame is copied from a position in a painting of one of them. Where the motion
    is reliable, the position is that of the same object in the frame before, moved by fractions of
    a pixel; elsewhere, a search finds the position. Colours always come from a painting, never from
    a painted frame, so the film stays crisp. The search alone paints the first frame, the first
    after a cut, and each frame that is one of the photographs.

    The positions for the last frame are saved in `folder`, so that a film can be continued.
    """

    def __init__(self, job: Job, folder: Path) -> None:
        self.pictures, self.folder, self.number = job.full_size(), folder, 0
        self.photographs = Photographs(job.extractor, self.pictures)
        self.before: tuple[Tensor, Correspondence] | None = None

    def paint(self, content: Tensor) -> Outcome:
        """Paint the next frame (1, 3, H, W), which has the size of the job's finest scale."""
        content = content.to(self.pictures.content)
        carried = self._carried(self.photographs.reduced(content))
        found = self.photographs.match(content, carried)
        if carried is not None:
            old, kept = carried
            found = Correspondence(
                torch.where(kept, old.styles, found.styles),
                torch.where(kept, old.rows, found.rows),
                torch.where(kept, old.columns, found.columns),
                found.cells,
            )
        picture = copied_smoothly(found, self.pictures.styles, size_of(content))
        if (protection := replace(self.pictures, content=content).protection) is not None:
            picture = protection.hold(picture)
        with atomic(self._places(self.number)) as temporary:
            places = {"styles": found.styles, "rows": found.rows, "columns": found.columns}
            save_file({name: one.contiguous() for name, one in places.items()}, temporary)
        image = picture.float().cpu()
        return Outcome(image, image, {}, 0)

    def follow(self, content: Tensor, _: Tensor) -> None:
        """Store the input frame `content` and its matched positions, for the next frame."""
        try:
            places = load_file(self._places(self.number))
            cells = list(map(size_of, self.photographs.sources))
            found = Correspondence(places["styles"], places["rows"], places["columns"], cells)
            self.before = self.photographs.reduced(content.to(self.pictures.content)), found
        except (OSError, SafetensorError, KeyError):
            # Only the newest frame's positions are on the disk; a resumed film also passes older
            # frames.
            self.before = None
        self._places(self.number - 1).unlink(missing_ok=True)
        self.number += 1

    def _places(self, number: int) -> Path:
        return self.folder / f"{number:06d}.safetensors"

    def _carried(self, frame: Tensor) -> tuple[Correspondence, Tensor] | None:
        """Return the last frame's matches, moved to `frame`, and a mask (h, w) of reliable ones.

        The result is None without stored matches, as for the first frame, for the first frame after
        a cut, and for a frame that is one of the photographs.
        """
        keys = self.photographs.sources
        is_key = any(
            one.shape == frame.shape and float((one - frame).abs().mean()) < SAME for one in keys
        )
        if self.before is None or is_key:
            return None
        motion = motion_between(frame, self.before[0])
        if motion.is_cut:
            return None
        return moved(self.before[1], motion), motion.reliability[0, 0].cpu() > RELIED


def moved(shown: Correspondence, motion: Motion) -> Correspondence:
    """Return the matches for a frame, from the matches `shown` of the frame before.

    `motion` is from the frame to the frame before. The displacement from a pixel to its match is
    interpolated, except where it jumps.
    """
    flow = motion.flow.cpu().float()
    sides = (torch.arange(side).float() for side in shown.rows.shape)
    y, x = torch.meshgrid(*sides, indexing="ij")
    field = torch.stack([shown.rows - y, shown.columns - x, shown.styles.float()])[None]
    near, smooth = (warp(field, flow, mode) for mode in ("nearest", "bilinear"))
    jumps = (near - smooth).abs().amax(1, keepdim=True) > 0.5
    down, right, styles = torch.where(jumps, near, smooth)[0]
    rows, columns = y + flow[0, 1] + down, x + flow[0, 0] + right
    return Correspondence(styles.round().long(), rows, columns, shown.cells)


def copied_smoothly(
    found: Correspondence, styles: tuple[Tensor, ...], size: tuple[int, int]
) -> Tensor:
    """Return the picture (1, 3, H, W) that is copied from the matched positions in `styles`.

    `size` is (H, W). Positions may lie between pixels; the copy is bicubic.
    """
    y, x = (
        (torch.arange(side) + 0.5) * cells / side
        for side, cells in zip(size, found.rows.shape, strict=True)
    )
    at = y.long()[:, None], x.long()[None]
    picture = styles[0].new_zeros(1, 3, *size)
    for number, (style, (height, width)) in enumerate(zip(styles, found.cells, strict=True)):
        down = (found.rows[at] + y.frac()[:, None]) * (2 / height) - 1
        right = (found.columns[at] + x.frac()) * (2 / width) - 1
        grid = torch.stack((right, down), -1)[None].to(style)
        painted = grid_sample(style, grid, "bicubic", padding_mode="border", align_corners=False)
        picture = torch.where((found.styles[at] == number).to(style.device), painted, picture)
    return picture.clamp(0, 1)
