"""Two ways to reduce the flicker of films; both use the previous result, warped by the motion."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from styletransfer.films.motion import TAPS, motion_between, warp
from styletransfer.job import Job
from styletransfer.objective.inputs import Anchor
from styletransfer.objective.targets import Targets
from styletransfer.objective.whole import style_targets_of
from styletransfer.optimize import Outcome
from styletransfer.optimize.run import Run
from styletransfer.pictures.images import blurred

# Constants of local contrast. NEAR: standard deviation of its Gaussian in pixels. FAINT: added
# to each local variance, so that noise is not amplified; the square of 0.8 grey levels of 255.
# STRONGEST: largest factor by which local contrast is raised.
NEAR, FAINT, STRONGEST = 1.0, 1e-5, 2.0


class FrameOptimizer:
    """A FrameOptimizer paints frames in their order by optimisation (Ruder et al. 2016).

    The first frame, and the first after a cut, are painted by `job` as single pictures. Each other
    frame starts from the previous painted frame, warped by the motion, and takes `frame_steps`
    steps at full size. A temporal loss keeps the frame near this start where motion is reliable.
    """

    def __init__(self, job: Job, frame_steps: int, temporal_weight: float) -> None:
        self.job, self.temporal_weight = job, temporal_weight
        # The only scale of a frame that starts from the previous painted frame.
        self.following = replace(job.scales[-1], steps=frame_steps)
        # (Previous input frame, previous painted frame), (1, 3, H, W), or None; see `follow`.
        self.before: tuple[Tensor, Tensor] | None = None
        self._styles: Targets | None = None

    def paint(self, content: Tensor) -> Outcome:
        """Paint the next frame (1, 3, H, W), which has the size of the job's finest scale."""
        return Run(self.job_of(content)).complete()

    def follow(self, content: Tensor, painted: Tensor) -> None:
        """Store the last input frame and its painted frame, (1, 3, H, W) each, for `job_of`."""
        self.before = content, painted

    def job_of(self, content: Tensor) -> Job:
        """Return the job that paints the next frame (1, 3, H, W)."""
        job = replace(self.job, pictures=replace(self.job.pictures, content=content))
        carried = _carried(self.before, content, moved_by)
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
        if (carried := _carried(self.before, content, smoothly)) is not None:
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
    return _raised(image, local_contrast(like))


def crossfade(image: Tensor, other: Tensor, share: float) -> Tensor:
    """Return a mixture of two images (1, 3, H, W) in [0, 1]; `share` is the weight of `other`.

    Mixing blurs, so the local variance is mixed as well, and the mixture is given this variance.
    """
    variance = torch.lerp(local_contrast(image), local_contrast(other), share)
    return _raised(torch.lerp(image, other, share), variance)


def moved_by(image: Tensor, flow: Tensor) -> Tensor:
    """Return an image (1, 3, H, W) in [0, 1], warped by `flow`, without loss of local contrast.

    Interpolation blurs. Each frame of a film starts from the one before, so the blur would add up.
    Therefore the local variance is warped as well, and the warped image is given this variance.
    """
    return _raised(smoothly(image, flow), warp(local_contrast(image), flow))


def local_contrast(image: Tensor) -> Tensor:
    """Return the local variance (1, 1, H, W) of an image, over all channels together."""
    apart = image - blurred(image, NEAR, TAPS)
    return blurred(apart.square(), NEAR, TAPS).mean(1, keepdim=True)


def _raised(image: Tensor, variance: Tensor) -> Tensor:
    """Return an image whose local variance is raised towards `variance` (1, 1, H, W)."""
    gain = ((variance + FAINT) / (local_contrast(image) + FAINT)).sqrt().clamp(1.0, STRONGEST)
    return torch.lerp(blurred(image, NEAR, TAPS), image, gain).clamp(0.0, 1.0)


def smoothly(image: Tensor, flow: Tensor) -> Tensor:
    """Return an image (1, 3, H, W) in [0, 1], warped by `flow`.

    The warp is bicubic, because repeated bilinear warps would blur.
    """
    return warp(image, flow, "bicubic").clamp(0, 1)


def _carried(
    before: tuple[Tensor, Tensor] | None,
    content: Tensor,
    move: Callable[[Tensor, Tensor], Tensor],
) -> tuple[Tensor, Tensor] | None:
    """Return the previous painted frame, warped by the motion, and the motion's reliability.

    `before` is (previous input frame, previous painted frame); `content` is the next input frame.
    `move` warps an image by a flow. The result is None for the first frame and after a cut.
    """
    if before is None:
        return None
    motion = motion_between(content, before[0])
    if motion.is_cut:
        return None
    return move(before[1], motion.flow.to(before[1])), motion.reliability
