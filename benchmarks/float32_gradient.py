"""How far a float32 gradient of the whole objective is from float64's, pair by pair.

    python benchmarks/float32_gradient.py

Every bundled photograph with two bundled paintings at 192 pixels, at the picture that a run starts
from. Each convolution is right to 3e-6 or better, yet the gradient may be far off: a ReLU or a max
pool whose inputs nearly tie is decided by the last bits, and sends its gradient another way. The
last column shows that of float64 itself, after moving the picture by 1e-7 of its range.
"""

import itertools
from pathlib import Path

import torch
from torch import Tensor

from styletransfer.features import build_features, optimize_for_inference
from styletransfer.losses import get_loss_mode
from styletransfer.objective.criterion import Criterion, gradient_at
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective
from styletransfer.pictures.images import fill_transparent, read, resize_picture
from styletransfer.settings import FeaturesConfig, ObjectiveConfig
from styletransfer.system.measure import table

ASSETS = Path(__file__).resolve().parents[1] / "assets"
SIZE, MOVE = 192, 1e-7


def gradient(
    pooling: str, dtype: torch.dtype, winograd: bool, pictures: list[Tensor], move: float = 0.0
) -> Tensor:
    """Return d(total)/d(image) at the content picture, in float64."""
    network = build_features(FeaturesConfig(pooling=pooling), seed=0).to(dtype)
    if winograd:
        network = optimize_for_inference(network, torch.device("cpu"), dtype)
    content, style = (picture.to(dtype) for picture in pictures)
    mode = get_loss_mode("loss_attribute")
    objective = Objective(network, mode, Criterion.of(ObjectiveConfig()), pair(content, style))
    noise = torch.rand(content.shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
    return gradient_at(objective, content + move * noise).double()


def main() -> None:
    """Print relative errors as a Markdown table."""
    rows = []
    pairs = [
        (photograph, ASSETS / "style" / f"{painting}.jpg")
        for photograph in sorted((ASSETS / "content").glob("*.jpg"))
        for painting in ("oil", "woodcut")
    ]
    for pooling, paths in itertools.product(("max", "average"), pairs):
        pictures = [fill_transparent(resize_picture(read(path), SIZE)).float() for path in paths]
        exact = gradient(pooling, torch.float64, False, pictures)
        others = (
            gradient(pooling, torch.float32, True, pictures),
            gradient(pooling, torch.float32, False, pictures),
            gradient(pooling, torch.float64, False, pictures, MOVE),
        )
        errors = (float((other - exact).norm() / exact.norm()) for other in others)
        rows.append([pooling, *(path.stem for path in paths), *(f"{e:.1e}" for e in errors)])
    headings = ["pooling", "photograph", "painting", "Winograd", "direct", "float64, moved by 1e-7"]
    print(table(headings, rows, left=[0, 1, 2]))


if __name__ == "__main__":
    main()
