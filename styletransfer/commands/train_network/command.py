"""Train a network that paints in one pass: `scripts/train_network.py style=PAINTING`.

After an interruption the same command continues the training. The network paints by the command
`python scripts/apply.py network=outputs/networks/NAME/network.safetensors input=PHOTO output=FILE`.
Several processes share the work by `torchrun --nproc-per-node=2 scripts/train_network.py ...`.
"""

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from styletransfer.commands.train_network.prepare import NetworkTask, names_hash, prepare
from styletransfer.commands.train_network.trainer import NetworkTraining, recipe
from styletransfer.errors import UserError
from styletransfer.job.load import files_read
from styletransfer.losses import LOSS_MODES
from styletransfer.networks import file, training
from styletransfer.networks.crops import Photos
from styletransfer.pictures import images
from styletransfer.runs.folder import CHECKPOINT, METRICS
from styletransfer.settings import TrainNetworkConfig
from styletransfer.settings.schemas import flat
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.devices import choose_device
from styletransfer.system.files import check_outputs, locked, remove_stale
from styletransfer.system.measure import median_seconds, table
from styletransfer.system.process import place
from styletransfer.system.processes import Processes, joined
from styletransfer.system.signals import Stop, signals_held, stop_on_signals

logger = logging.getLogger(__name__)

NETWORK = "network.safetensors"
# Timed steps of each loss mode in a dry run, after one warm-up step.
ROUNDS = 3
# The simplest loss mode, with which the others are compared.
PLAINEST = "loss_attribute"


def main(config: TrainNetworkConfig, folder: Path) -> None:
    """Train and print the network's path, or print the cost of a step."""
    if config.dry_run:
        if place().count > 1:
            raise UserError("dry_run=true measures one process; start it without torchrun")
        task = prepare(config)
        tasks = {name: replace(task, mode=mode) for name, mode in LOSS_MODES.items()}
        steps = {name: NetworkTraining(one).advance for name, one in tasks.items()}
        print(report(task, median_seconds(steps, ROUNDS, task.preview.device)))
        return
    made = train_network(config, folder)
    if place().rank == 0:
        print(made)


def train_network(config: TrainNetworkConfig, folder: Path) -> Path:
    """Train a network, or continue from the checkpoint in `folder`; return the network's file.

    `folder` receives `network.safetensors`, `checkpoint.pt`, `metrics.jsonl` and previews. After a
    signal such as Ctrl-C to any process of torchrun, the current step is completed, all files are
    written, and Stopped is raised. Only the first process uses `folder`.
    """
    with stop_on_signals() as stop, joined(choose_device(config.device)) as processes:
        task = prepare(config)
        check_shares(task, processes)
        if processes.rank == 0:
            lead(task, folder, processes, stop)
        else:
            run = NetworkTraining(task, processes.first(lambda: None), processes)
            with signals_held():
                while run.step < config.steps and processes.stopped(stop) is None:
                    run.advance()
        with signals_held():  # all processes wait here until the first has saved
            asked = processes.stopped(stop)
        if asked is not None:
            path = folder / CHECKPOINT
            logger.warning("stopped; run the same command to go on from %s", path)
            raise asked
    return folder / NETWORK


def lead(task: NetworkTask, folder: Path, processes: Processes, stop: Stop) -> None:
    """Train as the first or only process, which is the only one that uses `folder`."""
    config = task.config
    checkpoint = Checkpoint(folder / CHECKPOINT, config.checkpoint_every)
    with ExitStack() as stack:

        def begin() -> dict[str, Any] | None:
            written = [folder / name for name in (NETWORK, CHECKPOINT, METRICS)]
            check_outputs(written, files_read(config))
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder))
            remove_stale(folder)
            state = checkpoint.load() if checkpoint.exists() else None
            if state is not None and "average" not in state:
                path = checkpoint.path
                raise UserError(f"{path} is no checkpoint of a style network; move it away")
            return state

        state = processes.first(begin)
        run = NetworkTraining(task, state, processes)
        if state is not None and run.step:
            logger.info("going on from step %d of %s", run.step, checkpoint.path)
            before = state.get("processes", 1)
            if before != processes.count:
                told = "processes: %d, before %d; the steps are the same but for rounding"
                logger.info(told, processes.count, before)

        def save() -> None:
            file.write(folder / NETWORK, run.result, task.names)
            checkpoint.try_to_save(run.state_dict())

        look = partial(paint_preview, run, folder)
        course = training.Course(config.steps, "total", config.preview_every, look, save)
        metrics = folder / METRICS
        with signals_held():
            training.complete(run, course, checkpoint, metrics, lambda: processes.stopped(stop))


def check_shares(task: NetworkTask, processes: Processes) -> None:
    """Raise UserError if a process would have no picture, or if settings differ."""
    if task.config.batch < processes.count:
        raise UserError(
            f"batch={task.config.batch} is too small for {processes.count} processes; each needs a "
            "picture"
        )
    listed = ""
    if isinstance(task.photos, Photos):
        files = task.photos.files
        listed = f"{len(files)} files, named as {names_hash(files)[:8]}"
    facts = {"pictures": listed, "precision": task.extractor.precision}
    processes.check_equal(dict(flat(recipe(task))) | facts)


def paint_preview(run: NetworkTraining, folder: Path) -> dict[str, Any]:
    """Paint the preview below `folder`, and return its name, or None if writing fails."""
    name = f"previews/step_{run.step:05d}.png"
    try:
        images.write(folder / name, run.preview())
    except UserError as error:
        logger.warning("%s; going on without", error)
        return {"preview": None}
    return {"preview": name}


def report(task: NetworkTask, seconds: Mapping[str, float]) -> str:
    """Return one line about the training, and a table of the loss modes' times per step."""
    config = task.config
    rows = []
    for name, step in seconds.items():
        mode = name + (" (chosen)" if name == task.mode.name else "")
        minutes = f"{step * config.steps / 60:.1f}"
        rows.append([mode, f"{step:.3g}", f"{step / seconds[PLAINEST]:.2f}", minutes])
    where = f"{task.preview.device}, {task.extractor.precision}"
    headings = ["loss mode", "s a step", "ratio", f"min for {config.steps} steps"]
    return (
        f"{config.network}, {config.batch} x {config.crop} x {config.crop} pixels a step, "
        f"{', '.join(task.names) or 'any style'}; {where}\n{table(headings, rows)}"
    )
