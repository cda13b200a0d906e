"""Training pairs: frames of a film, and the same frames, painted like given photographs.

A frame is painted in about a second, by copying pixels from the paintings of these photographs
(`styletransfer.copying`). From the pairs a small network learns to paint other frames of the scene
in one pass, as in Texler et al. 2020, "Interactive Video Stylization Using Few-Shot Patch-Based
Training".
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from styletransfer.films.copier import FrameCopier
from styletransfer.films.read import Film
from styletransfer.job.prepare import prepare
from styletransfer.job.sources import files_of
from styletransfer.networks.commands.train_network import TrainNetworkConfig
from styletransfer.networks.johnson import STRIDE
from styletransfer.networks.training.crops import Crops, square
from styletransfer.pictures.images import Picture, resize, scaled_size
from styletransfer.settings import ObjectiveConfig, StyleTransferConfig
from styletransfer.system.progress import progress_bar

# From FRAMES to 2 * FRAMES - 1 frames of a film, at equal distances, become training pairs. Of a
# shorter film, all frames do.
FRAMES = 16
# The losses with which a network is trained on pairs. They compare the features of its result and
# of the painted frame at these layers. Another loss, `copied.held`, compares the pixels.
LEARNT = ["relu1_1", "relu2_1", "relu3_1"]
OBJECTIVE = ObjectiveConfig(content_weight=1.0, content_layers=LEARNT, style_layers=LEARNT)


class Pairs(Crops):
    """`Pairs` makes training pictures (6, size, size): square parts of pairs, not resized.

    A pair (6, H, W) is a photograph and its painting, sRGB in [0, 1].
    """

    def __init__(self, pairs: Sequence[Tensor], size: int) -> None:
        shortest = min(min(pair.shape[1:]) for pair in pairs)
        super().__init__(pairs, min(size, shortest // STRIDE * STRIDE))

    def _picture(self, generator: torch.Generator) -> Tensor:
        return square(self._photo(generator), self.size, generator)


def painted_pairs(config: TrainNetworkConfig) -> tuple[list[Tensor], list[Tensor]]:
    """Return the given pairs (6, H, W), and pairs of frames of `pictures` that are painted here.

    (UserError if a picture or the film cannot be read, or if they do not fit each other.)
    """
    first = files_of("style_source", config.style_source)[0]
    is_alone = config.pictures == TrainNetworkConfig.pictures
    frames = [] if is_alone else spread(Path(config.pictures), config.style_size)
    settings = StyleTransferConfig(
        content=first,
        style=config.style,
        style_source=config.style_source,
        size=max(frames[0].shape) if frames else config.style_size,
        device=config.device,
        precision=config.precision,
        features=config.features,
        seed=config.seed,
        objective=ObjectiveConfig(match_weight=1.0, content_weight=0.0, style_weight=0.0),
    )
    shown = {"content": Picture(frames[0], name=config.pictures)} if frames else {}
    job = prepare(settings, shown, search=False)
    given = [
        torch.cat(pair, 1)[0].float()
        for pair in zip(job.pictures.sources, job.pictures.styles, strict=True)
    ]
    made = []
    with TemporaryDirectory() as folder:
        # The copier looks for the photographs among the frames that its third argument returns.
        # `tuple()` is empty: it does not look.
        painter = FrameCopier(job, Path(folder), tuple)
        bar = progress_bar(frames, desc="painting", unit="frame", leave=False)
        for frame in bar:
            painted = painter.paint(frame).image
            painter.follow(frame, painted)
            made.append(torch.cat((frame, painted), 1)[0])
    return given, made


def spread(path: Path, side: int) -> list[Tensor]:
    """Return frames (1, 3, H, W) of a film at equal distances, all if there are few; see FRAMES.

    A frame's longer side has at most `side` pixels.
    """
    frames, step = list[Tensor](), 1
    with Film(path) as film:
        size = scaled_size(film.size, min(side, max(film.size)))
        for number, frame in enumerate(film.frames()):
            if number % step == 0:
                frames.append(resize(frame.image, size))
            if len(frames) == 2 * FRAMES:
                frames, step = frames[::2], 2 * step
    return frames
