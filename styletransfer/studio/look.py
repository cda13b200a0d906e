"""A first look: what the network for any style makes of a photograph, before any run."""

import os
from collections.abc import Sequence
from functools import cache, lru_cache

import torch
from PIL import Image
from torch import Tensor, nn

from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.job.load import style_image
from styletransfer.networks import StyleNetwork, deployed
from styletransfer.networks.encoder import (
    SMALLEST_PAINTING,
    build_eye,
    dress,
    finished,
    moments,
    palette,
)
from styletransfer.networks.file import network_file, read
from styletransfer.networks.johnson import SMALLEST_SIDE
from styletransfer.pictures.convert import as_picture, to_image

# Longer side in pixels of both pictures, and how many styles are remembered.
SIDE, REMEMBERED = 512, 64


@torch.no_grad()
def paint(content: Image.Image, styles: Sequence[str], shares: Sequence[float]) -> Image.Image:
    """Return a photograph in the style of picture files, blended by shares, alike without any.

    A UserError says that a style image cannot be read, or that a picture is too narrow.
    """
    small = content.copy()
    small.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    if min(small.size) < SMALLEST_SIDE:
        raise UserError("the photograph is too narrow for a first look")
    try:
        known = [_known(path, os.stat(path).st_mtime_ns) for path in styles]
    except OSError as error:
        raise UserError(f"{error.filename} is gone") from error
    weights = torch.tensor(list(shares) or [1.0] * len(known))
    weights, network = weights / weights.sum(), _network()[0]
    row, goal = (
        torch.einsum("s,sij->ij", weights.to(values[0]), torch.stack(values))
        for values in zip(*known, strict=True)
    )
    dress(network, row)
    return to_image(finished(network(as_picture(small, "content").rgb, torch.ones(1, 1)), goal))


@lru_cache(REMEMBERED)
def _known(path: str, age: int) -> tuple[Tensor, Tensor]:
    """Return the row and the palette of a style image; of another age it is another one."""
    _, encoder, eye = _network()
    image = style_image(path, SIDE, SMALLEST_PAINTING)
    return encoder(moments(eye, image)), palette(image)


@cache
def _network() -> tuple[StyleNetwork, nn.Module, FeatureExtractor]:
    """Return the network, ready to paint, its encoder, and what looks at styles for it."""
    network = read(network_file("any")).network
    assert network.encoder is not None
    return deployed(network), network.encoder, build_eye(torch.device("cpu"), torch.float32)
