"""Bands: rows of a picture that are walked through by themselves, so that less is held at a time.

Processes that share a picture take bands in equal parts, and exchange no features, which would be
many times the picture. So a band reads rows beyond its own, as many as each stage needs to give the
next one its halo: 70 pixels at the input of VGG-19 for relu5_1, and none in the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.objective.tiles import Span, Stage, Tile, Visit, Window, pooling
from styletransfer.system.processes import Processes


@dataclass(frozen=True)
class Part:
    """What a band takes of a stage; its tiles are placed in the whole picture."""

    stage: Stage  # of the network
    tiles: list[Tile]  # that make the output
    window: slice  # rows that they read of the stage's input
    output: slice  # rows that they make of the stage's output

    @property
    def rows(self) -> int:
        """How many rows it reads of the stage's input."""
        return int(self.window.stop - self.window.start)

    @torch.no_grad()
    def forward(self, inputs: Tensor, visit: Visit) -> Tensor:
        """Run all tiles without a graph; return the output (1, C, h, w), empty for the last stage.

        Nothing reads the output of the last stage, which for shallow layers would be a large one.
        """
        *_, name = self.stage.layers
        whole = inputs.new_empty(0)
        for tile in self.tiles:
            mine = self.stage.run(tile, inputs[_below(self.window, tile.window)], visit)
            if self.stage.is_last:
                continue
            if not whole.numel():
                columns = self.tiles[-1].place[name][2].stop
                shape = (1, mine.shape[1], self.output.stop - self.output.start, columns)
                whole = mine.new_empty(shape).to(memory_format=torch.channels_last)
            whole[_below(self.output, tile.place[name])] = mine[tile.own[name]]
        return whole

    def backward(
        self, inputs: Tensor, gradient: Tensor | None, visit: Visit, total: Tensor
    ) -> None:
        """Add d(total)/d(inputs) to `total`, tile by tile; both are (1, C, h, w), of the window.

        The inputs are detached; `gradient` is d(total)/d(output) by way of all later stages, None
        if there are none; `visit` lets the stage's own losses feed their gradients.
        """
        *_, last = self.stage.layers
        for tile in self.tiles:
            window = _below(self.window, tile.window)
            start = inputs[window].detach().requires_grad_()
            end = self.stage.run(tile, start, visit)
            upper = torch.zeros_like(end)
            if gradient is not None:
                upper[tile.own[last]] = gradient[_below(self.output, tile.place[last])]
            (share,) = torch.autograd.grad(end, start, upper)
            total[window] += share


@dataclass(frozen=True)
class SavedForBackward:
    """What a walk through a band keeps for the way back."""

    inputs: list[Tensor]  # of the parts in tiles
    # Of the parts that are one tile each, as a leaf; None if there are none.
    start: Tensor | None = None
    end: Tensor | None = None  # their last output, with the graph from `start` on


