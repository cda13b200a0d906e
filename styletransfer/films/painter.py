"""A film by optimisation: each frame goes on from the one before (Ruder et al. 2016)."""

from dataclasses import replace

from torch import Tensor

from styletransfer.films.motion import warp
from styletransfer.films.warping_error import FindMotion
from styletransfer.job.job import Job
from styletransfer.objective.inputs import Anchor
from styletransfer.objective.targets import StyleTargets
from styletransfer.objective.whole import style_targets_of
from styletransfer.optimize.results import Outcome
from styletransfer.optimize.run import Run


class FilmPainter:
    """Paints frames in their order.

    The first frame, and the first after a cut, is a picture like any other. Each of the others
    starts as the pastiche before it, moved along, is optimised at one scale in fewer steps, and is
    held to where it started by the temporal loss where the motion can be relied on. (It starts so
    everywhere: from the frame itself, what comes into view would stay paler than its surroundings
    in so few steps.)

    Args:
        job: for a picture; its content gives way to each frame.
        frame_steps: optimiser steps of a frame that follows another.
        temporal_weight: linear weight of the temporal loss; 0 for none.
        motion: finds where the points of a frame were in the one before.

    Attributes:
        before: the last frame and its pastiche, (1, 3, H, W) each; None at the beginning.
    """

    def __init__(
        self, job: Job, frame_steps: int, temporal_weight: float, motion: FindMotion
    ) -> None:
        self.job, self.temporal_weight, self.motion = job, temporal_weight, motion
        self.following = replace(job.config, steps=frame_steps, scales=1)
        self.before: tuple[Tensor, Tensor] | None = None
        self._styles: StyleTargets | None = None

    def paint(self, content: Tensor) -> Outcome:
        """Return the pastiche of the next frame (1, 3, H, W), of the job's size.

        Set `before` to go on from it; a caller may have rounded it by then.
        """
        return Run(self.job_of(content)).complete()

    def job_of(self, content: Tensor) -> Job:
        """Return what is to be done for the next frame."""
        job = replace(self.job, pictures=replace(self.job.pictures, content=content))
        if self.before is None:
            return job
        motion = self.motion(content, self.before[0])
        if motion.is_cut:
            return job
        # Bicubic: a frame that is moved again and again by bilinear weights is a blur.
        moved = warp(self.before[1], motion.flow, "bicubic").clamp(0, 1)
        anchor = Anchor(moved, motion.reliability, self.temporal_weight)
        pictures = replace(job.pictures, anchor=anchor)
        if self._styles is None:  # they are those of all frames
            scale = job.pictures_at(max(job.scales[-1].size))
            self._styles = style_targets_of(job.extractor, job.criterion, scale)
        return replace(
            job, config=self.following, pictures=pictures, start=moved, styles=self._styles
        )
