"""Adam for one picture, whose moments go on from scale to scale."""

from typing import Any

import torch
from torch import Tensor

from styletransfer.system.storage import is_large, offloaded

# Decay rates: the usual first, a faster second, for a gradient that changes with the scale.
BETAS = (0.9, 0.99)


class Adam(torch.optim.Adam):
    """torch's Adam for a point, a leaf (1, 3, H, W), with large moments in files."""

    def __init__(self, point: Tensor, rate: float) -> None:
        super().__init__([point], lr=rate, betas=BETAS, fused=True)
        self.point = point
        # As torch would begin them at the first step.
        step, zeros = torch.zeros((), device=point.device), torch.zeros_like(point)
        self.moments = {"step": step, "exp_avg": zeros, "exp_avg_sq": zeros}

    @property
    def moments(self) -> dict[str, Tensor]:
        """Its state: live tensors, of which a copy is taken when set."""
        return dict(self.state[self.point])

    @moments.setter
    def moments(self, moments: dict[str, Tensor]) -> None:
        self.state[self.point] = {
            name: offloaded(value.detach()) if is_large(value.nbytes) else value.detach().clone()
            for name, value in moments.items()
        }

    def go_on_with(self, moments: dict[str, Tensor]) -> None:
        """Take up the moments of another scale; they stay as they are."""
        size = (self.point.shape[2], self.point.shape[3])
        resized = {
            key: torch.nn.functional.interpolate(moments[key], size, mode="bilinear")
            for key in ("exp_avg", "exp_avg_sq")
        }
        self.moments = {"step": moments["step"], **resized}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from the `state_dict` of another with a point of the same size."""
        super().load_state_dict(state)
        self.moments = self.moments
