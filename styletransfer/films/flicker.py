"""Two ways to reduce flicker; both use the previous painted frame, warped by the motion."""

from dataclasses import replace

import torch
from torch import Tensor

from styletransfer.films.motion import TAPS, motion_between, warp
from styletransfer.job import Job
from styletransfer.objective.all_targets import style_targets_of
from styletransfer.objective.captured import CapturedObjective
from styletransfer.objective.inputs import Anchor
from styletransfer.objective.targets import Targets
from styletransfer.optimize import Outcome
from styletransfer.optimize.run import Run
from styletransfer.pictures.images import blurred, resize, size_of

# NEAR: standard deviation in pixels of the Gaussian with which local contrast is measured. FAINT is
# added to each local variance, so that noise is not amplified; for values in [0, 1], it is about
# (0.8 / 255)^2. STRONGEST: largest factor by which local contrast is raised.
NEAR, FAINT, STRONGEST = 1.0, 1e-5, 2.0
# Largest factor by which `FrameOptimizer` raises or lowers the local contrast of a frame.
MOST = 1.1


class FrameOptimizer:
    """A FrameOptimizer paints frames in their order by optimisation (Ruder et al. 2016).

    The first frame, and the first after a cut, are painted by `job` as single pictures. Each other
    frame starts from the previous painted frame, warped by the motion, and takes `frame_steps`
    steps at full size. A temporal loss keeps the frame near this start where motion is reliable.
    Warps blur, and the temporal loss keeps the blur. Therefore the local contrast of each painted
    frame is multiplied by a factor, so that its mean is that of the film's first frame.
    """

    def __init__(self, job: Job, frame_steps: int, temporal_weight: float) -> None:
        self.job, self.temporal_weight = job, temporal_weight
        # A frame that starts from the previous painted frame is painted at this scale only.
        self.following = replace(job.scales[-1], steps=frame_steps)
        # (Previous input frame, previous painted frame), (1, 3, H, W) each; None at first.
        self.before: tuple[Tensor, Tensor] | None = None
        self._styles: Targets | None = None
        self._graph: CapturedObjective | None = None  # the `graph` of the last frame's `Run`
        self._crispness: Tensor | None = None  # mean local variance of the first painted frame

    def paint(self, content: Tensor) -> Outcome:
        """Paint the next frame (1, 3, H, W), which has the size of the job's finest scale."""
        job = self.job_of(content)
        run, self._graph = Run(job, self._graph), None  # only the run holds it, and may free it
        outcome = run.complete()
        self._graph = run.graph
        if job.pictures.anchor is None or self._crispness is None:
            return outcome
        painted = outcome.image
        gain = (self._crispness / local_variance(painted).mean()).sqrt().nan_to_num(1.0)
        image = _contrasted(painted, gain.clamp(1 / MOST, MOST))
        if job.pictures.protected is not None:  # protected pixels must show the content unchanged
            protected = resize(job.pictures.protected, size_of(image), "bilinear")
            image = torch.lerp(image, painted, protected.to(image))
        return replace(outcome, image=image)

    def follow(self, content: Tensor, painted: Tensor) -> None:
        """Store the last input frame and its painted frame, (1, 3, H, W) each, for `paint`."""
        if self._crispness is None:
            self._crispness = local_variance(painted).mean()
        self.before = content, painted

    def job_of(self, content: Tensor) -> Job:
        """Return the job that paints the next frame (1, 3, H, W)."""
        job = replace(self.job, pictures=replace(self.job.pictures, content=content))
        carried = _carried(self.before, content)
        if carried is None:
            return job
        moved, reliability = carried
        anchor = Anchor(moved, reliability, self.temporal_weight)
        pictures = replace(job.pictures, start=moved, anchor=anchor)
        if self._styles is None:  # the style targets are the same for all frames
            self._styles = style_targets_of(job.extractor, job.criterion, job.full_size())
        return replace(job, scales=(self.following,), pictures=pictures, styles=self._styles)


class Steady:
    """Steady reduces flicker: it mixes each painted frame with the previous result.

    The previous result is first warped by the motion. Frames are mixed only where the motion is
    reliable, and not across a cut. `strength` in [0, 1) is the weight of the previous result.
    Mixing blurs strokes, so the mixture gets the local contrast of the painted frame.
    """

    def __init__(self, strength: float) -> None:
        self.strength = strength
        self.before: tuple[Tensor, Tensor] | None = None

    def mixed(self, content: Tensor, painted: Tensor) -> Tensor:
        """Return `painted`, mixed with the previous result; all are (1, 3, H, W) in [0, 1].

        `content` is the input frame, from which the motion is found.
        """
        if not self.strength:
            return painted
        if (carried := _carried(self.before, content)) is not None:
            moved, reliability = carried
            mixture = painted + self.strength * reliability.to(painted) * (moved - painted)
            painted = with_contrast_of(mixture, painted)
        self.before = content, painted
        return painted


def with_contrast_of(image: Tensor, like: Tensor) -> Tensor:
    """Return an image (1, 3, H, W) in [0, 1] whose local contrast is raised to that of `like`.

    The difference of the image from its own blur is multiplied by a ratio: the local standard
    deviation of `like` over that of the image, for all channels together, clamped to
    [1, STRONGEST].
    """
    return _raised(image, local_variance(like))


def crossfade(image: Tensor, other: Tensor, share: float) -> Tensor:
    """Return a mixture of two images (1, 3, H, W) in [0, 1]; `share` is the weight of `other`.

    Mixing blurs, so the local variance is mixed as well, and the mixture is given this variance.
    """
    variance = torch.lerp(local_variance(image), local_variance(other), share)
    return _raised(torch.lerp(image, other, share), variance)


def local_variance(image: Tensor) -> Tensor:
    """Return the local variance (1, 1, H, W) of an image, over all channels together."""
    apart = image - blurred(image, NEAR, TAPS)
    return blurred(apart.square(), NEAR, TAPS).mean(1, keepdim=True)


def _raised(image: Tensor, variance: Tensor) -> Tensor:
    """Return an image whose local variance is raised towards `variance` (1, 1, H, W)."""
    gain = ((variance + FAINT) / (local_variance(image) + FAINT)).sqrt()
    return _contrasted(image, gain.clamp(1.0, STRONGEST))


def _contrasted(image: Tensor, gain: Tensor) -> Tensor:
    """Multiply the difference of `image` from its blur by `gain`; clamp the result to [0, 1]."""
    return torch.lerp(blurred(image, NEAR, TAPS), image, gain).clamp(0.0, 1.0)


def _carried(before: tuple[Tensor, Tensor] | None, content: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return the previous painted frame, warped by the motion, and the motion's reliability.

    `before` is (previous input frame, previous painted frame); `content` is the next input frame.
    The result is None for the first frame and after a cut.
    """
    if before is None:
        return None
    motion = motion_between(content, before[0])
    if motion.is_cut:
        return None
    painted = before[1]
    # The warp is bicubic, because repeated bilinear warps would blur more.
    moved = warp(painted, motion.flow.to(painted), "bicubic").clamp(0, 1)
    return moved, motion.reliability
