"""Runs a network forward and backward in tiles, one stage after the other.

A stage is a sequence of layers. The last stages often have one tile each. The forward pass then
keeps their graph, and the backward pass does not run these stages again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.tiling.tiles import Stage, Tile, Visit


@dataclass(frozen=True)
class TiledStage:
    """A tiled stage is a stage, which is a sequence of layers, and the tiles of its input."""

    stage: Stage
    tiles: list[Tile]

    @torch.no_grad()
    def forward(self, inputs: Tensor, visit: Visit) -> Tensor:
        """Run all tiles without a graph, and return the whole output (1, C, h, w) of the stage.

        For the last stage, return an empty tensor (0,), because no stage reads its output.
        """
        *_, name = self.stage.layers
        whole = inputs.new_empty(0)
        for tile in self.tiles:
            features = self.stage.run(tile, inputs[tile.window], visit)
            if self.stage.is_last:
                continue
            if not whole.numel():
                _, rows, columns = self.tiles[-1].whole[name]
                shape = (1, features.shape[1], rows.stop, columns.stop)
                whole = features.new_empty(shape).to(memory_format=torch.channels_last)
            whole[tile.whole[name]] = features[tile.own[name]]
        return whole

    def backward(
        self, inputs: Tensor, gradient: Tensor | None, visit: Visit, total: Tensor
    ) -> None:
        """Add dL/d(inputs) to `total` (1, C, h, w), tile by tile; L is the sum of all losses.

        `inputs` are detached. `gradient` is the gradient of the stage's output that later stages
        give, or None for the last stage. `visit` adds the gradients of this stage's losses.
        """
        *_, last = self.stage.layers
        for tile in self.tiles:
            start = inputs[tile.window].detach().requires_grad_()
            end = self.stage.run(tile, start, visit)
            upper = torch.zeros_like(end)
            if gradient is not None:
                upper[tile.own[last]] = gradient[tile.whole[last]]
            (share,) = torch.autograd.grad(end, start, upper)
            total[tile.window] += share


@dataclass(frozen=True)
class SavedForBackward:
    """A SavedForBackward holds tensors of the forward pass that the backward pass needs."""

    inputs: list[Tensor]  # the input (1, C, h, w) of each stage that has several tiles
    # Input of the first stage of `Passes.whole`, as a leaf of the graph; None if `whole` is empty.
    start: Tensor | None = None
    end: Tensor | None = None  # output of the last stage, with the graph that begins at `start`


@dataclass(frozen=True)
class Passes:
    """`Passes` holds the stages of a network, with their tiles for pictures of one size."""

    # All stages up to the last one that has more than one tile.
    in_tiles: list[TiledStage]
    whole: list[TiledStage]  # the stages after `in_tiles`, which have one tile each; may be empty

    def show(self, picture: Tensor, visit: Visit) -> None:
        """Run the network on a picture (1, 3, H, W) tile by tile; call `visit` after each layer."""
        features = picture
        for part in [*self.in_tiles, *self.whole]:
            features = part.forward(features, visit)

    def forward(self, picture: Tensor, visit: Visit, feed: Visit) -> SavedForBackward:
        """Run the forward pass of a detached picture (1, 3, H, W).

        `visit` is called after each layer of `in_tiles`, and `feed` after each layer of `whole`.
        `feed` puts a node into the graph whose backward adds the gradients of the layer's losses.
        """
        inputs, features = [], picture
        for part in self.in_tiles:
            inputs.append(features)
            features = part.forward(features, visit)
        if not self.whole:
            return SavedForBackward(inputs)
        start = end = features.detach().requires_grad_()
        for part in self.whole:
            end = part.stage.run(part.tiles[0], end, feed)
        return SavedForBackward(inputs, start, end)

    def backward(self, saved: SavedForBackward, feed: Visit, total: Tensor) -> None:
        """Run the backward pass: add the gradient of all losses to `total` (1, 3, H, W).

        `saved` is the result of `forward`; its list `inputs` is emptied. `feed` puts nodes that add
        the gradients of the losses into the graphs of the stages `in_tiles`.
        """
        gradient = None
        if saved.start is not None and saved.end is not None:
            # The gradient at `end` is 0. The nodes that `feed` made add the gradients of losses.
            (gradient,) = torch.autograd.grad(saved.end, saved.start, torch.zeros_like(saved.end))
        for part in reversed(self.in_tiles):
            inputs = saved.inputs.pop()
            below = torch.zeros_like(inputs) if saved.inputs else total
            part.backward(inputs, gradient, feed, below)
            gradient = below
        if not self.in_tiles and gradient is not None:
            total += gradient


def passes(stages: Sequence[Stage], size: tuple[int, int], tile: int) -> Passes:
    """Cut stages into tiles for pictures of (height, width) pixels; see `Stage.tiles`."""
    parts = [TiledStage(stage, stage.tiles(size, tile)) for stage in stages]
    whole: list[TiledStage] = []
    while parts and len(parts[-1].tiles) == 1:
        whole.insert(0, parts.pop())
    return Passes(parts, whole)
