"""A distillation from start to finished weights file, with checkpoints in one folder."""

import json
import logging
import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tqdm import tqdm

from styletransfer.commands.distill.check import check, check_teacher
from styletransfer.commands.distill.trainer import Distillation
from styletransfer.config import DistillConfig
from styletransfer.errors import UserError
from styletransfer.features import build_features
from styletransfer.pictures.crops import load_photos
from styletransfer.system.devices import choose_device
from styletransfer.system.files import atomic

logger = logging.getLogger(__name__)

METRICS_EVERY = 10


def distill(config: DistillConfig, folder: Path) -> Path:
    """Train a student, or go on where a checkpoint in `folder` ends; return its weights file.

    `folder` receives `student.safetensors`, `checkpoint.pt` and `metrics.jsonl`. After
    Ctrl-C the last checkpoint stands.

    Raises:
        UserError: settings out of range, a teacher or pictures that cannot be had, a checkpoint
            that is damaged or of another recipe, or a training that left the finite numbers.
    """
    check(config)
    device = choose_device(config.device)
    photos = load_photos(Path(config.pictures)) if config.pictures else []
    checkpoint = folder / "checkpoint.pt"
    state = read_checkpoint(checkpoint) if checkpoint.exists() else None
    teacher = build_features(config.teacher)
    check_teacher(config.widths, teacher)
    folder.mkdir(parents=True, exist_ok=True)
    run = Distillation(teacher, photos, config, device, state)
    if state is not None:
        logger.info("going on from step %d of %s", run.step, checkpoint)
    student = folder / "student.safetensors"
    with (
        (folder / "metrics.jsonl").open("a", encoding="utf-8") as metrics,
        tqdm(total=config.steps, initial=run.step, unit="step", dynamic_ncols=True) as bar,
    ):
        try:
            while run.step < config.steps:
                if run.step % config.checkpoint_every == 0:
                    _note(metrics, {"step": run.step, "held_out": run.held_out()})
                    save(run, checkpoint, student)
                losses = run.advance()
                if run.step % METRICS_EVERY == 0:
                    values = {name: value.item() for name, value in losses.items()}
                    _note(metrics, {"step": run.step, **values})
                    bar.set_postfix_str(f"features {values['features']:.4f}")
                bar.update(1)
            _note(metrics, {"step": run.step, "held_out": run.held_out()})
        except KeyboardInterrupt:
            # Whatever the interrupted step had changed is undone by going back to the checkpoint.
            logger.warning("stopped; run the same command to go on from %s", checkpoint)
            return student
    save(run, checkpoint, student)
    return student


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return the state in `path`, read without executing anything it holds.

    Raises:
        UserError: the file is damaged or no checkpoint.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        raise UserError(f"{path} is damaged ({error}); delete it to start afresh") from error
    if not isinstance(state, dict) or "recipe" not in state:
        raise UserError(f"{path} is not a checkpoint of a distillation; delete it or move it")
    return state


def save(run: Distillation, checkpoint: Path, student: Path) -> None:
    """Write the checkpoint and the student's weights, each whole or not at all."""
    with atomic(checkpoint) as temporary:
        torch.save(run.state_dict(), temporary)
    with atomic(student) as temporary:
        save_file(run.weights(), temporary, metadata={"step": str(run.step)})


def _note(metrics: Any, values: dict[str, Any]) -> None:
    metrics.write(json.dumps(values) + "\n")
    metrics.flush()
