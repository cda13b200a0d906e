"""One run: a config and a folder in, a pastiche with its metrics out."""

import math
import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.job.job import Job
from styletransfer.job.prepare import check_output, prepare
from styletransfer.optimize.results import Outcome
from styletransfer.runs.folder import CONTENT, PASTICHE, RECORD
from styletransfer.runs.recorded_run import Guide, RecordedRun
from styletransfer.runs.shared import agreed
from styletransfer.settings.changes import in_turn
from styletransfer.system.files import check_folder, remove_stale
from styletransfer.system.lock import locked
from styletransfer.system.processes import Processes
from styletransfer.system.signals import Stopped, signals_held, stop_on_signals


@dataclass(frozen=True)
class FinishedRun:
    """What a run leaves behind.

    Attributes:
        picture: the file that holds the pastiche.
        result: the pastiche in memory, its losses, and how the run ended.
        seconds: wall time of the optimisation, from where it went on.
        device: where it ran, such as "cpu".
        precision: of the network, such as "bfloat16".
        problem: one line saying why it gave up or where else the picture is, or None.
        stopped: the signal that has come meanwhile, or None.
    """

    picture: Path
    result: Outcome
    seconds: float
    device: str
    precision: str
    problem: str | None = None
    stopped: Stopped | None = None


def paint(
    config: TrainConfig,
    folder: Path,
    guide: Guide | None = None,
    processes: Processes | None = None,
) -> FinishedRun:
    """Stylise one picture and write it, with `metrics.jsonl` and snapshots, into `folder`.

    The pastiche goes to `config.output` if that is set, and to `folder/pastiche.png`, beside the
    content at its size: what `mix` mixes. A run that ends early leaves the best picture so far
    there, and a checkpoint; with `resume=auto` it goes on from the checkpoint in `folder` where
    there is one.

    Args:
        config: what is asked for.
        folder: of the run.
        guide: who may steer it.
        processes: that share it; this is the first, and the others `assist`.

    Raises:
        UserError: bad input, before anything is written; or the picture cannot be written anywhere.
        Stopped: a signal came before there was a picture.
    """
    with stop_on_signals() as stop:
        picture = Path(config.output) if config.output else folder / PASTICHE
        job = checked(config, folder, picture, processes)
        folder.mkdir(parents=True, exist_ok=True)
        # Held from here: the first optimiser makes torch import libraries that abort the process if
        # a signal's exception crosses them.
        with signals_held(), locked(folder):
            remove_stale(folder)
            work = RecordedRun(config, job, folder, picture)
            with ExitStack() as watchers:
                began = time.perf_counter()
                result, picture, problem = work.complete(watchers, guide)
                seconds = time.perf_counter() - began
            asked = stop.asked
    return FinishedRun(
        picture=picture,
        result=result,
        seconds=seconds,
        device=str(job.device),
        precision=job.precision,
        problem=result.problem or problem,
        stopped=asked,
    )


def checked(
    config: TrainConfig, folder: Path, picture: Path, processes: Processes | None = None
) -> Job:
    """Return the job of a run that has all it needs, its changes and places included.

    Raises:
        UserError: it has not.
    """
    if config.snapshot_every < 0:
        raise UserError(f"snapshot_every={config.snapshot_every} must be 0 or more")
    if not 0 <= config.checkpoint_every < math.inf:
        raise UserError(f"checkpoint_every={config.checkpoint_every} must be 0 seconds or more")
    later = in_turn(config, config.changes)
    job = agreed(config, prepare(config, processes=processes))
    for changed in later:
        prepare(changed, like=job)
    for path in (picture, folder / PASTICHE, folder / CONTENT):
        for each in (config, *later):
            check_output(str(path), each)
    if os.path.realpath(picture) == os.path.realpath(folder / CONTENT):
        raise UserError(f"output={picture}: there the run keeps its content; choose another")
    check_folder(folder / RECORD)
    return job
