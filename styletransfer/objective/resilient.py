"""An objective that goes on in smaller tiles when memory runs out."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

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
from styletransfer.system.processes import Processes
from styletransfer.system.signals import HERE

logger = logging.getLogger(__name__)

RigidObjective = Objective | TiledObjective


@dataclass(eq=False)
class ElasticObjective:
    """The objective of one scale, halving its tile whenever memory runs out."""

    build: Callable[[int | None], RigidObjective]  # makes it, again after each change of the tile
    tile: int | None  # side in pixels, or None for the whole picture
    longest: int  # longer side of the picture in pixels, half of which is the first tile after None
    smallest: int  # tiles never become smaller than this; 0 where tiles are out of question
    # That have the same picture; memory runs out in all of them or in none.
    processes: Processes = field(default_factory=Processes)
    halved: bool = False  # the tile is smaller than it was asked for
    objective: RigidObjective | None = None

    def evaluate(self, image: Tensor) -> Losses:
        """Do as `Evaluates` says, in smaller tiles where memory runs out.

        (MemoryError, RuntimeError: it ran out and the tile cannot be halved any more; UserError,
        Stopped: see `Processes.meet`.)
        """
        self.processes.meet(image, HERE)
        while True:
            try:
                if self.objective is None:
                    with self.processes.sharing_shortage():
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
    processes: Processes | None = None,
    bands: int = 1,
) -> ElasticObjective:
    """Return the objective of one scale: whole or in tiles, and in smaller ones if need be.

    As for `TiledObjective`; a tile of None is the whole picture, which processes share too.
    """
    longest = max(pictures.content.shape[2:])

    def build(tile: int | None) -> RigidObjective:
        compared = (extractor, mode, criterion, pictures)
        if tile is None and (processes is None or processes.count == 1):
            return Objective(*compared, styles)
        return TiledObjective(*compared, tile or longest, styles, processes, bands)

    smallest = 0 if tiles_need(mode, criterion) else smallest_tile(extractor, criterion)
    return ElasticObjective(build, tile, longest, smallest, processes or Processes())
