"""What the page sees of a run: small JPEG pictures, made no more often than they are worth."""

import io
import time

import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import avg_pool2d

# Of a preview's longer side in pixels; seconds between two; the share of the run's time that they
# may take; and their age above which that does not matter.
SIDE, OFTEN, SHARE, OLD = 1024, 0.25, 0.02, 1.0
QUALITY = 85


def encode(picture: Tensor) -> bytes:
    """Return a picture (1, 3, H, W) in [0, 1] as a JPEG of at most `SIDE` pixels."""
    factor = -(-max(picture.shape[2:]) // SIDE)
    small = (
        picture.detach() if factor == 1 else avg_pool2d(picture.detach(), factor, ceil_mode=True)
    )
    if not small.isfinite().all():
        small = torch.nan_to_num(small)
    samples = (small[0].clamp(0.0, 1.0) * 255).round().to("cpu", torch.uint8)
    buffer = io.BytesIO()
    Image.fromarray(samples.permute(1, 2, 0).numpy()).save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()


class Pace:
    """When it is time for the next preview."""

    def __init__(self) -> None:
        self._next = 0.0

    def is_due(self) -> bool:
        """Tell whether one may be made now."""
        return time.monotonic() >= self._next

    def made(self, began: float) -> None:
        """Note that one was made since `time.monotonic()` was `began`."""
        now = time.monotonic()
        self._next = now + min(max(OFTEN, (now - began) / SHARE), OLD)
