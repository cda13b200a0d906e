"""Cuts the input of layers into tiles. A tile also reads positions that its features depend on.

A stage is a sequence of layers. Its input, the picture or a feature map, is cut into tiles. A tile
owns a rectangle of this input, and at every layer the positions that belong to this rectangle. The
rectangle's edges lie at multiples of the stage's pooling factor, or at the input's border. Each
position is owned by one tile. A tile also reads positions around its rectangle, its halo, because
each convolution reads `padding` positions further. There is no halo beyond the input's border:
there, each convolution pads as it does for the whole input.

The output of each stage but the last is stored whole, and the next stage cuts it into new tiles. A
halo therefore only has to suffice for the convolutions of one stage. For VGG-19, it is 6 pixels
wide in the first stage, which ends at pool2, and at most 4 positions in the later ones. If all
layers up to relu5_1 were one stage, a tile would have a halo of 70 pixels at each of its sides.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from types import EllipsisType

from torch import Tensor, nn

from styletransfer.features.extractor import FeatureExtractor, is_pool

Span = tuple[int, int]
# An index of a tensor (1, C, h, w), which selects all channels and a range of rows and columns.
Window = tuple[EllipsisType, slice, slice]
# A pool ends a stage if each position of its output covers at least this number of pixels along an
# axis. The output of a stage stays in memory whole, so it should be small. In VGG-19, pool2, with 4
# pixels per position, has 8 output values per pixel of the picture; pool1, with 2, would have 16.
LEAST_STRIDE = 4


@dataclass(frozen=True)
class Tile:
    """A tile is a part of a stage's input, with indices of the positions that it alone owns."""

    window: Window  # part of the input that the tile reads: the positions it owns, and the halo
    # Name of a pool -> part of the pool's output that is kept: later layers need a smaller halo.
    trims: dict[str, Window]
    # Layer -> the positions that the tile owns, as an index of the layer's output for the tile.
    own: dict[str, Window]
    # Layer -> the same positions, as an index of the layer's output for the stage's whole input.
    whole: dict[str, Window]

    def trim(self, layer: str, features: Tensor) -> Tensor:
        """Return the part of the output (1, C, h, w) of `layer` that later layers need."""
        if layer not in self.trims:
            return features
        _, rows, columns = self.trims[layer]
        height, width = features.shape[2:]
        excess = (-columns.start, columns.stop - width, -rows.start, rows.stop - height)
        # `pad` with negative values crops. Its gradient stays channels_last; a slice's would not.
        return nn.functional.pad(features, excess) if any(excess) else features


def grid(layers: nn.ModuleDict, size: tuple[int, int], side: int) -> list[Tile]:
    """Cut the input (height, width) of consecutive layers into tiles of nearly equal size.

    The layers are, in the order of evaluation, convolutions that keep the size, activations, and
    pools that halve it, rounding down. A tile owns at most `side` positions along each axis.
    `side` and the input must be at least `pooling(layers)`, the input positions per axis that one
    position of the output covers. The last tile of an axis also owns the
    last rows or columns of the input, which the pools drop.
    """
    height, width = size
    downs = _axis(layers, height, side)
    columns = _axis(layers, width, side)
    return [
        Tile((..., window, other), *map(_crossed, down, right))
        for (window, down), (other, right) in product(downs, columns)
    ]


# A strip is a tile along one axis. It has a slice for each `Window` of `Tile`: first for `window`,
# then for `trims`, `own` and `whole`, each a dictionary layer -> slice.
Strip = tuple[slice, tuple[dict[str, slice], dict[str, slice], dict[str, slice]]]


def pooling(layers: nn.ModuleDict) -> int:
    """Return how many positions of the layers' input, per axis, one output position covers."""
    return int(2 ** sum(map(is_pool, layers.values())))


def _crossed(down: dict[str, slice], right: dict[str, slice]) -> dict[str, Window]:
    return {name: (..., down[name], right[name]) for name in down}


