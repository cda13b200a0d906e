"""Turns a parameter into a picture, and the picture's gradient into the parameter's gradient."""

import torch
from torch import Tensor

from styletransfer.objective.inputs import Protection
from styletransfer.optimize.optimizers import Preconditioner

# A pixel value that exceeds the range [0, 1] by `excess` has a penalty RANGE_WEIGHT / 2 * excess^2.
RANGE_WEIGHT = 10.0


class Canvas:
    """A canvas holds the optimiser's parameter `shift`, and computes the picture from it.

    The point is the start plus the shift; a preconditioner, if there is one, first turns the shift
    into pixel values. The point has no bounds. The picture is the point clamped to [0, 1], with the
    content image at protected pixels. The minimised function is the loss of the picture plus a
    penalty on values of the point outside [0, 1]. It depends on the point alone, and only the
    optimiser changes the point.

    Args:
        start: the picture (1, 3, H, W) at shift 0.
        preconditioner: the coordinates of the shift; None if the shift is in pixel values.
        protection: the pixels that keep the content image, or None.
    """

    def __init__(
        self, start: Tensor, preconditioner: Preconditioner | None, protection: Protection | None
    ) -> None:
        self.start, self.preconditioner = start.detach(), preconditioner
        self.protection = protection
        # The shift is contiguous, so that `LBFGS` flattens it and its gradient without a copy.
        shift = torch.zeros_like(self.start, memory_format=torch.contiguous_format)
        self.shift = shift.requires_grad_()
        self._point: Tensor | None = None  # the last picture's point, or None

    def point(self) -> Tensor:
        """Return the point (1, 3, H, W): the pixel values before they are clamped to [0, 1]."""
        return self.start + self._precondition(self.shift.detach())

    def picture(self) -> Tensor:
        """Return the picture (1, 3, H, W) as a new leaf; `pull` needs the leaf's gradient."""
        point = self.point()
        self._clamped = point.clamp(0, 1)
        # Without a preconditioner the point is only a sum. To save memory, it is not kept, and
        # `pull` computes it again.
        self._point = None if self.preconditioner is None else point
        return self.hold(self._clamped.detach()).requires_grad_()

    def pull(self, gradient: Tensor) -> None:
        """Set `shift.grad` from `gradient`, the last picture's gradient, which is overwritten."""
        point = self.point() if self._point is None else self._point
        excess = point.sub_(self._clamped)
        # The gradient is multiplied by the number of values, so that the 1e-8 in Adam's denominator
        # stays negligible.
        gradient = gradient.mul_(gradient.numel()).masked_fill_(excess != 0, 0)
        if self.protection is not None:
            gradient = gradient.mul_(1 - self.protection.protected)
        gradient = gradient.add_(excess, alpha=RANGE_WEIGHT)
        self.shift.grad = self._precondition(gradient)
        del self._clamped
        self._point = None

    def hold(self, image: Tensor) -> Tensor:
        """Return `image` (1, 3, H, W) with the content image at protected pixels."""
        return image if self.protection is None else self.protection.hold(image)

    def _precondition(self, shift: Tensor) -> Tensor:
        return shift if self.preconditioner is None else self.preconditioner.apply(shift)
