"""Style images of a network that knows any style: looked at once, and worn when it paints."""

import torch
from torch import Tensor, nn

from styletransfer.config import ApplyConfig
from styletransfer.errors import UserError
from styletransfer.job.load import files_of, style_image
from styletransfer.networks.encoder import (
    SMALLEST_PAINTING,
    build_eye,
    dress,
    finished,
    moments,
    palette,
)
from styletransfer.pictures import images

# Longer side in pixels at which a photograph is looked at, whose own style is no style at all.
LOOKED_AT = 512


class Paintings:
    """The styles of pictures, as rows of scales and shifts (UserError: a picture that is none)."""

    def __init__(self, config: ApplyConfig, encoder: nn.Module, device: torch.device) -> None:
        if config.style is None:
            raise UserError("this network takes its style from a picture; give style=PICTURE")
        self.strength, self.encoder = config.strength, encoder.to(device)
        self.eye = build_eye(device, torch.float32)
        self.files = files_of("style", config.style)
        rows, palettes = [], []
        for file in self.files:
            picture = style_image(file, config.style_size, SMALLEST_PAINTING)
            rows.append(self._row(picture.to(device)))
            palettes.append(palette(picture))
        self.rows, self.palettes = torch.cat(rows), torch.stack(palettes)

    def dress(self, network: nn.Module, image: Tensor) -> None:
        """Give a deployed network these styles, for painting a picture (1, 3, H, W)."""
        rows = self.rows
        if self.strength < 1:
            size = images.scaled_size((image.shape[2], image.shape[3]), LOOKED_AT)
            rows = torch.lerp(self._row(images.resize(image, size)), rows, self.strength)
        dress(network, rows)

    def finished(self, pastiche: Tensor, shares: Tensor) -> Tensor:
        """Return a pastiche (1, 3, H, W), on the CPU, nearer to its styles' palettes.

        The shares of the styles are (S,).
        """
        mixed = torch.einsum("s,sij->ij", shares.cpu().double(), self.palettes)
        return finished(pastiche, mixed, self.strength)

    def _row(self, picture: Tensor) -> Tensor:
        row: Tensor = self.encoder(moments(self.eye, picture))
        return row