def _axis(layers: nn.ModuleDict, length: int, side: int) -> list[Strip]:
    """Cut an axis of the input, `length` positions long, into strips of at most `side`."""
    stride = pooling(layers)
    positions = length // stride  # number of output positions along the axis
    count = -(-positions // (side // stride))
    cuts = [positions * index // count * stride for index in range(count)]
    return [_strip(layers, length, span) for span in pairwise([*cuts, length])]


def _strip(layers: nn.ModuleDict, length: int, owned: Span) -> Strip:
    """Return the strip that owns the input positions p with owned[0] <= p < owned[1]."""
    spans = _needed(layers, length, owned)
    start, stop = next(spans)
    window, stride = slice(start, stop), 1
    trims, own, whole = dict[str, slice](), dict[str, slice](), dict[str, slice]()
    for (name, layer), (low, high) in zip(layers.items(), spans, strict=True):
        if is_pool(layer):
            stride *= 2
            start //= 2
            trims[name] = slice(low - start, high - start)
            start = low
        first, last = owned[0] // stride, owned[1] // stride
        own[name] = slice(first - start, last - start)
        whole[name] = slice(first, last)
    return window, (trims, own, whole)


def _needed(layers: nn.ModuleDict, length: int, owned: Span) -> Iterator[Span]:
    """Yield the positions [first, end) that are needed of the input, then of each layer's output.

    With them, the positions that the tile owns, from owned[0] to owned[1], get exact features.
    """
    stride = pooling(layers)
    low, high = owned[0] // stride, owned[1] // stride
    spans = []
    step = 1
    for layer in reversed(list(layers.values())):
        if is_pool(layer):
            # If there is a deeper pool, `step` is 2: the part of this pool's output that is kept
            # begins at an even position. From an odd one, the deeper pool's 2 x 2 windows would
            # be shifted by one position.
            low -= low % step
            step = 2
            spans.append((low, high))
            low, high, stride = 2 * low, 2 * high, stride // 2
        else:
            spans.append((low, high))
            reach = int(layer.padding[0]) if isinstance(layer, nn.Conv2d) else 0
            low, high = low - reach, high + reach
        # A tile reads nothing beyond the input's border. It reads all positions that it owns, even
        # if a later pool drops the last row or column of them.
        low, high = max(0, low), min(length // stride, max(high, owned[1] // stride))
    yield low - low % step, high
    yield from reversed(spans)


# A function that is called for each tile after each layer: (name of the layer, tile, output of the
# layer for the tile) -> input of the next layer.
Visit = Callable[[str, Tile, Tensor], Tensor]


@dataclass(frozen=True)
class Stage:
    """A stage is a sequence of layers; its input is stored whole, and is cut into tiles."""

    entry: nn.Module  # runs before the layers: the preprocessing, or the identity
    layers: nn.ModuleDict  # name -> module, in the order of evaluation
    stride: int  # number of the picture's pixels, per axis, that one position of the input covers
    is_last: bool  # whether this is the last stage

    def size(self, picture: tuple[int, int]) -> tuple[int, int]:
        """Return the height and width of the input for a picture of (height, width) pixels."""
        return picture[0] // self.stride, picture[1] // self.stride

    def tiles(self, picture: tuple[int, int], tile: int) -> list[Tile]:
        """Cut the input for a picture of (height, width) pixels into tiles; see `grid`.

        Along each axis, the picture must have at least as many pixels as the stride of the stage's
        output. `tile` is the side of a tile in pixels at the first stage. Tiles of later stages
        cover more of the picture, because their layers hold fewer values per pixel: their side is
        `tile` / 2 positions, which at stride 4 are 2 * `tile` pixels.
        """
        side = tile if self.stride == 1 else max(tile // 2, pooling(self.layers))
        return grid(self.layers, self.size(picture), side)

    def run(self, tile: Tile, inputs: Tensor, visit: Visit) -> Tensor:
        """Return the stage's output for a tile; `inputs` is the part of the input that it reads."""
        features: Tensor = self.entry(inputs)
        for name, layer in self.layers.items():
            features = visit(name, tile, tile.trim(name, layer(features)))
        return features


def stages(extractor: FeatureExtractor) -> list[Stage]:
    """Return the stages of a network, in the order of evaluation.

    A stage ends at a pool if a position of the pool's output covers LEAST_STRIDE or more pixels
    along an axis. The last stage ends at the last layer.
    """
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
