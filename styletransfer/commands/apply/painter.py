"""A style network and how it is to paint: image in, pastiche out."""

import logging
import math
from pathlib import Path

import torch
from torch import Tensor

from styletransfer.config import ApplyConfig
from styletransfer.errors import UserError
from styletransfer.films.steady import check_steady
from styletransfer.networks import StyleNetwork, deployed, in_strips
from styletransfer.networks.file import network_file, read
from styletransfer.networks.johnson import SMALLEST_SIDE, STRIDE
from styletransfer.networks.strips import HALO
from styletransfer.pictures import images
from styletransfer.pictures.color import with_chroma_of
from styletransfer.system.devices import choose_device, choose_precision
from styletransfer.system.memory import free_bytes

logger = logging.getLogger(__name__)

# A network has learnt its palette; recolouring the style, as content_palette does, comes too late.
COLORS = ("style", "content_luminance")
# Feature maps at full size that are there at once at most: 3.3 were measured (convolved, normed and
# reflected), and what the library needs comes on top.
MAPS = 5
# Of the memory that is free, as much as a picture may take as a whole.
SHARE = 0.5
# Pixels of a strip where it does not.
STRIP = 2**20


class Painter:
    """A network, ready to paint.

    Args:
        config: names the network and how it is to paint.

    Raises:
        UserError: a network that cannot be read, or settings out of range.
    """

    def __init__(self, config: ApplyConfig) -> None:
        check(config)
        self.device = choose_device(config.device)
        saved = read(network_file(config.network))
        self.config = config
        dtype = choose_precision(config.precision, self.device)
        self.network = deployed(saved.network, dtype).to(self.device)
        self.blend = blend(chosen(config, saved.styles), saved.styles).to(self.device)

    def size(self, size: tuple[int, int], name: Path) -> tuple[int, int]:
        """Return the (height, width) of the pastiche of a picture that has `size`.

        Raises:
            UserError: it is too small; `name` says what.
        """
        if self.config.size:
            size = images.scaled_size(size, self.config.size)
        if min(size) < SMALLEST_SIDE:
            raise UserError(
                f"{name} comes down to {size[1]} x {size[0]} pixels; each side needs at least "
                f"{SMALLEST_SIDE}"
            )
        return size

    def rows(self, size: tuple[int, int]) -> int:
        """Return how many rows of a picture (height, width) are painted at a time."""
        height, width = size
        rows = self.config.strip or rows_that_fit(self.network, size, free_bytes(self.device))
        if rows < height:
            logger.info("%d x %d pixels in strips of %d rows", width, height, rows)
        return rows

    def paint(self, content: Tensor, rows: int) -> Tensor:
        """Return the pastiche of an image, in the colours that were asked for.

        Args:
            content: (1, 3, H, W), sRGB in [0, 1], on the CPU.
            rows: that are painted at a time; from `rows`.

        Returns:
            (1, 3, H, W), on the CPU.
        """
        painted = self.painted(content, rows).cpu()
        if self.config.color == "content_luminance":
            painted = with_chroma_of(painted, content, self.config.color_strength)
        return painted

    @torch.no_grad()
    def painted(self, image: Tensor, rows: int) -> Tensor:
        """Return what the network makes of an image (1, 3, H, W), whole or in strips."""
        image = image.to(self.device).contiguous(memory_format=torch.channels_last)
        if rows < image.shape[2]:
            return in_strips(self.network, image, self.blend, rows)
        painted: Tensor = self.network(image, self.blend)
        return painted


def check(config: ApplyConfig) -> None:
    """Check the numbers.

    Raises:
        UserError: naming the key, its value and what it may be.
    """
    if config.size < 0:
        raise UserError(f"size={config.size} must be 0, for that of the picture, or more")
    if config.color not in COLORS:
        raise UserError(f"unknown color {config.color!r}; choose {' or '.join(COLORS)}")
    if not 0 <= config.color_strength <= 1:
        raise UserError(f"color_strength={config.color_strength} must be between 0 and 1")
    check_steady(config.steady)
    if config.strip != 0 and config.strip < STRIDE:
        raise UserError(
            f"strip={config.strip} must be {STRIDE} rows or more, or 0 to have it chosen"
        )


def chosen(config: ApplyConfig, styles: list[str]) -> list[float]:
    """Return how much of each style was asked for, by name or by weights; empty for equal parts.

    Raises:
        UserError: both were given, or the network knows no style of the name.
    """
    if config.style is None:
        return config.style_weights
    if config.style_weights:
        raise UserError("style and style_weights exclude each other; leave one of them out")
    if config.style not in styles:
        raise UserError(
            f"style={config.style} is none of the network's; it has {', '.join(styles)}"
        )
    return [float(name == config.style) for name in styles]


def blend(weights: list[float], styles: list[str]) -> Tensor:
    """Return how much of each style a pastiche has, (1, S), adding up to 1.

    Args:
        weights: one for each style; empty for equal parts.
        styles: their names.

    Raises:
        UserError: too few or too many, a negative one, or nothing but zeros.
    """
    if weights and len(weights) != len(styles):
        raise UserError(
            f"style_weights holds {len(weights)} numbers, and the network has {len(styles)} styles "
            f"({', '.join(styles)}); give one for each"
        )
    shares = torch.tensor([weights or [1.0] * len(styles)], dtype=torch.float64)
    if not (shares >= 0).all() or not 0 < float(shares.sum()) < math.inf:
        raise UserError(
            f"style_weights={weights} must be finite numbers, 0 or more, and not all of them 0"
        )
    return (shares / shares.sum()).float()


def rows_that_fit(network: StyleNetwork, size: tuple[int, int], memory: float) -> int:
    """Return all rows of a picture if as a whole it fits memory, else those of a strip.

    Args:
        network: in float32.
        size: (height, width) in pixels.
        memory: that is free, in bytes.
    """
    height, width = size
    if 4 * MAPS * network.layout.widths[0] * height * width <= SHARE * memory:
        return height
    return max(2 * HALO, STRIP // width)
