"""A distillation from start to finished weights file, with checkpoints in one folder."""

import logging
from pathlib import Path
from typing import Any

from torch import Tensor

from styletransfer.commands.distill.check import check, check_start, check_teacher
from styletransfer.commands.distill.trainer import Distillation
from styletransfer.config import DistillConfig, FeaturesConfig
from styletransfer.errors import UserError
from styletransfer.features import build_features, weights
from styletransfer.networks import training
from styletransfer.pictures.crops import Photos
from styletransfer.runs.folder import CHECKPOINT, METRICS
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.devices import choose_device
from styletransfer.system.files import atomic, remove_stale
from styletransfer.system.lock import locked
from styletransfer.system.signals import Stop, interruptible, signals_held, stop_on_signals

logger = logging.getLogger(__name__)


def distill(config: DistillConfig, folder: Path) -> Path:
    """Train a student, or go on where a checkpoint in `folder` ends; return its weights file.

    `folder` receives `student.safetensors`, `checkpoint.pt` and `metrics.jsonl`. A signal such as
    Ctrl-C lets the step at hand end and writes them all.

    Raises:
        UserError: settings out of range, a teacher or pictures that cannot be had, a checkpoint
            that is damaged or of another recipe, or a training that left the finite numbers.
        Stopped: a signal has come; all is written by then.
    """
    check(config)
    with stop_on_signals() as stop:
        device = choose_device(config.device)
        photos: list[Tensor] | Photos = Photos(Path(config.pictures)) if config.pictures else []
        teacher = build_features(config.teacher)
        check_teacher(config.widths, teacher)
        start = None
        if config.start is not None:
            start = build_features(FeaturesConfig(name="bundled", weights=config.start))
        check_start(config, start)
        folder.mkdir(parents=True, exist_ok=True)
        with signals_held(), locked(folder):
            remove_stale(folder)
            checkpoint = Checkpoint(folder / CHECKPOINT, config.checkpoint_every)
            state = read_checkpoint(checkpoint) if checkpoint.exists() else None
            with interruptible():
                run = Distillation(teacher, photos, config, device, state, start)
            del state
            if run.step:
                logger.info("going on from step %d of %s", run.step, checkpoint.path)
            complete(run, checkpoint, folder, stop)
        if stop.asked is not None:
            logger.warning("stopped; run the same command to go on from %s", checkpoint.path)
            raise stop.asked
    return folder / "student.safetensors"


def complete(run: Distillation, checkpoint: Checkpoint, folder: Path, stop: Stop) -> None:
    """Make the steps that are left, unless a signal comes, and write all that there is by then.

    Raises:
        UserError: the student cannot be written.
    """
    course = training.Course(
        steps=run.config.steps,
        headline="features",
        look_every=run.config.look_every,
        look=lambda: {"held_out": run.held_out()},
        save=lambda: save(run, checkpoint),
    )
    training.complete(run, course, checkpoint, folder / METRICS, lambda: stop.asked)


def save(run: Distillation, checkpoint: Checkpoint) -> None:
    """Write the student's weights and the checkpoint, each whole or not at all.

    Raises:
        UserError: the student cannot be written.
    """
    student = checkpoint.path.with_name("student.safetensors")
    with atomic(student) as temporary:
        weights.write(temporary, run.weights())
    checkpoint.try_to_save(run.state_dict())


def read_checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the state of an earlier run.

    Raises:
        UserError: the file is damaged or no checkpoint of a distillation.
    """
    state = checkpoint.load()
    if "recipe" not in state:
        raise UserError(f"{checkpoint.path} is not a checkpoint of a distillation; move it away")
    return state
