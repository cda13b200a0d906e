"""Frames in one's own hand: each pixel of a film shows a place of a painted frame."""

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

# RELIED: least reliability, in [0, 1], with which a pixel follows the motion; a search matches the
# others. SAME: a frame whose mean difference from a photograph is below it counts as that
# photograph, compressed; 1 is the difference of black and white.
RELIED, SAME = 0.5, 0.012


class FrameCopier:
    """A FrameCopier paints frames in their order as photographs were painted (`style_source`).

    Where the motion is reliable, a pixel shows the place of the painting that it showed in the
    frame before, moved along by fractions of a pixel; a search finds the others. Colours always
    come from the painting, never from a painted frame, so the film stays crisp. A frame that was
    painted, the first frame, and the first after a cut are painted by the search alone.

    `folder` receives the places that the last frame shows, so that a film can be continued.
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
        """Go on after the frame `content`, which is painted; read the places that it shows."""
        try:
            places = load_file(self._places(self.number))
            cells = list(map(size_of, self.photographs.sources))
            found = Correspondence(places["styles"], places["rows"], places["columns"], cells)
            self.before = self.photographs.reduced(content.to(self.pictures.content)), found
        except (OSError, SafetensorError, KeyError):
            self.before = None  # the places of earlier frames are removed
        self._places(self.number - 1).unlink(missing_ok=True)
        self.number += 1

    def _places(self, number: int) -> Path:
        return self.folder / f"{number:06d}.safetensors"

    def _carried(self, frame: Tensor) -> tuple[Correspondence, Tensor] | None:
        """Return the last frame's matches, moved to `frame`, and a mask (h, w): those that hold."""
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
    """Return the places that a frame shows if it shows those of the frame before, moved along.

    Displacements between pixels and their places are interpolated, but not across a jump.
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
    """Return the picture (1, 3, H, W) of matched places, which may lie between pixels."""
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