@dataclass(frozen=True)
class Band:
    """Rows of a picture."""

    owned: slice  # rows whose positions it counts, at every layer
    in_tiles: list[Part]  # the stages that are in several tiles, and all before them
    # The last stages, if they are one tile each: the way back needs no second run of them.
    whole: list[Part]

    @property
    def parts(self) -> list[Part]:
        """All stages, from the picture on."""
        return [*self.in_tiles, *self.whole]

    @property
    def window(self) -> slice:
        """Rows that it reads of the picture."""
        return self.parts[0].window

    def show(self, picture: Tensor, visit: Visit) -> None:
        """Show `visit` the band's features of a picture (1, 3, H, W), and keep nothing."""
        features = picture[:, :, self.window]
        for part in self.parts:
            features = part.forward(features, visit)

    def forward(self, picture: Tensor, visit: Visit | None, feed: Visit) -> SavedForBackward:
        """Walk through the stages of a picture (1, 3, H, W), detached.

        `visit` sees what is in tiles, unless that has been seen before; `feed` sees what is not,
        and lets its losses feed their gradients.
        """
        inputs, features = [], picture[:, :, self.window]
        for part in self.in_tiles:
            inputs.append(features)
            if visit is not None or not part.stage.is_last:
                features = part.forward(features, visit or (lambda layer, tile, seen: seen))
        if not self.whole:
            return SavedForBackward(inputs)
        start = end = features.detach().requires_grad_()
        for part in self.whole:
            end = part.stage.run(part.tiles[0], end, feed)
        return SavedForBackward(inputs, start, end)

    def backward(self, saved: SavedForBackward, feed: Visit, total: Tensor) -> None:
        """Add the gradient of all that is fed to that of the picture, `total` (1, 3, H, W).

        What `forward` has `saved` is used up; `feed` lets the losses of what is in tiles feed
        their gradients.
        """
        mine, gradient = total[:, :, self.window], None
        if saved.start is not None and saved.end is not None:
            # Whatever reaches the pixels is fed at taps; the very end has nothing to add.
            (gradient,) = torch.autograd.grad(saved.end, saved.start, torch.zeros_like(saved.end))
        for part in reversed(self.in_tiles):
            inputs = saved.inputs.pop()
            below = torch.zeros_like(inputs) if saved.inputs else mine
            part.backward(inputs, gradient, feed, below)
            gradient = below
        if not self.in_tiles and gradient is not None:
            mine += gradient

    def counted(self, layer: str, tile: Tile, stride: int) -> tuple[Window, Window]:
        """Return where the positions of a layer's output that band and tile own lie.

        That is in the tile's features, and in the output for the whole picture, of which one
        position stands for `stride` pixels.
        """
        _, rows, columns = tile.own[layer]
        _, low, across = tile.place[layer]
        start = max(low.start, self.owned.start // stride)
        stop = max(start, min(low.stop, self.owned.stop // stride))
        first = rows.start + start - low.start
        return (..., slice(first, first + stop - start), columns), (..., slice(start, stop), across)

    def counted_within(self, layer: str, tile: Tile, stride: int) -> tuple[Window, Window]:
        """Return the same, with the second place in the rows that the band owns."""
        own, (_, rows, columns) = self.counted(layer, tile, stride)
        top = self.owned.start // stride
        return own, (..., slice(rows.start - top, rows.stop - top), columns)


def shares(height: int, stride: int, processes: Processes, each: int) -> list[Span]:
    """Return the rows that `each` band of this process owns, nearly equal parts of the picture.

    Bands begin at multiples of the deepest layer's stride; those without a position are left out.
    """
    units, count = height // stride, processes.count * each
    cuts = [units * index // count * stride for index in range(count)] + [height]
    numbers = range(processes.rank * each, (processes.rank + 1) * each)
    return [(cuts[index], cuts[index + 1]) for index in numbers if cuts[index] < cuts[index + 1]]


def band(stages: Sequence[Stage], size: tuple[int, int], tile: int, owned: Span) -> Band:
    """Return a band with all that its rows, of `shares`, look at; args as for `Stage.tiles`."""
    stride = stages[-1].stride * pooling(stages[-1].layers)
    low, high = owned[0] // stride, owned[1] // stride  # rows of the output
    parts: list[Part] = []
    for stage in reversed(stages):
        height, pooled = stage.size(size)[0], pooling(stage.layers)
        rows = low * pooled, height if high == height // pooled else high * pooled
        tiles = stage.tiles(size, tile, rows)
        # Tiles come row by row, and the upper ones begin and end above the lower ones.
        window = slice(tiles[0].window[1].start, tiles[-1].window[1].stop)
        parts.insert(0, Part(stage, tiles, window, slice(low, high)))
        low, high = window.start, window.stop
    whole: list[Part] = []
    while parts and len(parts[-1].tiles) == 1:
        whole.insert(0, parts.pop())
    return Band(slice(*owned), parts, whole)


def _below(rows: slice, window: Window) -> Window:
    """Return a window in the whole as it is in some of its rows."""
    _, down, right = window
    return ..., slice(down.start - rows.start, down.stop - rows.start), right
