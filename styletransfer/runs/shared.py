"""One picture by several processes: what all of them check, and what those do that do not write."""

import sys
from contextlib import suppress
from dataclasses import replace

from styletransfer.config import TrainConfig
from styletransfer.errors import LostProcessError, UserError
from styletransfer.job.job import Job
from styletransfer.job.prepare import prepare
from styletransfer.optimize.run import Run
from styletransfer.runs.folder import FREE_KEYS
from styletransfer.runs.recipe import settings
from styletransfer.runs.recorded_run import describe
from styletransfer.system.processes import Processes
from styletransfer.system.signals import deaf, stop_on_signals


def assist(config: TrainConfig, processes: Processes) -> None:
    """Make the steps of the first process, and end when it ends.

    A signal is told to all before the next evaluation. The first process may leave one at any point
    when it receives a signal itself, and the others notice.

    Args:
        config: the first process's own.
        processes: of the job.

    Raises:
        UserError: bad input; or another process has ended before the work was done.
        Stopped: a signal has come.
    """
    with stop_on_signals() as stop:
        job = prepare(replace(config, output=None), processes=processes)
        run = Run(agreed(config, job))
        try:
            state = processes.first(lambda: None)
        except LostProcessError:
            sys.exit(1)  # the first one has said why
        if state is not None:
            run.load_state_dict(state)
        try:
            with deaf():
                result = run.complete()
        except LostProcessError:
            if stop.asked is None:
                raise
        else:
            if result.interrupted:  # torchrun ends all when one ends: the first is to write before
                with deaf(), suppress(LostProcessError):
                    processes.first(lambda: None)
        if stop.asked is not None:
            raise stop.asked


def agreed(config: TrainConfig, job: Job) -> Job:
    """Return a job once all processes have the same files and compute alike.

    Raises:
        UserError: what differs, and where.
    """
    if job.processes.count > 1:
        description = describe(config, job)
        keys = ("files", "precision", "torch", "threads")
        job.processes.check_equal({key: description[key] for key in keys})
    return job


def check_given(config: TrainConfig, processes: Processes) -> None:
    """Check that all processes were given the same settings, but for what changes no pixel.

    Raises:
        UserError: naming a key that differs, and where; or the settings are to change on the way.
    """
    if processes.count > 1 and config.changes:
        raise UserError("changes= needs a single process; start it without torchrun")
    given = settings(config, FREE_KEYS)
    processes.check_equal({key: given[key] for key in given if key not in FREE_KEYS})
