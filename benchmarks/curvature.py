"""Measure the objective's curvature along waves of each frequency, for L-BFGS's preconditioner.

    python benchmarks/curvature.py features=vgg19 features.weights=FILE precision=float32

The script takes the keys of scripts/train.py and paints the pastiche. It prints second differences
of the objective at the pastiche along random shifts of one frequency band. There are three kinds of
shifts: grey waves along the axes, grey waves along the diagonals, and coloured waves without grey
in all directions. A shift has norm 1 over the whole picture. The objective is multiplied by the
number of values in the picture, as in the optimiser.
"""

import sys
from itertools import pairwise

import torch
from torch import Tensor, fft

from benchmarks.measured import table
from styletransfer.cli.arguments import parse
from styletransfer.cli.errors import one_line_errors
from styletransfer.job.prepare import prepare
from styletransfer.objective import gradient_at
from styletransfer.objective.whole import Objective
from styletransfer.optimize.optimizers import frequencies
from styletransfer.optimize.run import Run
from styletransfer.settings import TrainConfig
from styletransfer.settings.compose import compose, settings_of
from styletransfer.train import train

# Limits of the frequency bands in cycles per pixel; 0.5 is the finest wave along an axis.
EDGES = (0, 0.02, 0.04, 0.08, 0.16, 0.25, 0.35, 0.42, 0.5)
# Norm of the shift that is added to the pastiche and subtracted from it. At 512 x 512 pixels it is
# 0.14 grey levels (of 255) per value, as a root mean square.
REACH = 0.5
SHIFTS = 4  # number of random shifts for each frequency band
# A wave counts as one along the axes if its angle to the nearest axis is at most AXIAL degrees, and
# as one along the diagonals if that angle is at least DIAGONAL degrees.
AXIAL, DIAGONAL = 15, 30


def band(noise: Tensor, low: float, high: float, angles: tuple[float, float]) -> Tensor:
    """Return the part of noise (1, 3, H, W) from `low` to `high` cycles per pixel, with norm 1.

    The angles of its waves to the nearest axis are those from `angles[0]` to `angles[1]` degrees.
    """
    down, right = frequencies(noise)
    frequency, angle = torch.hypot(down, right), torch.rad2deg(torch.atan2(down, right))
    angle = torch.minimum(angle, 90 - angle)
    inside = (low <= frequency) & (frequency < high) & (angles[0] <= angle) & (angle <= angles[1])
    waves = fft.irfft2(fft.rfft2(noise) * inside, s=noise.shape[2:])
    result: Tensor = waves / waves.norm()
    return result


def curvature(objective: Objective, image: Tensor, shift: Tensor) -> float:
    """Return the second difference of the objective along `shift`, times `image.numel()`."""
    ahead = gradient_at(objective, image + REACH * shift)
    behind = gradient_at(objective, image - REACH * shift)
    return float(((ahead - behind) * shift).sum()) * image.numel() / (2 * REACH)


def measure(config: TrainConfig) -> None:
    """Paint the pastiche, measure the curvature in each frequency band, and print a table."""
    job = prepare(config)
    image = job.on_device(Run(job).complete().image)
    objective = Objective(job.extractor, job.mode, job.criterion, job.full_size())
    generator = torch.Generator().manual_seed(config.seed)
    rows = []
    for low, high in pairwise(EDGES):
        means = {"lightness, axes": 0.0, "lightness, diagonals": 0.0, "colour": 0.0}
        for _ in range(SHIFTS):
            noise = torch.randn(image.shape, generator=generator)
            grey = noise.mean(1, keepdim=True).expand_as(noise)
            shifts = (grey, (0, AXIAL)), (grey, (DIAGONAL, 45)), (noise - grey, (0, 45))
            for name, (shift, angles) in zip(means, shifts, strict=True):
                wave = band(shift, low, high, angles).to(job.device)
                means[name] += curvature(objective, image, wave) / SHIFTS
        rows.append([f"{low} to {high}", *(f"{mean:.1f}" for mean in means.values())])
    print("Mean curvature")
    print(table(["cycles per pixel", *means], rows))


if __name__ == "__main__":
    with one_line_errors():
        measure(settings_of(compose(train, parse(sys.argv[1:], TrainConfig).overrides)))
