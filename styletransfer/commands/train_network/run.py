"""The training of a style network, from start to finished file, with checkpoints in one folder."""

import hashlib
import logging
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from styletransfer.commands.train_network.prepare import NetworkJob, prepare
from styletransfer.commands.train_network.trainer import NetworkTraining, recipe
from styletransfer.config import TrainNetworkConfig
from styletransfer.errors import UserError
from styletransfer.networks import file, training
from styletransfer.pictures import images
from styletransfer.pictures.crops import Photos
from styletransfer.runs.folder import CHECKPOINT, METRICS
from styletransfer.settings.schemas import flat
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.devices import choose_device
from styletransfer.system.files import check_folder, remove_stale
from styletransfer.system.lock import locked
from styletransfer.system.processes import Processes, joined
from styletransfer.system.signals import Stop, signals_held, stop_on_signals

logger = logging.getLogger(__name__)


def train_network(config: TrainNetworkConfig, folder: Path) -> Path:
    """Train a network, or go on where a checkpoint in `folder` ends; return its file.

    `folder` receives `network.safetensors`, `checkpoint.pt`, `metrics.jsonl` and previews. A signal
    such as Ctrl-C lets the step at hand end and writes them all. Of several processes that torchrun
    has started only the first uses `folder`, and all end at the same step.

    Raises:
        UserError: settings out of range or different between processes, styles or pictures that
            cannot be had, a checkpoint that is damaged or of another recipe, a process that is
            lost, or a training that left the finite numbers.
        Stopped: a signal has come to any of the processes; all is written by then.
    """
    with stop_on_signals() as stop, joined(choose_device(config.device)) as processes:
        job = prepare(config)
        check_shares(job, processes)
        if processes.rank == 0:
            lead(job, folder, processes, stop)
        else:
            run = NetworkTraining(job, processes.first(lambda: None), processes)
            with signals_held():
                training.assist(run, config.steps, lambda: processes.stopped(stop))
        with signals_held():  # all come here, once the first has saved
            asked = processes.stopped(stop)
        if asked is not None:
            path = folder / CHECKPOINT
            logger.warning("stopped; run the same command to go on from %s", path)
            raise asked
    return folder / "network.safetensors"


def lead(job: NetworkJob, folder: Path, processes: Processes, stop: Stop) -> None:
    """Train as the first process, or the only one, which alone reads and writes `folder`.

    Raises:
        UserError: see `train_network`.
    """
    config = job.config
    checkpoint = Checkpoint(folder / CHECKPOINT, config.checkpoint_every)
    with ExitStack() as stack:

        def begin() -> dict[str, Any] | None:
            check_folder(folder / "network.safetensors")
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder))
            remove_stale(folder)
            return read_checkpoint(checkpoint)

        state = processes.first(begin)
        run = NetworkTraining(job, state, processes)
        if state is not None and run.step:
            say_where(checkpoint, state, processes)
        course = training.Course(
            steps=config.steps,
            headline="total",
            look_every=config.preview_every,
            look=lambda: paint_preview(run, folder),
            save=lambda: save(run, checkpoint),
        )
        with signals_held():
            training.complete(
                run, course, checkpoint, folder / METRICS, lambda: processes.stopped(stop)
            )


def check_shares(job: NetworkJob, processes: Processes) -> None:
    """Check that there is work for all processes, and that all were given the same.

    Raises:
        UserError: there are fewer pictures in a batch than processes; or what differs, and where.
    """
    if job.config.batch < processes.count:
        raise UserError(
            f"batch={job.config.batch} is too small for {processes.count} processes; each needs a "
            "picture"
        )
    listed = ""
    if isinstance(job.photos, Photos):
        names = [path.name for path in job.photos.files]
        digest = hashlib.sha256("/".join(names).encode(errors="surrogateescape")).hexdigest()
        listed = f"{len(names)} files, named as {digest[:8]}"
    precision = str(job.extractor.dtype).removeprefix("torch.")
    given = dict(flat(recipe(job))) | {"pictures": listed, "precision": precision}
    processes.check_equal(given)


def say_where(checkpoint: Checkpoint, state: dict[str, Any], processes: Processes) -> None:
    """Say where the training goes on, and what it means if the processes are more or fewer now."""
    logger.info("going on from step %d of %s", state["step"], checkpoint.path)
    before = state.get("processes", 1)
    if before != processes.count:
        logger.info(
            "processes: %d, before %d; the steps are the same but for rounding",
            processes.count,
            before,
        )


def paint_preview(run: NetworkTraining, folder: Path) -> dict[str, Any]:
    """Paint the preview picture into `folder`, and say where for the metrics.

    A disk that is full costs the preview only.
    """
    name = f"previews/step_{run.step:05d}.png"
    try:
        images.write(folder / name, run.preview())
    except UserError as error:
        logger.warning("%s; going on without", error)
        return {"preview": None}
    return {"preview": name}


def save(run: NetworkTraining, checkpoint: Checkpoint) -> None:
    """Write the network and the checkpoint, each whole or not at all.

    Raises:
        UserError: the network cannot be written.
    """
    file.write(checkpoint.path.with_name("network.safetensors"), run.result, run.job.names)
    checkpoint.try_to_save(run.state_dict())


def read_checkpoint(checkpoint: Checkpoint) -> dict[str, Any] | None:
    """Return the state of an earlier training, or None if there was none.

    Raises:
        UserError: the file is damaged or no checkpoint of a network's training.
    """
    if not checkpoint.exists():
        return None
    state = checkpoint.load()
    if "average" not in state:
        raise UserError(f"{checkpoint.path} is no checkpoint of a style network; move it away")
    return state
