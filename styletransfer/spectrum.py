"""The coordinates in which L-BFGS moves a picture: its spectrum, flattened.

L-BFGS begins at every scale with a step along the bare gradient, equally long at all spatial
frequencies. But photographs and paintings have far more power in broad tones than in fine detail,
an amplitude of about 1 / f (Field 1987, "Relations between the statistics of natural images and
the response properties of cortical cells"), so broad tones have farther to go. In coordinates
divided by such an amplitude all frequencies are about equally far away. The objective and its
minimum stay as they are; only the way there changes.
"""

import torch
from torch import Tensor, fft

# Cycles per pixel, added to f: below it, tones as broad as 50 pixels count alike.
CORNER = 0.02


class Spectrum:
    """Maps a shift in these coordinates to one of the picture, by a gain of (f + CORNER)^-exponent.

    The gain depends on the frequency alone, so the map is its own transpose: what it does to a
    shift it also does to a gradient. Its mean square over frequencies is 1, so that steps keep
    their length.

    Args:
        picture: (1, 3, H, W), of which size, dtype and device are taken.
        exponent: 0 leaves pictures as they are, 1 is the amplitude of natural images.
    """

    def __init__(self, picture: Tensor, exponent: float) -> None:
        self.size = (picture.shape[2], picture.shape[3])
        options = {"dtype": picture.dtype, "device": picture.device}
        down = fft.fftfreq(self.size[0], **options).unsqueeze(1)
        right = fft.rfftfreq(self.size[1], **options)
        gain = (torch.hypot(down, right) + CORNER) ** -exponent
        self.gain = gain / gain.square().mean().sqrt()

    def apply(self, shift: Tensor) -> Tensor:
        """Return the picture's shift for one of the coordinates; for gradients, vice versa."""
        result: Tensor = fft.irfft2(fft.rfft2(shift) * self.gain, s=self.size)
        return result
