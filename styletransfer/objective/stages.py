"""Stages: runs of layers that tiles pass one after another, so that halos stay a few pixels wide.

A tile that ran from the pixels to relu5_1 would read 70 pixels beyond each of its sides. Where a
pool ends a stage, its output is kept whole, and the next stage cuts it into tiles anew: a halo then
spans the convolutions of one stage only, 6 pixels before pool2 of VGG-19 and 4 positions after it.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from styletransfer.features.extractor import FeatureExtractor, is_pool
from styletransfer.objective.tiles import Tile, grid, pooling

# Of pixels per position, along an axis: pools below it end no stage, their outputs are too large.
# At 4 VGG-19 has 8 values per pixel of the picture, at 2 it has 16.
LEAST_STRIDE = 4

# (layer, tile, what the tile has of its output) -> what the next layer receives.
Visit = Callable[[str, Tile, Tensor], Tensor]


@dataclass(frozen=True)
class Stage:
    """Consecutive layers, from one feature map that is kept whole to the next.

    Attributes:
        entry: what comes before the layers: the preprocessing, or nothing.
        layers: name -> module, in the order of evaluation.
        stride: pixels of the picture, along each axis, that one position of the input stands for.
        is_last: no stage follows.
    """

    entry: nn.Module
    layers: nn.ModuleDict
    stride: int
    is_last: bool

    def size(self, picture: tuple[int, int]) -> tuple[int, int]:
        """Return the height and width of the input for a picture of (height, width) pixels."""
        return picture[0] // self.stride, picture[1] // self.stride

    def tiles(self, picture: tuple[int, int], tile: int) -> list[Tile]:
        """Cut the input for a picture of (height, width) pixels into tiles.

        Args:
            picture: at least the stride of the stage's output along each axis.
            tile: side in pixels at the first stage. A later one, whose layers hold fewer values
                per pixel, takes half as many positions: at stride 4 twice as many pixels.
        """
        side = tile if self.stride == 1 else max(tile // 2, pooling(self.layers))
        return grid(self.layers, self.size(picture), side)

    def run(self, tile: Tile, inputs: Tensor, visit: Visit) -> Tensor:
        """Return what `tile` has of the output, given what it reads of the input."""
        features: Tensor = self.entry(inputs)
        for name, layer in self.layers.items():
            features = visit(name, tile, tile.trim(name, layer(features)))
        return features

    @torch.no_grad()
    def forward(self, tiles: list[Tile], inputs: Tensor, visit: Visit) -> Tensor | None:
        """Run all tiles without a graph; return the whole output (1, C, h, w), None for the last.

        Nothing reads the output of the last stage, which for shallow layers would be a large one.
        """
        *_, name = self.layers
        _, rows, columns = tiles[-1].place[name]
        whole: Tensor | None = None
        for tile in tiles:
            part = self.run(tile, inputs[tile.window], visit)
            if self.is_last:
                continue
            if whole is None:
                shape = (1, part.shape[1], rows.stop, columns.stop)
                whole = part.new_empty(shape).to(memory_format=torch.channels_last)
            whole[tile.place[name]] = part[tile.own[name]]
        return whole

    def backward(
        self, tiles: list[Tile], inputs: Tensor, gradient: Tensor | None, visit: Visit
    ) -> Tensor:
        """Return d(total)/d(inputs), computed tile by tile.

        Args:
            tiles: of the input.
            inputs: (1, C, H, W), detached.
            gradient: d(total)/d(output) by way of all later stages; None if there are none.
            visit: lets the stage's own losses feed their gradients.
        """
        *_, last = self.layers
        total = torch.zeros_like(inputs)
        for tile in tiles:
            start = inputs[tile.window].detach().requires_grad_()
            end = self.run(tile, start, visit)
            upper = torch.zeros_like(end)
            if gradient is not None:
                upper[tile.own[last]] = gradient[tile.place[last]]
            (share,) = torch.autograd.grad(end, start, upper)
            total[tile.window] += share
        return total


def stages(extractor: FeatureExtractor) -> list[Stage]:
    """Return the stages of a network: they end where a pool leaves LEAST_STRIDE or more."""
    found: list[Stage] = []
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    entry, start, stride = extractor.preprocess, 1, 1
    *_, last = extractor.layers
    for name, layer in extractor.layers.items():
        layers[name] = layer
        stride *= 2 if is_pool(layer) else 1
        if name == last or (is_pool(layer) and stride >= LEAST_STRIDE):
            found.append(Stage(entry, nn.ModuleDict(layers), start, is_last=name == last))
            layers, entry, start = OrderedDict(), nn.Identity(), stride
    return found
