"""Where tiles lie: what a tile reads so that its own features come out exact.

A tile owns a rectangle of its stage's input (the picture, or a feature map) whose corners are
multiples of the stage's pooling, and at every layer the positions that stand for this rectangle.
Each position is owned by one tile. To compute its positions a tile reads more: each convolution
looks `padding` positions further. Where that would leave the input, the input's own border pads,
exactly as it does for the whole.

Stages are runs of layers that tiles pass one after another, so that halos stay a few pixels wide. A
tile that ran from the pixels to relu5_1 would read 70 pixels beyond each of its sides. Where a pool
ends a stage, its output is kept whole, and the next stage cuts it into tiles anew: a halo then
spans the convolutions of one stage only, 6 pixels before pool2 of VGG-19 and 4 positions after it.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from types import EllipsisType

from torch import Tensor, nn

from styletransfer.features.extractor import FeatureExtractor, is_pool

Span = tuple[int, int]
# Of a tensor (1, C, h, w): all channels, some rows, some columns.
Window = tuple[EllipsisType, slice, slice]
# Of pixels per position, along an axis: pools below it end no stage, their outputs are too large.
# At 4 VGG-19 has 8 values per pixel of the picture, at 2 it has 16.
LEAST_STRIDE = 4


@dataclass(frozen=True)
class Tile:
    """A part of a stage's input and what it takes to compute its features."""

    window: Window  # what to read of the input: rows and columns it owns and a halo
    # Pool -> what to keep of its output: the rest of the halo has done its work.
    trims: dict[str, Window]
    own: dict[str, Window]  # layer -> what it owns of the layer's output, after trimming
    place: dict[str, Window]  # layer -> where that lies in the output for the whole picture

    @property
    def area(self) -> int:
        """Return how many positions of the input it reads."""
        _, rows, columns = self.window
        return int((rows.stop - rows.start) * (columns.stop - columns.start))

    def trim(self, layer: str, features: Tensor) -> Tensor:
        """Return what is still needed of the output (1, C, h, w) of `layer`."""
        if layer not in self.trims:
            return features
        _, rows, columns = self.trims[layer]
        height, width = features.shape[2:]
        excess = (-columns.start, columns.stop - width, -rows.start, rows.stop - height)
        # A slice's gradient would be laid out as NCHW whatever the features are.
        return nn.functional.pad(features, excess) if any(excess) else features


def grid(layers: nn.ModuleDict, size: tuple[int, int], side: int) -> list[Tile]:
    """Cut the input, of (height, width), of some layers into tiles of nearly equal size.

    The layers are, in the order of evaluation, convolutions that keep the size, activations, and
    pools that halve it, rounding down. A tile owns at most `side` positions along each axis; that
    and the input are at least the pooling of all layers. The last tile of an axis also owns the
    rest that no position of the deepest layer stands for.
    """
    height, width = size
    downs = _axis(layers, height, side)
    columns = _axis(layers, width, side)
    return [
        Tile((..., down.window, right.window), *map(_crossed, down.parts, right.parts))
        for down, right in product(downs, columns)
    ]


# Along one axis, what `Tile` has as trims, own and place.
Parts = tuple[dict[str, slice], dict[str, slice], dict[str, slice]]


@dataclass(frozen=True)
class _Strip:
    """A tile along one axis."""

    window: slice
    parts: Parts


def pooling(layers: nn.ModuleDict) -> int:
    """Return how many positions of the input, along each axis, one of the output stands for."""
    return int(2 ** sum(map(is_pool, layers.values())))


def _crossed(down: dict[str, slice], right: dict[str, slice]) -> dict[str, Window]:
    return {name: (..., down[name], right[name]) for name in down}


def _axis(layers: nn.ModuleDict, length: int, side: int) -> list[_Strip]:
    """Cut an axis of the input, `length` positions long, into strips of at most `side`."""
    stride = pooling(layers)
    positions = length // stride  # of the output
    count = -(-positions // (side // stride))
    cuts = [positions * index // count * stride for index in range(count)]
    return [_strip(layers, length, span) for span in pairwise([*cuts, length])]


def _strip(layers: nn.ModuleDict, length: int, owned: Span) -> _Strip:
    """Return the strip that owns the input from owned[0] to owned[1], the latter not included."""
    spans = _needed(layers, length, owned)
    start, stop = next(spans)
    window, stride = slice(start, stop), 1
    parts: Parts = ({}, {}, {})
    trims, own, place = parts
    for (name, layer), (low, high) in zip(layers.items(), spans, strict=True):
        if is_pool(layer):
            stride *= 2
            start //= 2
            trims[name] = slice(low - start, high - start)
            start = low
        first, last = owned[0] // stride, owned[1] // stride
        own[name] = slice(first - start, last - start)
        place[name] = slice(first, last)
    return _Strip(window, parts)


def _needed(layers: nn.ModuleDict, length: int, owned: Span) -> Iterator[Span]:
    """Yield which positions are needed of the input, and of each layer's output in turn."""
    stride = pooling(layers)
    low, high = owned[0] // stride, owned[1] // stride
    spans = []
    step = 1
    for layer in reversed(list(layers.values())):
        if is_pool(layer):
            # An even start, so that the windows of the next pool keep their places.
            low -= low % step
            step = 2
            spans.append((low, high))
            low, high, stride = 2 * low, 2 * high, stride // 2
        else:
            spans.append((low, high))
            reach = int(layer.padding[0]) if isinstance(layer, nn.Conv2d) else 0
            low, high = low - reach, high + reach
        # Beyond the border lies nothing; the rest that pools leave out is owned all the same.
        low, high = max(0, low), min(length // stride, max(high, owned[1] // stride))
    yield low - low % step, high
    yield from reversed(spans)


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

    def tiles(self, picture: tuple[int, int], tile: int) -> list[Tile]:
        """Cut the input for a picture of (height, width) pixels into tiles; see `grid`.

        The picture has at least the stride of the stage's output along each axis. A tile has that
        side in pixels at the first stage. A later one, whose layers hold fewer values per pixel,
        takes half as many positions: at stride 4 twice as many pixels.
        """
        side = tile if self.stride == 1 else max(tile // 2, pooling(self.layers))
        return grid(self.layers, self.size(picture), side)

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
