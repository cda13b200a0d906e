"""Train the network `any` on: the objective of `painted`, calm places, no halos and no lattice.

    python -m tools.any START OUTPUT PHOTOGRAPHS PAINTINGS... minutes=82

START is a network for any style, PHOTOGRAPHS a folder, and PAINTINGS are folders. Each step paints
two crops of photographs, each in the style of a crop of a painting. The losses are those of the
look `painted`, with matches at three layers, after the colours were moved as `apply` moves them.
Where a photograph is calm, the luma of the pastiche must not vary more than in the calmest quarter
of the painting. Beside it the network paints two pictures of a figure before a calm ground, in the
same styles: the colour of the ground must not change near the figure, nor with row and column
modulo 4.
"""

import math
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, max_pool2d, pixel_unshuffle

from styletransfer.features import build_features, optimize_for_inference
from styletransfer.losses import LOSS_MODES
from styletransfer.networks import encoder
from styletransfer.networks.file import network_file, read, write
from styletransfer.networks.lattice import PERIOD
from styletransfer.networks.training.crops import Crops, Photos
from styletransfer.objective import Criterion
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective
from styletransfer.pictures.color import monge
from styletransfer.pictures.images import luma
from styletransfer.settings import FeaturesConfig, ObjectiveConfig

CROP, STYLE, SCENE = 208, 256, 192  # sides in pixels: content crops, style crops, scenes
BATCH = 2
OBJECTIVE = ObjectiveConfig(
    content_weight=0.2, match_weight=0.5, match_layers=["relu2_1", "relu3_1", "relu4_1"]
)
HALO, LATTICE = 12.0, 240.0  # weights of the losses of the pictures of figures
# Weight of the loss of calm places, side in pixels of the windows in which it compares standard
# deviations of luma, and the photograph's standard deviation at which a place counts by 1/e.
CALM, WINDOW, STILL = 20.0, 9, 0.03
RATE, ROWS, CODE = 6e-4, 0.6, 0.2  # learning rate of the kernels; factors for the encoder's layers
WARMUP, AVERAGING = 40, 0.99  # steps; decay of the running mean of the weights
# Bands around a figure, and the ground farther away, in pixels from the figure.
BANDS, FAR = [(near, near + 4) for near in range(2, 26, 4)], (28, 64)


class Scenes:
    """`Scenes` makes pictures of a figure, cut from a photograph, before a calm ground."""

    def __init__(self, crops: Crops) -> None:
        self.crops = crops

    def __call__(self, generator: torch.Generator) -> tuple[Tensor, list[Tensor]]:
        """Return a picture (1, 3, SCENE, SCENE) and masks: the ground far away, and the bands."""
        while True:
            figure = self._figure(generator)
            ground = ring(figure, *FAR)
            if 0.03 < figure.mean() < 0.6 and ground.mean() > 0.1:
                break
        paint = self.crops(1, generator)
        is_dark = number(generator, 0, 1) < 0.6
        light = number(generator, 0.5, 0.9) if is_dark else number(generator, 0.08, 0.4)
        color = light + 0.06 * torch.randn(1, 3, 1, 1, generator=generator)
        calm = color.expand(1, 3, SCENE, SCENE)
        if number(generator, 0, 1) < 0.3:  # a faint texture
            texture = self.crops(1, generator)
            mean = avg_pool2d(texture, 25, 1, 12, count_include_pad=False)
            calm = calm + number(generator, 0.05, 0.25) * (texture - mean)
        slope = torch.linspace(-0.5, 0.5, SCENE)[:, None]
        calm = calm + 0.04 * torch.randn(1, generator=generator) * slope
        calm = calm + 0.008 * torch.randn(calm.shape, generator=generator)
        if is_dark:
            paint = paint * number(generator, 0.1, 0.5) / max(2 * float(paint.mean()), 0.4)
        else:
            paint = 1 - (1 - paint) * number(generator, 0.2, 0.6)
        picture = torch.lerp(calm, paint, figure).clamp(0, 1)
        return picture, [ground, *(ring(figure, *band) for band in BANDS)]

    def _figure(self, generator: torch.Generator) -> Tensor:
        """Return a mask (1, 1, SCENE, SCENE): a tower, a disc, a hill, or blots; 1 inside."""
        y, x = torch.meshgrid(*2 * [torch.arange(float(SCENE))], indexing="ij")
        kind = int(number(generator, 0, 4))
        if kind == 0:
            left = number(generator, 20, 150)
            wide = number(generator, 4, 50)
            inside = (x > left) & (x < left + wide) & (y > number(generator, 10, 120))
        elif kind == 1:
            middle, other = number(generator, 30, 160), number(generator, 30, 160)
            away = (y - middle).square() + number(generator, 0.5, 2) * (x - other).square()
            inside = away < number(generator, 10, 50) ** 2
        elif kind == 2:
            wave = torch.sin(x / number(generator, 8, 60) + number(generator, 0, 6))
            slope = number(generator, -0.8, 0.8) * (x - SCENE / 2)
            inside = y > number(generator, 60, 150) + number(generator, 0, 20) * wave + slope
        else:
            blots = torch.randn(1, 1, 8, 8, generator=generator)
            blots = interpolate(blots, (SCENE, SCENE), mode="bicubic")[0, 0]
            inside = blots > blots.quantile(0.75)
        return (inside.T if number(generator, 0, 1) < 0.3 else inside).float()[None, None]


