"""The optimisers of a picture: torch's Adam, and this project's own L-BFGS (`LBFGS`).

`LBFGS` works in coordinates in which the curvatures are similar, see `Preconditioner`. torch's
L-BFGS is not used, because it stops when gradients are below absolute tolerances, as they are with
small loss weights. Also, the first use of torch.optim in a process imports torch's compiler, which
takes half as long as importing torch.
"""

from typing import Any

import torch
from torch import Tensor, fft

from styletransfer.optimize.lbfgs import LBFGS
from styletransfer.pictures.images import size_of
from styletransfer.settings import OptimizerConfig
from styletransfer.system.checkpoint import check_like

# Frequencies in cycles per pixel. The gains (factors) of `Preconditioner` are about constant below
# CORNER. They are constant above the two limits, where the measured curvatures no longer grow.
CORNER = 0.02
LIGHTNESS_LIMIT, COLOUR_LIMIT = 0.2, 0.1
# A wave has a vertical and a horizontal frequency. If their sum is above DIAGONAL, the
# curvature of lightness falls as the sum grows. There the gain of lightness is multiplied by
# exp(RISE * (min(sum, HIGHEST) - DIAGONAL)). With RISE 6 the curvature would be the same for all
# these waves, but pictures would be grainy; with RISE 0 they would look like woven cloth. The gain
# of colour is divided by the same factor, since no loss limits the finest waves of colour.
DIAGONAL, HIGHEST, RISE = 0.3, 0.6, 3.0
# Mean absolute change of the shift's values in L-BFGS's first step, which follows the negative
# gradient. Without a preconditioner, this changes each pixel value by one grey level on average.
FIRST_STEP = 1 / 255
# Adam's decay rates. The second is below torch's 0.999, because gradients differ between scales.
BETAS = (0.9, 0.99)


def frequencies(picture: Tensor) -> tuple[Tensor, Tensor]:
    """Return the vertical (H, 1) and horizontal (W // 2 + 1,) frequencies of a picture's rfft2.

    They are absolute values, 0 to 0.5 cycles per pixel.
    """
    options = {"dtype": picture.dtype, "device": picture.device}
    down = fft.fftfreq(picture.shape[2], **options).abs().unsqueeze(1)
    return down, fft.rfftfreq(picture.shape[3], **options)


class Preconditioner:
    """A preconditioner holds the coordinates in which L-BFGS moves a picture.

    L-BFGS begins as if the objective had the same curvature in all directions. This is not true
    (`python benchmarks/curvature.py`). With VGG-19 the curvature along waves of lightness grows as
    their frequency to the power of 1 to 2. It grows up to 0.2 cycles per pixel, and for waves of
    colour up to less than 0.1. At higher frequencies it falls, and sooner along diagonals than
    along the axes. Coordinates divided by the root of the curvature would make all curvatures
    equal. These coordinates come close: their gain falls as 1 / frequency, as the amplitudes of
    natural images do (Field 1987, "Relations between the statistics of natural images and the
    response properties of cortical cells"), up to the limits. Fine diagonal waves of lightness have
    a larger gain. Without it, fine horizontal and vertical waves grow first, and a run of few steps
    looks like woven cloth. Fine diagonal waves of colour have a smaller gain, to avoid specks.

    Lightness (the mean of red, green and blue) is multiplied by a gain that depends on the
    frequencies alone. Colours (the picture minus its lightness) have another such gain. `apply` is
    linear and its own transpose, so it serves shifts and gradients. The mean square of the
    lightness gain over frequencies is 1, so that steps keep about their length.

    Size, dtype and device are taken from `picture` (1, 3, H, W). `exponent` is the power to which
    the gains are raised: 0 makes all gains 1, and 1 makes the curvatures about equal.
    """

    def __init__(self, picture: Tensor, exponent: float) -> None:
        self.size = size_of(picture)
        down, right = frequencies(picture)
        frequency = torch.hypot(down, right)
        rise = torch.exp(RISE * ((down + right).clamp(DIAGONAL, HIGHEST) - DIAGONAL))
        lightness = (rise / (frequency.clamp(max=LIGHTNESS_LIMIT) + CORNER)) ** exponent
        colour = 1 / (rise * (frequency.clamp(max=COLOUR_LIMIT) + CORNER)) ** exponent
        mean = lightness.square().mean().sqrt()
        self.lightness_gain, self.colour_gain = lightness / mean, colour / mean

    def apply(self, shift: Tensor) -> Tensor:
        """Turn a shift (1, 3, H, W) into pixel changes, or a pixel gradient into the shift's."""
        waves = fft.rfft2(shift)
        lightness = waves.mean(1, keepdim=True)
        waves.sub_(lightness).mul_(self.colour_gain).add_(lightness.mul_(self.lightness_gain))
        result: Tensor = fft.irfft2(waves, s=self.size)
        return result


class Adam(torch.optim.Adam):
    """`Adam` is torch's Adam for one leaf (1, 3, H, W), whose moments can be read and set."""

    def __init__(self, shift: Tensor, rate: float) -> None:
        super().__init__([shift], lr=rate, betas=BETAS, fused=True)
        self.shift = shift
        # torch makes these zeros at the first step, but `moments` may be read before that step.
        self.moments = moments_like(shift)

    @property
    def moments(self) -> dict[str, Tensor]:
        """Adam's state by name: the tensors themselves; setting the property stores copies."""
        return dict(self.state[self.shift])

    @moments.setter
    def moments(self, moments: dict[str, Tensor]) -> None:
        self.state[self.shift] = {name: value.detach().clone() for name, value in moments.items()}

    def go_on_with(self, moments: dict[str, Tensor]) -> None:
        """Continue from copies of `moments`, resized from another picture size to this one."""
        size = size_of(self.shift)
        resized = {
            key: torch.nn.functional.interpolate(moments[key], size, mode="bilinear")
            for key in ("exp_avg", "exp_avg_sq")
        }
        self.moments = {"step": moments["step"], **resized}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from the `state_dict` of another Adam, whose shift had the same size.

        Raises LookupError, TypeError or ValueError if `state` has another form.
        """
        check_like(state["state"][0], moments_like(self.shift))
        self.moments = state["state"][0]


def moments_like(picture: Tensor) -> dict[str, Tensor]:
    """Return Adam's moments before the first step for a picture (1, 3, H, W)."""
    step, zeros = torch.zeros((), device=picture.device), torch.zeros_like(picture)
    return {"step": step, "exp_avg": zeros, "exp_avg_sq": zeros}


def make_optimizer(shift: Tensor, config: OptimizerConfig, steps: int) -> LBFGS | Adam:
    """Return a new optimiser; its `step` moves the leaf `shift` (1, 3, H, W) by `shift.grad`.

    `steps` is the largest number of steps that it will make.
    """
    if config.name == "adam":
        return Adam(shift, config.learning_rate)
    history = max(1, min(config.history, steps - 1))  # n steps make at most n - 1 pairs
    return LBFGS(shift, history=history, rate=config.learning_rate, first=FIRST_STEP)
