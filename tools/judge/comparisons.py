"""A picture beside its content and its style, in figures that no optimiser has seen.

A picture that was optimised under Gram matrices is near in Gram matrices, which says little. SSIM
and the palette distance use no network. Pictures are (1, 3, H, W), sRGB in [0, 1].
"""

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from styletransfer.pictures.color import to_oklab
from tools.judge.probes import luma_of

# Wang et al. 2004, "Image quality assessment: from error visibility to structural similarity":
# side and deviation of the Gaussian window in pixels; K1 and K2, for values up to 1.
WINDOW, DEVIATION = 11, 1.5
K1, K2 = 0.01, 0.03
# Orthogonal triples of directions for the palette distance, and quantiles along each.
TRIPLES = 16
QUANTILES = 1024


@torch.no_grad()
def compare(picture: Tensor, content: Tensor, style: Tensor) -> dict[str, float]:
    """Return figure -> its value for a picture, which is as large as the content."""
    return {"SSIM": ssim(picture, content), "palette distance": palette_distance(picture, style)}


def ssim(picture: Tensor, other: Tensor) -> float:
    """Return the structural similarity of the luma of two pictures of one size, -1 to 1.

    1 for equal ones. Wang et al. 2004, equation 13, averaged over every position of the window that
    lies in the picture, which is at least 11 x 11 pixels.
    """
    x, y = luma_of(picture), luma_of(other)
    offsets = torch.arange(WINDOW, dtype=x.dtype, device=x.device) - WINDOW // 2
    window = (-(offsets / DEVIATION).square() / 2).exp()
    window /= window.sum()

    def average(values: Tensor) -> Tensor:
        return conv2d(conv2d(values, window.view(1, 1, -1, 1)), window.view(1, 1, 1, -1))

    mean_x, mean_y = average(x), average(y)
    variances = average(x * x) - mean_x.square() + average(y * y) - mean_y.square()
    covariance = average(x * y) - mean_x * mean_y
    lightness = (2 * mean_x * mean_y + K1**2) / (mean_x.square() + mean_y.square() + K1**2)
    return (lightness * (2 * covariance + K2**2) / (variances + K2**2)).mean().item()


def palette_distance(picture: Tensor, other: Tensor) -> float:
    """Return how far the colours of one picture's pixels are from another's, 0 to about 1.

    0 where the same colours cover the same share, wherever they lie; between two flat colours it is
    their distance in OKLab. The pictures may differ in size.
    """
    first, second = (to_oklab(image[0].flatten(1).double()) for image in (picture, other))
    return sliced_wasserstein(first, second)


def sliced_wasserstein(first: Tensor, second: Tensor) -> float:
    """Return the distance of two clouds of points (3, N) and (3, M); of a shifted one, the shift.

    The sliced 2-Wasserstein distance (Bonneel et al. 2015, "Sliced and Radon Wasserstein
    barycenters of measures", definition 1) times the root of 3: in one dimension, the distance is
    that of the quantiles. Directions are drawn once and for all, as rotated axes.
    """
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(TRIPLES, 3, 3, generator=generator, dtype=torch.float64)
    axes = torch.linalg.qr(drawn).Q.flatten(0, 1).to(first.device)
    odd = 2 * torch.arange(QUANTILES, device=first.device) + 1
    ours, theirs = (
        (axes @ points.double()).sort(1).values[:, odd * points.shape[1] // (2 * QUANTILES)]
        for points in (first, second)
    )
    squared: Tensor = 3 * (ours - theirs).square().mean()
    return squared.sqrt().item()
