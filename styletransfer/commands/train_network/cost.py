"""What a step of a training costs in each loss mode, measured in one run; nothing is written."""

from collections.abc import Mapping
from dataclasses import replace

from styletransfer.commands.train_network.prepare import NetworkJob
from styletransfer.commands.train_network.trainer import NetworkTraining
from styletransfer.modes import LOSS_MODES
from styletransfer.system.measure import median_seconds
from styletransfer.system.table import table

# Timed steps of each mode, after one to warm up.
ROUNDS = 3
# The plainest way, which the others are compared with.
PLAINEST = "loss_attribute"


def seconds_a_step(job: NetworkJob) -> dict[str, float]:
    """Return loss mode -> median seconds of a training step in it.

    Each mode trains a network of its own; the modes take turns, so that a machine that drifts slows
    all of them alike.

    Raises:
        UserError: the losses are not finite.
    """
    steps = {
        name: NetworkTraining(replace(job, mode=mode)).advance for name, mode in LOSS_MODES.items()
    }
    return median_seconds(steps, ROUNDS, job.preview.device)


def report(job: NetworkJob, seconds: Mapping[str, float]) -> str:
    """Return the training in one line, and a table of the loss modes, the chosen one marked.

    Args:
        job: the training.
        seconds: of a step, by loss mode.
    """
    config = job.config
    precision = str(job.extractor.dtype).removeprefix("torch.")
    rows = [
        [
            name + (" (chosen)" if name == job.mode.name else ""),
            f"{each:.3g}",
            f"{each / seconds[PLAINEST]:.2f}",
            f"{each * config.steps / 60:.1f}",
        ]
        for name, each in seconds.items()
    ]
    headings = ["loss mode", "s a step", "ratio", f"min for {config.steps} steps"]
    return (
        f"{config.network}, {config.batch} x {config.crop} x {config.crop} pixels a step, "
        f"{', '.join(job.names)}; {job.preview.device}, {precision}\n{table(headings, rows)}"
    )