def number(generator: torch.Generator, low: float, high: float) -> float:
    """Return a random number between `low` and `high`."""
    return low + (high - low) * float(torch.rand((), generator=generator))


def ring(figure: Tensor, near: int, far: int) -> Tensor:
    """Return the mask of the pixels more than `near` and at most `far` away from a figure."""
    inner, outer = (max_pool2d(figure, 2 * away + 1, 1, away) for away in (near, far))
    return outer - inner


def halo(pastiche: Tensor, masks: list[Tensor]) -> Tensor:
    """Return the mean square of how much a band's mean colour differs from the far ground's."""
    means = [(pastiche * mask).sum((0, 2, 3)) / mask.sum() for mask in masks if float(mask.sum())]
    return torch.stack([(mean - means[0]).square().mean() for mean in means[1:]]).mean()


def lattice(pastiche: Tensor, ground: Tensor) -> Tensor:
    """Return the variance of the ground's mean colour over rows and columns modulo 4."""
    weights = pixel_unshuffle(ground, PERIOD)[:, None]
    colors = pixel_unshuffle(pastiche, PERIOD).unflatten(1, (3, PERIOD**2))
    means = (colors * weights).sum((3, 4)) / weights.sum((3, 4)).clamp(min=1)
    return means.var(2, correction=0).mean()


