"""The training of a style network, from start to finished file, with checkpoints in one folder."""

import logging
from pathlib import Path
from typing import Any

from styletransfer.commands.train_network.prepare import prepare
from styletransfer.commands.train_network.trainer import NetworkTraining
from styletransfer.config import TrainNetworkConfig
from styletransfer.errors import UserError
from styletransfer.networks import file
from styletransfer.optimize import training
from styletransfer.pictures import images
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.files import check_folder, remove_stale
from styletransfer.system.lock import locked
from styletransfer.system.signals import held, stop_on_signals

logger = logging.getLogger(__name__)


def train_network(config: TrainNetworkConfig, folder: Path) -> Path:
    """Train a network, or go on where a checkpoint in `folder` ends; return its file.

    `folder` receives `network.safetensors`, `checkpoint.pt`, `metrics.jsonl` and previews. A signal
    such as Ctrl-C lets the step at hand end and writes them all.

    Raises:
        UserError: settings out of range, styles or pictures that cannot be had, a checkpoint that
            is damaged or of another recipe, or a training that left the finite numbers.
        Stopped: a signal has come; all is written by then.
    """
    with stop_on_signals() as stop:
        job = prepare(config)
        check_folder(folder / "network.safetensors")
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            remove_stale(folder)
            checkpoint = Checkpoint(folder / "checkpoint.pt", config.checkpoint_every)
            run = NetworkTraining(job, read_checkpoint(checkpoint))
            if run.step:
                logger.info("going on from step %d of %s", run.step, checkpoint.path)
            course = training.Course(
                steps=config.steps,
                headline="total",
                look_every=config.preview_every,
                look=lambda: paint_preview(run, folder),
                save=lambda: save(run, checkpoint),
            )
            with held():
                training.complete(run, course, checkpoint, folder / "metrics.jsonl", stop)
        if stop.asked is not None:
            logger.warning("stopped; run the same command to go on from %s", checkpoint.path)
            raise stop.asked
    return folder / "network.safetensors"


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
