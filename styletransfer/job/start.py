"""The picture from which a run starts, and that from which each finer scale starts."""

from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.objective.inputs import Inputs
from styletransfer.pictures.images import resize

# Values of `init` that are not the path of a picture.
STARTS = ("content", "style", "noise")
# Fraction of the starting picture's fine detail that each finer scale adds; see `enlarged`. With 0
# the final losses of three pictures were 3 to 14 % higher; with 1 edges stayed, without strokes.
DETAIL = 0.5


@dataclass(frozen=True)
class Start:
    """A start says from which picture a run starts, as the setting `init` asks."""

    name: str  # content, style or noise; any other value: `Inputs.start` has the picture
    seed: int  # of the noise

    def picture(self, pictures: Inputs) -> Tensor:
        """Return the picture (1, 3, h, w), of any size, from which a run starts."""
        content = pictures.content
        if pictures.start is not None:
            return pictures.start
        if self.name == "content":
            return content
        if self.name == "style":  # the first style of the first region
            return pictures.styles[pictures.regions[0].sources[0].style]
        generator = torch.Generator().manual_seed(self.seed)
        return torch.rand(content.shape, generator=generator, dtype=content.dtype)

    def enlarged(
        self, image: Tensor, start: Tensor, size: tuple[int, int], *, wraps: bool = False
    ) -> Tensor:
        """Return `image` at a finer scale, plus DETAIL times the finest detail of `start`.

        An enlarged picture is blurred, and the first ten steps would only make detail again. For
        init=noise nothing is added, because the detail of noise is useless. If the scale before
        changed nothing, as with one picture for content and style, the result is `start` at the
        finer scale.

        `image` (1, 3, h, w) is the result of the scale before, or `start` (1, 3, H, W) itself.
        `size` is the (height, width) of the finer scale. If `wraps`, each edge continues at the
        opposite edge.
        """
        larger = resize(image, size, wraps=wraps)
        if self.name == "noise":
            return larger
        coarse = resize(start, (image.shape[2], image.shape[3]), wraps=wraps)
        fine = resize(start, size, wraps=wraps)
        if torch.equal(image, coarse):
            return fine
        detail = fine - resize(coarse, size, wraps=wraps)
        return detail.mul_(DETAIL).add_(larger).clamp_(0, 1)
