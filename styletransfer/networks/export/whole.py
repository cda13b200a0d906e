"""A network for any style as one graph; the inputs are a photograph, a painting and the strength.

The graph does what `apply` does in float32: it resizes the painting, encodes it, paints, and moves
the colours towards the painting's. It has basic operations only, so that many programs can run it.
"""

from typing import Any

import torch
from torch import Tensor, nn

from styletransfer.features import build_features
from styletransfer.features.extractor import MaxPool
from styletransfer.networks.encoder import ENCODED_SIDE, SEEN, moments_of, paint_rows
from styletransfer.networks.johnson import StyleNetwork
from styletransfer.pictures.color import LEAST_VARIANCE
from styletransfer.settings import FeaturesConfig

# Number of iterations in `geometric_mean`; each divides the error by 9 or more.
REPETITIONS = 9


class PaintingToRow(nn.Module):
    """PaintingToRow computes the row of R numbers for the style of a painting."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        features = build_features(FeaturesConfig()).ended_at(SEEN)
        # torch's own pool returns the same values, is a single node of the exported graph, and has
        # a shorter formula for its output's size: the whole export takes a third of the time.
        pool = nn.MaxPool2d(2)
        self.features = features.changed(lambda x: pool if isinstance(x, MaxPool) else x)
        self.encoder = encoder

    def forward(self, painting: Tensor) -> Tensor:
        """Return all norms' scales and shifts (1, R) for a painting (1, 3, h, w) as the style."""
        row: Tensor = self.encoder(moments_of(self.features(painting, SEEN)))
        return row


class Whole(nn.Module):
    """Whole contains a style network, its encoder, and the recolouring of the pastiche."""

    def __init__(self, network: StyleNetwork) -> None:
        super().__init__()
        assert network.encoder is not None, "a network for any style"
        self.network, self.row = network, PaintingToRow(network.encoder)

    def forward(self, image: Tensor, painting: Tensor, strength: Tensor) -> Tensor:
        """Return the pastiche of `image` (1, 3, H, W) in the style of `painting` (1, 3, h, w).

        Both are sRGB in [0, 1]. `strength` (1,) is from 0 (the photograph's own style) to 1.
        """
        looked = resized(painting)
        own, row = self.row(resized(image)), self.row(looked)
        pastiche = paint_rows(self.network, image, own + strength * (row - own))
        mean, covariance = color_statistics(pastiche)
        goal_mean, goal = color_statistics(looked)
        one = torch.eye(3, dtype=torch.float64)
        change = one + strength.double() * (geometric_mean(covariance, goal) - one)
        moved = change.float() @ (pastiche.flatten(2)[0] - mean)
        end = mean + strength * (goal_mean - mean)
        return (moved + end).clamp(0.0, 1.0).reshape(pastiche.shape)


def resized(image: Tensor) -> Tensor:
    """Resize an image (1, 3, H, W) to the longer side ENCODED_SIDE, as `images.resize` does."""
    height, width = image.shape[2:]
    sides = torch.stack([torch.scalar_tensor(side, dtype=torch.int64) for side in (height, width)])
    longer = sides.amax(0)
    wanted = (2 * ENCODED_SIDE * sides + longer) // (2 * longer)
    # For the result of `item`, torch.export makes a new symbol. Otherwise the symbols of all later
    # sizes would contain the formula of `wanted`, and the export would take minutes.
    rows, columns = (side.item() for side in wanted)
    for side in (rows, columns):
        torch._check(side >= 8)
        torch._check(side <= ENCODED_SIDE)
    resampled = filters(height, rows) @ image @ filters(width, columns).T
    return resampled.clamp(0.0, 1.0)


def filters(size: int | torch.SymInt, wanted: int | torch.SymInt) -> Tensor:
    """Return the matrix (wanted, size) of an antialiased bicubic resampling.

    The filter is that of Keys 1981, "Cubic convolution interpolation for digital image processing",
    with a = -0.5, widened by the factor of the reduction, as in torch and Pillow.
    """
    ratio: Any = size / wanted
    places = torch.arange(size, dtype=torch.float32)
    centres = (torch.arange(wanted, dtype=torch.float32) + 0.5) * ratio - 0.5
    wide = (torch.ones(1) * ratio).clamp(min=1.0)
    x = ((places - centres[:, None]) / wide).abs()
    near = (1.5 * x - 2.5) * x * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    weights = torch.where(x < 1.0, near, torch.where(x < 2.0, far, torch.zeros_like(x)))
    return weights / weights.sum(1, keepdim=True)


def color_statistics(image: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean (3, 1) and, in float64, covariance (3, 3) of the colours of (1, 3, H, W)."""
    colors = image.flatten(2)[0]
    mean = colors.mean(1, keepdim=True)
    centred = colors - mean
    return mean, (centred @ centred.T / centred.shape[1]).double()


def geometric_mean(start: Tensor, end: Tensor) -> Tensor:
    """Return symmetric A with A @ start @ A = end, like `color.monge`, but without eigenvectors.

    A = inverse(start) @ U, where U is the square root of start @ end. By Cayley and Hamilton, U is
    a polynomial of its square with the invariants of U (Hoger and Carlson 1984, "Determination of
    the stretch and rotation in the polar decomposition of the deformation gradient"). The
    invariants i1, i2, i3 of U follow from the invariants I1, I2, I3 of its square by
    i1^2 = I1 + 2 i2, i2^2 = I2 + 2 i1 i3 and i3^2 = I3.
    """
    one = torch.eye(3, dtype=torch.float64)
    start, end = start + LEAST_VARIANCE * one, end + LEAST_VARIANCE * one
    square, (inverse, first), (other, second) = start @ end, adjugate(start), adjugate(end)
    third = (first * second).sqrt()
    both, trace = (other * inverse).sum(), (square * one).sum()
    i1 = trace.sqrt()
    i2 = both.sqrt()
    for _ in range(REPETITIONS):
        i1, i2 = (trace + 2 * i2).sqrt(), (both + 2 * third * i1).sqrt()
    root = i1 * third * one + (i1 * i1 - i2) * square - square @ square
    return inverse @ root / (first * (i1 * i2 - third))


def adjugate(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return the adjugate (3, 3) and the determinant of a symmetric matrix (3, 3)."""
    turn = torch.eye(3, dtype=matrix.dtype)[[1, 2, 0]]
    once, twice = turn @ matrix, turn.T @ matrix  # rows moved up by one and by two, cyclically
    cofactors = (once @ turn.T) * (twice @ turn) - (once @ turn) * (twice @ turn.T)
    return cofactors, (cofactors[0] * matrix[0]).sum()
