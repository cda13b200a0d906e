"""How curved the objective is along waves of each frequency: what `Preconditioner` rests on.

    python benchmarks/curvature.py features=vgg19 features.weights=FILE precision=float32

Takes the keys of scripts/train.py, paints the pastiche, and prints second differences of the
objective there along random shifts of one band of frequencies, in grey (lightness) and without grey
(colour). Shifts have length 1 over the whole picture, and the objective is multiplied by the number
of the picture's values, as the optimiser has it.
"""

from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, fft

from styletransfer.cli.hydrated import hydrated
from styletransfer.job.prepare import prepare
from styletransfer.objective.criterion import gradient_at
from styletransfer.objective.whole import Objective
from styletransfer.optimize.optimizers import frequencies
from styletransfer.optimize.run import complete_run
from styletransfer.settings import TrainConfig
from styletransfer.system.measure import table

# Limits of the frequency bands in cycles per pixel; 0.71 is the finest diagonal wave.
EDGES = (0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.25, 0.35, 0.5, 0.71)
# Half the length of a difference: about a fifth of a grey level for a pixel of a 512 x 512 picture.
REACH = 0.5
SHIFTS = 4


def band(noise: Tensor, low: float, high: float) -> Tensor:
    """Return the waves of `low` to `high` cycles per pixel in noise (1, 3, H, W), of length 1."""
    frequency = frequencies(noise)
    inside = (low <= frequency) & (frequency < high)
    waves = fft.irfft2(fft.rfft2(noise) * inside, s=noise.shape[2:])
    result: Tensor = waves / waves.norm()
    return result


def curvature(objective: Objective, image: Tensor, shift: Tensor) -> float:
    """Return the second difference of the objective, times the image's values, along `shift`."""
    ahead = gradient_at(objective, image + REACH * shift)
    behind = gradient_at(objective, image - REACH * shift)
    return float(((ahead - behind) * shift).sum()) * image.numel() / (2 * REACH)


def measure(config: TrainConfig, folder: Path) -> None:
    """Paint, measure band by band, and print a table."""
    job = prepare(config)
    image = job.on_device(complete_run(job).image)
    objective = Objective(job.extractor, job.mode, job.criterion, job.pictures_at(config.size))
    generator = torch.Generator().manual_seed(config.seed)
    rows = []
    for low, high in pairwise(EDGES):
        means = {"lightness": 0.0, "colour": 0.0}
        for _ in range(SHIFTS):
            noise = torch.randn(image.shape, generator=generator)
            grey = noise.mean(1, keepdim=True).expand_as(noise)
            for name, shift in (("lightness", grey), ("colour", noise - grey)):
                wave = band(shift, low, high).to(job.device)
                means[name] += curvature(objective, image, wave) / SHIFTS
        rows.append([f"{low} to {high}", *(f"{mean:.1f}" for mean in means.values())])
    print("Mean curvature")
    print(table(["cycles per pixel", "lightness", "colour"], rows))


if __name__ == "__main__":
    hydrated("train", measure)()