def deviations(image: Tensor) -> Tensor:
    """Return the standard deviation of luma in the window around each pixel, (1, 1, H, W)."""
    gray = luma(image)
    mean, square = (
        avg_pool2d(x, WINDOW, 1, WINDOW // 2, count_include_pad=False) for x in (gray, gray * gray)
    )
    return ((square - mean * mean).clamp(min=0) + 1e-6).sqrt()


def restless(pastiche: Tensor, content: Tensor, style: Tensor) -> Tensor:
    """Return by how much calm places vary more than the style's calmest quarter, on average."""
    calm = (-(deviations(content) / STILL).square()).exp()
    return (calm * (deviations(pastiche) - deviations(style).quantile(0.25)).relu()).mean()


def recoloured(style: Tensor, generator: torch.Generator) -> Tensor:
    """Return a style in another palette, with its channels exchanged, every second time."""
    if number(generator, 0, 1) < 0.5:
        return style
    style = style[:, torch.randperm(3, generator=generator)]
    mean = style.mean((2, 3), keepdim=True)
    if number(generator, 0, 1) < 0.4:
        contrast, light = number(generator, 0.5, 1.3), number(generator, 0.7, 1.2)
        style = ((style - mean) * contrast + mean * light).clamp(0, 1)
    return style


def palette_map(pastiche: Tensor, style: Tensor) -> tuple[Tensor, Tensor]:
    """Return the matrix (3, 3) and the offset (3, 1) by which `finished` moves colours half way."""
    own, goal = encoder.color_moments(pastiche), encoder.color_moments(style)
    full = monge(own[:, 1:], goal[:, 1:])
    matrix = torch.lerp(torch.eye(3).double(), full, 0.5)
    return matrix.float(), (torch.lerp(own[:, :1], goal[:, :1], 0.5) - matrix @ own[:, :1]).float()


def train(start: str, output: str, photographs: str, paintings: list[str], minutes: float) -> None:
    """Train for some minutes, and write the running mean of the weights every 100 steps."""
    cpu, exact = torch.device("cpu"), torch.bfloat16
    network = read(network_file(start)).network.requires_grad_()
    rows = network.encoder
    assert isinstance(rows, encoder.StyleEncoder)
    seen, criterion = encoder.style_features(cpu, exact), Criterion.of(OBJECTIVE)
    bundled = build_features(FeaturesConfig()).ended_at(criterion.layers)
    extractor = optimize_for_inference(bundled, cpu, exact)
    photos = Photos(Path(photographs))
    contents, scenes = Crops(photos, CROP), Scenes(Crops(photos, SCENE))
    styles = [Crops(Photos(Path(folder)), STYLE) for folder in paintings]
    slow = {*rows.parameters()}
    kernels = [
        value
        for name, value in network.named_parameters()
        if value not in slow and not name.endswith((".scale", ".shift"))
    ]
    groups = [(kernels, 1.0), (rows.rows.parameters(), ROWS), (rows.code.parameters(), CODE)]
    optimizer = torch.optim.AdamW(
        [{"params": list(values), "lr": RATE * share} for values, share in groups], weight_decay=0
    )
    rates = [group["lr"] for group in optimizer.param_groups]
    average = {name: value.clone() for name, value in network.state_dict().items()}
    began, step = time.monotonic(), 0
    seen_losses: list[list[float]] = []
    while (gone := (time.monotonic() - began) / (60 * minutes)) < 1:
        generator = torch.Generator().manual_seed(step)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            factor = 0.03 + 0.97 * (1 + math.cos(math.pi * gone)) / 2
            group["lr"] = rate * factor * min(1, (step + 1) / WARMUP)
        folders = torch.randint(len(styles), (BATCH,), generator=generator).tolist()
        chosen = [recoloured(styles[folder](1, generator), generator) for folder in folders]
        crops = contents(BATCH, generator)
        drawn = [scenes(generator) for _ in range(BATCH)]
        codes = rows(torch.cat([encoder.moments(seen, style) for style in chosen]))
        pastiches = encoder.paint_rows(network, crops, codes)
        pictures = encoder.paint_rows(network, torch.cat([one for one, _ in drawn]), codes)
        faults = [
            HALO * halo(picture, masks) + LATTICE * lattice(picture, masks[0])
            for picture, (_, masks) in zip(pictures.split(1), drawn, strict=True)
        ]
        gradients, losses = [], []
        for crop, pastiche, style in zip(crops.split(1), pastiches.split(1), chosen, strict=True):
            matrix, offset = palette_map(pastiche.detach(), style)
            moved = (matrix @ pastiche.detach().flatten(2)[0] + offset).view_as(pastiche)
            leaf = moved.clamp(0, 1).requires_grad_()
            objective = Objective(
                extractor, LOSS_MODES["autograd_function"], criterion, pair(crop, style)
            )
            told = objective.evaluate(leaf)
            unrest = restless(leaf, crop, style)
            (CALM * unrest).backward()
            losses.append([told.total.item(), unrest.item()])
            assert leaf.grad is not None
            gradients.append((matrix.T @ leaf.grad.flatten(2)[0]).view_as(crop) / BATCH)
        seen_losses += losses
        loss = torch.stack(faults).mean()
        optimizer.zero_grad()
        torch.autograd.backward([pastiches, loss], [torch.cat(gradients), torch.ones(())])
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        step += 1
        for name, value in network.state_dict().items():
            average[name].lerp_(value, 1 - min(AVERAGING, step / (step + 9)))
        if step % 100 == 0:
            own = {name: value.clone() for name, value in network.state_dict().items()}
            network.load_state_dict(average)
            write(Path(output), network, [])
            network.load_state_dict(own)
            told, unrest = torch.tensor(seen_losses).mean(0).tolist()
            print(f"{step}: {told:.3f}, {unrest:.4f}, {float(loss):.4f}", flush=True)
            seen_losses = []


if __name__ == "__main__":
    *paths, last = sys.argv[1:]
    train(paths[0], paths[1], paths[2], paths[3:], float(last.removeprefix("minutes=")))
