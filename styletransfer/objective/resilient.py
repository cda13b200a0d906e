"""An objective that goes on in smaller tiles when memory runs out."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.losses import LossMode
from styletransfer.objective.criterion import Criterion, Losses, smallest_tile, tiles_need
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.targets import StyleTargets
from styletransfer.objective.tiled import TiledObjective
from styletransfer.objective.whole import Objective
from styletransfer.system.memory import is_out_of_memory

logger = logging.getLogger(__name__)

RigidObjective = Objective | TiledObjective


@dataclass(eq=False)
class ElasticObjective:
    """The objective of one scale, halving its tile whenever memory runs out."""

    build: Callable[[int | None], RigidObjective]  # makes it, again after each change of the tile
    tile: int | None  # side in pixels, or None for the whole picture
    longest: int  # longer side of the picture in pixels, half of which is the first tile after None
    smallest: int  # tiles never become smaller than this; 0 where tiles are out of question
    halved: bool = False  # the tile is smaller than it was asked for
    objective: RigidObjective | None = None

    def evaluate(self, image: Tensor) -> Losses:
        """Do as `Evaluates` says, in smaller tiles where memory runs out.

        (MemoryError, RuntimeError: it ran out and the tile cannot be halved any more.)
        """
        while True:
            try:
                if self.objective is None:
                    self.objective = self.build(self.tile)
                return self.objective.evaluate(image)
            except (MemoryError, RuntimeError) as error:
                smaller = (self.tile or self.longest) // 2
                if not is_out_of_memory(error) or self.smallest == 0 or smaller < self.smallest:
                    raise
            # Only here: the error's traceback held on to the tensors of the failed evaluation.
            if not self.halved:
                logger.warning(
                    "memory ran out; going on in tiles of %d pixels, or less if need be", smaller
                )
            self.tile, self.halved, self.objective = smaller, True, None
            if torch.cuda.is_available():
                torch.cuda.empty_cache()


def make_objective(
    extractor: FeatureExtractor,
    mode: LossMode,
    criterion: Criterion,
    pictures: Inputs,
    styles: StyleTargets | None,
    tile: int | None,
) -> ElasticObjective:
    """Return the objective of one scale: whole or in tiles, and in smaller ones if need be.

    Arguments are those of `TiledObjective`; a tile of None is the whole picture.
    """
    longest = max(pictures.content.shape[2:])

    def build(tile: int | None) -> RigidObjective:
        compared = (extractor, mode, criterion, pictures)
        if tile is None:
            return Objective(*compared, styles)
        return TiledObjective(*compared, tile, styles)

    smallest = 0 if tiles_need(mode, criterion) else smallest_tile(extractor, criterion)
    return ElasticObjective(build, tile, longest, smallest)
