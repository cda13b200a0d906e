"""Looking at a whole picture tile by tile: its features, and their moments at places of a layer."""

import math
from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.functions.moments import Moments, moments
from styletransfer.objective.stages import Visit, stages
from styletransfer.objective.targets import Place
from styletransfer.objective.tiles import Tile


class Scan:
    """A network that looks at pictures in tiles.

    Args:
        extractor: ends at the deepest layer of interest.
        tile: side of a tile in pixels without its halo; see `Stage.tiles`.
        with_mean: see `moments`.
    """

    def __init__(self, extractor: FeatureExtractor, tile: int, with_mean: bool) -> None:
        self.extractor, self.tile, self.with_mean = extractor, tile, with_mean

    def features(self, image: Tensor, layers: Collection[str]) -> dict[str, Tensor]:
        """Return layer -> features (1, C, h, w) of the whole image (1, 3, H, W)."""
        wholes: dict[str, Tensor] = {}

        def keep(layer: str, tile: Tile, features: Tensor) -> Tensor:
            if layer in layers:
                mine = features[tile.own[layer]]
                if layer not in wholes:
                    shape = (1, mine.shape[1], *self._size_at(layer, image))
                    wholes[layer] = mine.new_empty(shape).to(memory_format=torch.channels_last)
                wholes[layer][tile.place[layer]] = mine
            return features

        self._show(image, layers, keep)
        return wholes

    def measured(self, image: Tensor, places: Sequence[Place]) -> list[Moments]:
        """Return the moments of the whole image's features at each place."""
        sums: dict[str, Moments] = {}

        def add(layer: str, tile: Tile, features: Tensor) -> Tensor:
            for index, place in enumerate(places):
                if place[0] == layer:
                    self.add_moments(sums, str(index), place, tile, features, image)
            return features

        self._show(image, {layer for layer, _ in places}, add)
        return [sums[str(index)] for index in range(len(places))]

    def add_moments(
        self,
        sums: dict[str, Moments],
        name: str,
        place: Place,
        tile: Tile,
        features: Tensor,
        image: Tensor,
    ) -> None:
        """Add to sums[name] what the positions that `tile` owns are of the moments of `image`.

        Args:
            sums: name -> moments so far.
            name: of the sum.
            place: of which moments are taken; somewhere its weights are above 0.
            tile: where `features` are.
            features: (1, C, h, w), all that the tile has of the layer's output.
            image: (1, 3, H, W), the whole.
        """
        mine = features[tile.own[place[0]]]
        weights, total = self.weights(place, tile, image)
        if weights is not None and not weights.any():  # the region lies elsewhere
            return
        part = (mine[0, 0].numel() if weights is None else weights.sum()) / total
        share = Moments(*(part * each for each in moments(mine, self.with_mean, weights)))
        if name in sums:
            share = Moments(*(old + new for old, new in zip(sums[name], share, strict=True)))
        sums[name] = share

    def weights(
        self, place: Place, tile: Tile, image: Tensor
    ) -> tuple[Tensor | None, Tensor | float]:
        """Return the weights of the positions that `tile` owns, None for 1, and the sum of all."""
        layer, positions = place
        if positions is None:
            return None, math.prod(self._size_at(layer, image))
        _, rows, columns = tile.place[layer]
        return positions[rows, columns], positions.sum()

    def _show(self, image: Tensor, layers: Collection[str], visit: Visit) -> None:
        """Show `visit` all features of the image, up to the deepest of `layers`."""
        size = (image.shape[2], image.shape[3])
        features: Tensor | None = image
        for stage in stages(self.extractor.ended_at(layers)) if layers else []:
            assert features is not None
            features = stage.forward(stage.tiles(size, self.tile), features, visit)

    def _size_at(self, layer: str, image: Tensor) -> tuple[int, int]:
        stride = self.extractor.stride(layer)
        return image.shape[2] // stride, image.shape[3] // stride
