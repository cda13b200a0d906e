"""Distil VGG-19 into a small feature network: `python -m tools.distill pictures=FOLDER`.

Interrupted, it goes on where it ended when the same command is given again. The result is used by
`python scripts/train.py features.weights=outputs/distill/student.safetensors`.
"""

import logging
from pathlib import Path
from typing import Any

from torch import Tensor

from styletransfer.cli.hydrated import hydrated
from styletransfer.errors import UserError
from styletransfer.features import build_features, weights
from styletransfer.networks import training
from styletransfer.networks.crops import Photos
from styletransfer.runs.folder import CHECKPOINT, METRICS
from styletransfer.settings import FeaturesConfig
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.devices import choose_device
from styletransfer.system.files import atomic, locked, remove_stale
from styletransfer.system.signals import interruptible, signals_held, stop_on_signals
from tools import CONFIGS
from tools.distill.config import DistillConfig, check, check_networks
from tools.distill.trainer import Distillation

logger = logging.getLogger(__name__)

STUDENT = "student.safetensors"


def run(config: DistillConfig, folder: Path) -> None:
    """Distil VGG-19 into a small feature network, and say where its weights are."""
    print(distill(config, folder))


main = hydrated("distill", run, schema=DistillConfig, folder=CONFIGS)


def distill(config: DistillConfig, folder: Path) -> Path:
    """Train a student, or go on where a checkpoint in `folder` ends; return its weights file.

    `folder` receives `student.safetensors`, `checkpoint.pt` and `metrics.jsonl`. A signal such as
    Ctrl-C lets the step at hand end and writes them all. (UserError: settings out of range, a
    teacher or pictures that cannot be had, a checkpoint that is damaged or of another recipe, or a
    training that left the finite numbers; Stopped: a signal has come; all is written by then.)
    """
    check(config)
    with stop_on_signals() as stop:
        device = choose_device(config.device)
        photos: list[Tensor] | Photos = Photos(Path(config.pictures)) if config.pictures else []
        teacher = build_features(config.teacher)
        begun = FeaturesConfig(name="bundled", weights=config.start) if config.start else None
        start = build_features(begun) if begun else None
        check_networks(config, teacher, start)
        folder.mkdir(parents=True, exist_ok=True)
        with signals_held(), locked(folder):
            remove_stale(folder)
            checkpoint = Checkpoint(folder / CHECKPOINT, config.checkpoint_every)
            state = _read(checkpoint) if checkpoint.exists() else None
            with interruptible():
                student = Distillation(teacher, photos, config, device, state, start)
            del state
            if student.step:
                logger.info("going on from step %d of %s", student.step, checkpoint.path)
            course = training.Course(
                steps=config.steps,
                headline="features",
                look_every=config.look_every,
                look=lambda: {"held_out": student.held_out()},
                save=lambda: _save(student, checkpoint),
            )
            training.complete(student, course, checkpoint, folder / METRICS, lambda: stop.asked)
        if stop.asked is not None:
            logger.warning("stopped; run the same command to go on from %s", checkpoint.path)
            raise stop.asked
    return folder / STUDENT


def _save(student: Distillation, checkpoint: Checkpoint) -> None:
    """Write the student's weights and the checkpoint, each whole or not at all."""
    with atomic(checkpoint.path.with_name(STUDENT)) as temporary:
        weights.write(temporary, student.weights())
    checkpoint.try_to_save(student.state_dict())


def _read(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the state of an earlier run."""
    state = checkpoint.load()
    if "recipe" not in state:
        raise UserError(f"{checkpoint.path} is not a checkpoint of a distillation; move it away")
    return state
