"""The coordinates in which L-BFGS moves a picture: its curvatures, evened out.

L-BFGS begins at every scale as if the objective were equally curved in all directions. It is not
(`python benchmarks/curvature.py`): under VGG-19 the curvature along waves of lightness grows with
their frequency to the power of 1 to 2, up to 0.2 cycles per pixel, along waves of colour up to less
than 0.1, and falls beyond. Coordinates divided by the root of the curvature would make all
directions alike. These come close: their gain falls as 1 / frequency, which also is how the
amplitudes of natural images fall (Field 1987, "Relations between the statistics of natural images
and the response properties of cortical cells"), and then stays. The objective and its minimum are
what they were; only the way there changes.
"""

import torch
from torch import Tensor, fft

# In cycles per pixel. Tones broader than waves of CORNER count alike, and so does detail finer
# than waves of the limits.
CORNER = 0.02
LIGHTNESS_LIMIT, COLOUR_LIMIT = 0.2, 0.1


def frequencies(picture: Tensor) -> Tensor:
    """Return cycles per pixel, 0 to 0.71, of rfft2 of a picture (1, 3, H, W): (H, W // 2 + 1)."""
    options = {"dtype": picture.dtype, "device": picture.device}
    down = fft.fftfreq(picture.shape[2], **options).unsqueeze(1)
    right = fft.rfftfreq(picture.shape[3], **options)
    return torch.hypot(down, right)


class Preconditioner:
    """Maps a shift in these coordinates to one of the picture.

    Lightness (the mean of red, green and blue) is multiplied by a gain that depends on its
    frequency alone, and so are the colours (what is left), by one of their own. Therefore the map
    is its own transpose: what it does to a shift it also does to a gradient. The mean square of
    lightness's gain over frequencies is 1, so that steps keep about their length.

    Args:
        picture: (1, 3, H, W), of which size, dtype and device are taken.
        exponent: of the gains; 0 leaves pictures as they are, 1 evens the curvatures out.
    """

    def __init__(self, picture: Tensor, exponent: float) -> None:
        self.size = (picture.shape[2], picture.shape[3])
        frequency = frequencies(picture)
        lightness = (frequency.clamp(max=LIGHTNESS_LIMIT) + CORNER) ** -exponent
        colour = (frequency.clamp(max=COLOUR_LIMIT) + CORNER) ** -exponent
        mean = lightness.square().mean().sqrt()
        self.lightness_gain, self.colour_gain = lightness / mean, colour / mean

    def apply(self, shift: Tensor) -> Tensor:
        """Return the picture's shift for one of the coordinates; for gradients, vice versa."""
        waves = fft.rfft2(shift)
        lightness = waves.mean(1, keepdim=True)
        waves.sub_(lightness).mul_(self.colour_gain).add_(lightness.mul_(self.lightness_gain))
        result: Tensor = fft.irfft2(waves, s=self.size)
        return result
