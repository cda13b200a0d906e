"""Films without flicker: each frame goes on from the pastiche of the one before, moved along."""

from dataclasses import replace

from torch import Tensor

from styletransfer.films.motion import FindMotion, Motion, motion_between
from styletransfer.job.job import Job
from styletransfer.objective.inputs import Anchor
from styletransfer.objective.targets import StyleTargets
from styletransfer.objective.whole import style_targets_of
from styletransfer.optimize.results import Outcome
from styletransfer.optimize.run import Run


class FilmPainter:
    """Paints frames in their order by optimisation (Ruder et al. 2016, arXiv:1604.08610).

    The first frame, and the first after a cut, is a picture like any other, as `job` says. Each of
    the others starts as the pastiche before it, moved along, makes `frame_steps` at one scale, and
    is held to where it started by the temporal loss where the motion can be relied on. (It starts
    so everywhere: from the frame itself, what comes into view would stay paler than its
    surroundings in so few steps.)
    """

    def __init__(
        self,
        job: Job,
        frame_steps: int,
        temporal_weight: float,
        motion: FindMotion = motion_between,
    ) -> None:
        self.job, self.temporal_weight, self.motion = job, temporal_weight, motion
        self.following = replace(job.config, steps=frame_steps, scales=1)
        # The last frame and its pastiche, (1, 3, H, W) each, to go on from; a caller sets it.
        self.before: tuple[Tensor, Tensor] | None = None
        self._styles: StyleTargets | None = None

    def paint(self, content: Tensor) -> Outcome:
        """Return the pastiche of the next frame (1, 3, H, W), of the job's size."""
        return Run(self.job_of(content)).complete()

    def job_of(self, content: Tensor) -> Job:
        """Return what is to be done for the next frame."""
        job = replace(self.job, pictures=replace(self.job.pictures, content=content))
        if self.before is None:
            return job
        motion = self.motion(content, self.before[0])
        if motion.is_cut:
            return job
        moved = _moved(self.before[1], motion)
        anchor = Anchor(moved, motion.reliability, self.temporal_weight)
        pictures = replace(job.pictures, anchor=anchor)
        if self._styles is None:  # they are those of all frames
            scale = job.pictures_at(max(job.scales[-1].size))
            self._styles = style_targets_of(job.extractor, job.criterion, scale)
        return replace(
            job, config=self.following, pictures=pictures, start=moved, styles=self._styles
        )


class Steady:
    """Mixes what a painter made of each frame alone with the mixture before, moved along.

    It does so where motion can be relied on, and begins anew after a cut. If a painter's noise is
    independent from frame to frame, a `strength` s in [0, 1), the share of the frame before, leaves
    (1 - s)^2 / (1 + s) of the flicker: 1/6 for a half.
    """

    def __init__(self, strength: float, motion: FindMotion = motion_between) -> None:
        self.strength, self.motion = strength, motion
        self.before: tuple[Tensor, Tensor] | None = None

    def mixed(self, content: Tensor, painted: Tensor) -> Tensor:
        """Return the next frame to show, of one of the input; all are (1, 3, H, W) in [0, 1]."""
        if not self.strength:
            return painted
        mixed = painted
        if self.before is not None:
            motion = self.motion(content, self.before[0])
            if not motion.is_cut:
                share = self.strength * motion.reliability.to(painted)
                mixed = painted + share * (_moved(self.before[1], motion) - painted)
        self.before = content, mixed
        return mixed


def _moved(pastiche: Tensor, motion: Motion) -> Tensor:
    """Return the pastiche before as the next frame would show it.

    By bicubic weights: by bilinear ones, a picture that is moved again and again becomes a blur.
    """
    return motion.warped(pastiche, "bicubic").clamp(0, 1)
