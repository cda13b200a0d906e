"""What one sees of a picture without any network: grain, contrast, colour, and its border.

A network's losses hardly tell a washed-out pastiche from a rich one, and no network looks at what
it was optimised under with fresh eyes. Each probe is a number of one picture, which says nothing by
itself: set beside the content's and the style's, it names the fault (Ioannou and Maddock 2024,
"Evaluation in neural style transfer: a review", arXiv:2401.17109). Pictures are (1, 3, H, W), sRGB
in [0, 1].
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, pad

# Rec. ITU-R BT.709, part 3: the share of red, green and blue in luma.
LUMA = (0.2126, 0.7152, 0.0722)
# Burt and Adelson 1983, "The Laplacian pyramid as a compact image code" (a = 3/8): a quarter of
# the sampling rate is halved twice over, and flat colour stays as it is.
BLUR = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)
# Side in pixels of the windows of local contrast: about a stroke at 512 pixels.
WINDOW = 16
# Width of the frame that is the border, as a share of the picture's shorter side.
FRAME = 1 / 16


def grain(picture: Tensor) -> float:
    """Return the root of the mean square of luma that a small blur takes.

    The finest level of the Laplacian pyramid (Burt and Adelson 1983), mostly waves shorter than
    eight pixels. Noise and checkerboards raise it; a blur brings it to nothing.
    """
    luma = luma_of(picture)
    return (luma - _blur(luma)).square().mean().sqrt().item()


def local_contrast(picture: Tensor) -> float:
    """Return the standard deviation of luma within windows of 16 x 16 pixels, averaged over them.

    0 for flat colour, at most 0.5. Low in a washed-out picture. The finest grain is blurred away
    first, since `grain` is there for it.
    """
    luma = _blur(luma_of(picture))
    window = (min(WINDOW, luma.shape[2]), min(WINDOW, luma.shape[3]))
    mean = avg_pool2d(luma, window, stride=1)
    square = avg_pool2d(luma.square(), window, stride=1)
    return (square - mean.square()).clamp_min(0).sqrt().mean().item()


def saturation(picture: Tensor) -> float:
    """Return max - min of red, green and blue, averaged over the pixels: 0 for greys, at most 1.

    The chroma of the hexcone (Smith 1978, "Color gamut transform pairs", before its division by
    lightness, which makes dark noise look as colourful as a poster).
    """
    return (picture.amax(1) - picture.amin(1)).mean().item()


def border_lightness(picture: Tensor) -> float:
    """Return the mean luma of the border less that of the centre, -1 to 1.

    The border is a frame of 1/16 of the shorter side. Zero padding darkens it, layer by layer, and
    a picture's own subject is mostly inside: compare with the content's.
    """
    luma = luma_of(picture)
    width = max(1, round(min(luma.shape[2:]) * FRAME))
    is_border = torch.ones_like(luma, dtype=torch.bool)
    is_border[..., width:-width, width:-width] = False
    centre = luma[~is_border]
    return (luma[is_border].mean() - centre.mean()).item() if len(centre) else 0.0


PROBES: dict[str, Callable[[Tensor], float]] = {
    "grain": grain,
    "local contrast": local_contrast,
    "saturation": saturation,
    "border lightness": border_lightness,
}


def probe(picture: Tensor) -> dict[str, float]:
    """Return the name of each probe -> its value for a picture."""
    return {name: measure(picture) for name, measure in PROBES.items()}


def luma_of(picture: Tensor) -> Tensor:
    """Return (1, 1, H, W), in float64: the mean of squares less the squared mean loses digits."""
    shares = torch.tensor(LUMA, dtype=torch.float64, device=picture.device)
    return (picture.double() * shares[:, None, None]).sum(1, keepdim=True)


def _blur(luma: Tensor) -> Tensor:
    kernel = torch.tensor(BLUR, dtype=luma.dtype, device=luma.device)
    padded = pad(luma, (2, 2, 2, 2), mode="replicate")
    return conv2d(conv2d(padded, kernel.view(1, 1, 5, 1)), kernel.view(1, 1, 1, 5))
