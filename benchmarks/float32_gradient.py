"""Compare the objective's gradient in float32 with that in float64, for several pairs of pictures.

    python benchmarks/float32_gradient.py

The pairs are each bundled photograph with two bundled paintings, at 192 pixels; the gradient is at
the content image. Each convolution has a relative error of about 2e-7, but the gradient may have a
much larger one: rounding decides a ReLU near 0 or a max pool with nearly equal inputs, and so which
inputs get the gradient. The last column shows the change of the float64 gradient after noise of at
most 1e-7 is added to the image.
"""

import itertools
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.measured import table
from styletransfer.features import build_features
from styletransfer.losses import LOSS_MODES
from styletransfer.objective import Criterion, gradient_at
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective
from styletransfer.pictures.images import read, resize_picture
from styletransfer.pictures.transparency import fill_transparent
from styletransfer.settings import FeaturesConfig, ObjectiveConfig

ASSETS = Path(__file__).resolve().parents[1] / "assets"
SIZE, MOVE = 192, 1e-7  # longer side in pixels; largest noise in the last column


def gradient(pooling: str, dtype: torch.dtype, pictures: list[Tensor], move: float = 0.0) -> Tensor:
    """Return d(total)/d(image) as float64, at the content image plus noise from 0 to `move`."""
    network = build_features(FeaturesConfig(pooling=pooling), seed=0).to(dtype)
    content, style = (picture.to(dtype) for picture in pictures)
    mode = LOSS_MODES["loss_attribute"]
    objective = Objective(network, mode, Criterion.of(ObjectiveConfig()), pair(content, style))
    noise = torch.rand(content.shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
    return gradient_at(objective, content + move * noise).double()


def main() -> None:
    """Print the relative errors of the gradients as a Markdown table."""
    rows = []
    pairs = [
        (photograph, ASSETS / "style" / f"{painting}.jpg")
        for photograph in sorted((ASSETS / "content").glob("*.jpg"))
        for painting in ("oil", "woodcut")
    ]
    for pooling, paths in itertools.product(("max", "average"), pairs):
        pictures = [fill_transparent(resize_picture(read(path), SIZE)).float() for path in paths]
        exact = gradient(pooling, torch.float64, pictures)
        others = (
            gradient(pooling, torch.float32, pictures),
            gradient(pooling, torch.float64, pictures, MOVE),
        )
        errors = (float((other - exact).norm() / exact.norm()) for other in others)
        rows.append([pooling, *(path.stem for path in paths), *(f"{e:.1e}" for e in errors)])
    headings = ["pooling", "photograph", "painting", "float32", "float64, moved by 1e-7"]
    print(table(headings, rows, left=[0, 1, 2]))


if __name__ == "__main__":
    main()
