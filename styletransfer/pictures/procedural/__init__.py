"""Endless procedural pictures, for training a feature network without any data set.

A picture is a few layers from random families (occluding shapes, brush strokes, waves, noise,
cells, landscapes, tiles, line drawings) in a random palette, finished with light, focus and grain.
A *field* below is a (size, size) float32 tensor in [0, 1]; a *canvas* is (3, size, size) sRGB.
"""

import torch
from torch import Generator, Tensor

from styletransfer.pictures.procedural.canvases import base_canvas
from styletransfer.pictures.procedural.fields import random_mask, random_palette
from styletransfer.pictures.procedural.finish import finished
from styletransfer.pictures.procedural.random_choice import chance, uniform
from styletransfer.pictures.procedural.shapes import leaves
from styletransfer.pictures.procedural.strokes import brushed, drawn


def picture(size: int, generator: Generator) -> Tensor:
    """Return one (3, size, size) float32 sRGB picture in [0, 1], drawn from a CPU generator."""
    palette = random_palette(generator)
    canvas = base_canvas(size, generator, palette)
    if chance(generator, 0.3):
        other = palette if chance(generator, 0.5) else random_palette(generator)
        canvas = torch.lerp(
            canvas, base_canvas(size, generator, other), random_mask(size, generator)
        )
    if chance(generator, 0.3):
        canvas = leaves(canvas, generator, palette, int(uniform(generator, 2, 25)))
    if chance(generator, 0.22):
        canvas = brushed(canvas, generator)
    if chance(generator, 0.25):
        canvas = drawn(canvas, generator, palette)
    return finished(canvas, generator)
