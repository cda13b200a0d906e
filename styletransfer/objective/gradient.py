"""The gradient of an objective at a picture."""

from torch import Tensor

from styletransfer.objective.tiled import TiledObjective
from styletransfer.objective.whole import Objective


def gradient_at(objective: Objective | TiledObjective, image: Tensor) -> Tensor:
    """Return d(total)/d(image), (1, 3, H, W), at `image`.

    Args:
        objective: whole or in tiles, at the size of the image.
        image: (1, 3, H, W), sRGB in [0, 1]; left as it is.
    """
    leaf = image.detach().requires_grad_()
    objective.evaluate(leaf)
    assert leaf.grad is not None
    return leaf.grad
