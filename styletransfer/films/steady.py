"""Painting a film frame by frame without flicker: each frame keeps some of the one before."""

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.films.motion import warp
from styletransfer.films.warping_error import FindMotion


def check_steady(strength: float) -> None:
    """Check how much of a frame the next one is to keep.

    Raises:
        UserError: it is out of range.
    """
    if not 0 <= strength < 1:
        raise UserError(f"steady={strength} must be 0 or more, below 1")


class Steady:
    """What the last frame of a film hands on to the next.

    Where motion can be relied on, a painted frame is mixed with the mixture before it, moved along.
    A cut begins anew. If a painter's noise is independent from frame to frame, a share s that is
    kept leaves (1 - s)^2 / (1 + s) of the flicker: 1/6 for a half.

    Args:
        strength: share of the frame before, 0 or more and below 1; 0 leaves frames as they are.
        motion: finds where the points of a frame were in the one before.
    """

    def __init__(self, strength: float, motion: FindMotion) -> None:
        self.strength, self.motion = strength, motion
        self.before: tuple[Tensor, Tensor] | None = None

    def mixed(self, content: Tensor, painted: Tensor) -> Tensor:
        """Return the next frame to show (1, 3, H, W), in [0, 1].

        Args:
            content: (1, 3, H, W), the frame of the input.
            painted: (1, 3, H, W), what a painter has made of it alone.
        """
        if not self.strength:
            return painted
        mixed = painted
        if self.before is not None:
            motion = self.motion(content, self.before[0])
            if not motion.is_cut:
                # Bicubic: a frame that is moved again and again by bilinear weights is a blur.
                moved = warp(self.before[1], motion.flow.to(painted), "bicubic").clamp(0, 1)
                share = self.strength * motion.reliability.to(painted)
                mixed = painted + share * (moved - painted)
        self.before = content, mixed
        return mixed
