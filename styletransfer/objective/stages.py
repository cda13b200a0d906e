"""Stages: runs of layers that tiles pass one after another, so that halos stay a few pixels wide.

A tile that ran from the pixels to relu5_1 would read 70 pixels beyond each of its sides. Where a
pool ends a stage, its output is kept whole, and the next stage cuts it into tiles anew: a halo then
spans the convolutions of one stage only, 6 pixels before pool2 of VGG-19 and 4 positions after it.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from styletransfer.features.extractor import FeatureExtractor, is_pool
from styletransfer.objective.tiles import Span, Tile, grid, pooling

# Of pixels per position, along an axis: pools below it end no stage, their outputs are too large.
# At 4 VGG-19 has 8 values per pixel of the picture, at 2 it has 16.
LEAST_STRIDE = 4

# (layer, tile, what the tile has of its output) -> what the next layer receives.
Visit = Callable[[str, Tile, Tensor], Tensor]


@dataclass(frozen=True)
class Stage:
    """Consecutive layers, from one feature map that is kept whole to the next."""

    entry: nn.Module  # what comes before the layers: the preprocessing, or nothing
    layers: nn.ModuleDict  # name -> module, in the order of evaluation
    stride: int  # pixels of the picture, along each axis, that one position of the input stands for
    is_last: bool  # no stage follows

    def size(self, picture: tuple[int, int]) -> tuple[int, int]:
        """Return the height and width of the input for a picture of (height, width) pixels."""
        return picture[0] // self.stride, picture[1] // self.stride

    def tiles(self, picture: tuple[int, int], tile: int, rows: Span | None = None) -> list[Tile]:
        """Cut the input for a picture of (height, width) pixels into tiles.

        Args:
            picture: at least the stride of the stage's output along each axis.
            tile: side in pixels at the first stage. A later one, whose layers hold fewer values
                per pixel, takes half as many positions: at stride 4 twice as many pixels.
            rows: of the input that the tiles own; see `grid`.
        """
        side = tile if self.stride == 1 else max(tile // 2, pooling(self.layers))
        return grid(self.layers, self.size(picture), side, rows)

    def run(self, tile: Tile, inputs: Tensor, visit: Visit) -> Tensor:
        """Return what `tile` has of the output, given what it reads of the input."""
        features: Tensor = self.entry(inputs)
        for name, layer in self.layers.items():
            features = visit(name, tile, tile.trim(name, layer(features)))
        return features


def stages(extractor: FeatureExtractor) -> list[Stage]:
    """Return the stages of a network: they end where a pool leaves LEAST_STRIDE or more."""
    run: list[Stage] = []
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    entry, start, stride = extractor.preprocess, 1, 1
    *_, last = extractor.layers
    for name, layer in extractor.layers.items():
        layers[name] = layer
        stride *= 2 if is_pool(layer) else 1
        if name == last or (is_pool(layer) and stride >= LEAST_STRIDE):
            run.append(Stage(entry, nn.ModuleDict(layers), start, is_last=name == last))
            layers, entry, start = OrderedDict(), nn.Identity(), stride
    return run
