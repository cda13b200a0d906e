"""Train a network that paints in one pass: `scripts/train_network.py style=PAINTING`.

After an interruption the same command continues the training. To paint with the network, run
`python scripts/apply.py network=outputs/networks/NAME/network.safetensors input=PHOTO output=FILE`.
`torchrun --nproc-per-node=2 scripts/train_network.py ...` shares the work between two processes.
"""

import logging
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.job.sources import files_read
from styletransfer.networks import file
from styletransfer.networks.commands.train_network import TrainNetworkConfig
from styletransfer.networks.training.prepare import NetworkTask, prepare
from styletransfer.networks.training.processes import Processes, joined
from styletransfer.networks.training.trainer import NetworkTraining
from styletransfer.pictures import images
from styletransfer.runs.claim import claimed
from styletransfer.runs.record import CHECKPOINT, METRICS
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.devices import choose_device
from styletransfer.system.files import keep_lines, to_json
from styletransfer.system.outputs import check_outputs
from styletransfer.system.progress import progress_bar
from styletransfer.system.signals import Stop, Stopped, signals_held, stop_on_signals

logger = logging.getLogger(__name__)

# Names of the network's file and of the previews' folder, in the run's folder.
NETWORK, PREVIEWS = "network.safetensors", "previews"
METRICS_EVERY = 10  # steps between two lines of losses in the metrics file


def train(config: TrainNetworkConfig, folder: Path) -> Path:
    """Train a network, or continue from the checkpoint in `folder`; return the network's file.

    `folder` receives `network.safetensors`, `checkpoint.pt`, `metrics.jsonl` and previews. After a
    signal such as Ctrl-C to any process of torchrun, the processes complete the current step, the
    first writes all files, and Stopped is raised. Only the first process uses `folder`.
    """
    with stop_on_signals() as stop, joined(choose_device(config.device)) as processes:
        task = prepare(config)
        check_shares(task, processes)
        if processes.rank == 0:
            lead(task, folder, processes, stop)
        else:
            run = NetworkTraining(task, processes.broadcast(lambda: None), processes)
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
    """Train in the first or only process, and write the network and other files into `folder`."""
    checkpoint = Checkpoint(folder / CHECKPOINT, task.config.checkpoint_every)
    with ExitStack() as stack:

        def begin() -> dict[str, Any] | None:
            written, read = (NETWORK, CHECKPOINT, METRICS), files_read(task.config)
            check_outputs([folder / name for name in written], read, [folder / PREVIEWS])
            goes_on = checkpoint.exists()
            stack.enter_context(claimed(folder, (*written, PREVIEWS), goes_on=goes_on))
            return checkpoint.load() if goes_on else None

        run = NetworkTraining(task, processes.broadcast(begin), processes)
        if run.step:
            logger.info("going on from step %d of %s", run.step, checkpoint.path)
        with signals_held():
            complete(run, folder, checkpoint, lambda: processes.stopped(stop))


def complete(
    run: NetworkTraining, folder: Path, checkpoint: Checkpoint, asked: Callable[[], Stopped | None]
) -> None:
    """Train for the remaining steps, or until a signal; then save the network and the checkpoint.

    `metrics.jsonl` receives a line for every tenth step and for each preview. `asked` returns an
    exception if a signal was received, otherwise None.
    """
    config, start = run.config, run.step

    def save() -> None:
        try:
            file.write(folder / NETWORK, run.result, run.task.names)
        finally:
            checkpoint.try_to_save(run.state_dict())

    def note(**values: Any) -> None:
        metrics.write(to_json({"step": run.step, **values}) + "\n")
        metrics.flush()

    if (folder / METRICS).exists():
        # Remove the lines that this run writes again: those of later steps than `start`, and the
        # preview's at `start`. The losses at `start` stay: they are written before a checkpoint is.
        keep_lines(
            folder / METRICS,
            lambda line: line["step"] < start or (line["step"] == start and "total" in line),
        )
    if not checkpoint.exists():  # saved first, so that a killed training can continue in `folder`
        checkpoint.try_to_save(run.state_dict())
    bar = progress_bar(total=config.steps, initial=start, unit="step")
    with (folder / METRICS).open("a", encoding="utf-8") as metrics, bar:
        while run.step < config.steps and asked() is None:
            if checkpoint.is_due():
                save()
            if run.step % config.preview_every == 0:
                note(preview=paint_preview(run, folder))
            losses = run.advance()
            if run.step % METRICS_EVERY == 0:
                values = {name: value.item() for name, value in losses.items()}
                note(**values)
                bar.set_postfix_str(f"total {values['total']:.4f}")
            bar.update(1)
        if run.step == config.steps:
            note(preview=paint_preview(run, folder))
    save()


def check_shares(task: NetworkTask, processes: Processes) -> None:
    """Raise UserError if the batch has fewer pictures than there are processes."""
    if task.config.batch < processes.count:
        raise UserError(
            f"batch={task.config.batch} is too small for {processes.count} processes; each needs a "
            "picture"
        )


def paint_preview(run: NetworkTraining, folder: Path) -> str:
    """Paint the preview, write it below `folder`, and return its path relative to `folder`."""
    name = f"{PREVIEWS}/step_{run.step:05d}.png"
    images.write(folder / name, run.preview())
    return name
