"""One run: a config and a folder in, a pastiche with its metrics out."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.optimize.callbacks import Metrics, ProgressBar, Snapshots, tolerated
from styletransfer.optimize.job import prepare
from styletransfer.optimize.run import Callback, Result, stylize
from styletransfer.pictures import images
from styletransfer.system.files import check_folder


@dataclass(frozen=True)
class Outcome:
    """What a run leaves behind.

    Attributes:
        picture: the file that holds the pastiche.
        result: the pastiche in memory, its losses, and how the run ended.
        seconds: wall time of the optimisation.
        device: where it ran, such as "cpu".
        precision: of the network, such as "bfloat16".
    """

    picture: Path
    result: Result
    seconds: float
    device: str
    precision: str


def train(config: TrainConfig, folder: Path) -> Outcome:
    """Stylise one picture and write it, with `metrics.jsonl` and snapshots, into `folder`.

    The pastiche goes to `config.output` if that is set, else to `folder/pastiche.png`.

    Raises:
        UserError: bad input, before anything is written.
    """
    if config.snapshot_every < 0:
        raise UserError(f"snapshot_every={config.snapshot_every} must be 0 or more")
    job = prepare(config)
    picture = Path(config.output) if config.output else folder / "pastiche.png"
    images.check_writable(picture)
    check_folder(folder / "metrics.jsonl")
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        callbacks: list[Callback] = [
            tolerated(stack.enter_context(ProgressBar())),
            stack.enter_context(Metrics(folder / "metrics.jsonl")),
        ]
        if config.snapshot_every:
            callbacks.append(tolerated(Snapshots(folder / "snapshots", config.snapshot_every)))
        began = time.perf_counter()
        result = stylize(
            job.extractor,
            job.mode,
            job.content,
            job.style,
            config,
            start=job.start,
            callbacks=callbacks,
        )
        seconds = time.perf_counter() - began
        images.write(picture, result.image, job.alpha)  # before anything else can go wrong
    weight = next(job.extractor.parameters())
    return Outcome(
        picture, result, seconds, str(weight.device), str(weight.dtype).removeprefix("torch.")
    )
