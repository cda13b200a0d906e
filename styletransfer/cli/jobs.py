"""The jobs of one command line: one, or those of a sweep, of which each may fail alone.

A sweep has one job for each combination of values, run by one of Hydra's launchers. Hydra's own
loop over the jobs drops what they return, so it is written out here: all jobs are composed before
the first one starts, each tells how it ended, and a signal ends them all.
"""

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from hydra._internal.callbacks import Callbacks
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, env_override
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from styletransfer.cli.errors import Ended, one_line_errors
from styletransfer.errors import UserError
from styletransfer.runs.folder import ERROR
from styletransfer.settings.compose import register_resolvers, settings_of
from styletransfer.settings.values import quoted
from styletransfer.system.lifeline import Lifeline, following, is_gone, unblocked
from styletransfer.system.signals import STOPPING, interruptible

# Others mean that a signal, or a reader who left, ends all jobs.
FAILED = (1, 2)
# Of a job that a signal has stopped.
STOPPED = tuple(128 + number for number in STOPPING)
# What Hydra writes into the folder of a run, and of a sweep, before our code is called.
HYDRAS_OWN = (".hydra/config.yaml", ".hydra/hydra.yaml", ".hydra/overrides.yaml", "multirun.yaml")
# Of jobs that are launched together, each a list of KEY=VALUE.
Batches = list[list[list[str]]]
# Classes of launchers: that of this very process, and those whose processes are its children.
HERE, CHILDREN = "BasicLauncher", ("JoblibLauncher", "LocalLauncher")


class Jobs:
    """Runs each job that Hydra composes, here or, unpickled, where a launcher has started it.

    `start` runs one, given its config and the run folder that Hydra chose; `claimed` are the full
    paths of folders that this process makes; of a `sweep`, a job that fails leaves the others.
    """

    def __init__(
        self, start: Callable[[DictConfig, Path], None], claimed: list[Path], *, sweep: bool
    ) -> None:
        self.count = 0  # of the jobs that have begun here
        # What a job elsewhere on this machine follows (`system.lifeline`); empty for none.
        self.lifeline = ""
        self._start, self._claimed, self._sweep = start, claimed, sweep
        self._is_away = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrive in another process, where Hydra needs our resolvers before it calls us."""
        self.__dict__.update(state, _is_away=True)
        register_resolvers()

    def run(self, config: DictConfig) -> int:
        """Run the job that Hydra has prepared, and return 0.

        Of a job of a sweep that failed, and whose folder says why, it is the exit status; others
        raise SystemExit if they fail, and none is run after them.
        """
        self.count += 1
        folder = Path(HydraConfig.get().runtime.output_dir)
        if self._sweep:
            (folder / ERROR).unlink(missing_ok=True)
        try:
            follows = self._is_away and self.lifeline
            if follows and is_gone(self.lifeline):
                raise SystemExit(STOPPED[0])
            parent = following(self.lifeline) if follows else nullcontext()
            with parent, one_line_errors(), unblocked():
                self._start(config, folder)
            return 0
        except SystemExit as end:
            return self._ended(end, folder)
        except Exception:
            if not self._sweep:
                raise
            traceback.print_exc()
            return self._ended(Ended(1, traceback.format_exc()), folder)

    def clear(self, folder: Path) -> None:
        """Remove the folder of a job that made nothing, if it lies in one that is ours."""
        if {*self._claimed} & {*folder.parents}:
            remove_unused([folder])

    def _ended(self, end: SystemExit, folder: Path) -> int:
        """Let the others be run, and say in the folder why this one failed; or leave."""
        interrupted = self._is_away and self.lifeline and is_gone(self.lifeline)
        status = end.code if isinstance(end.code, int) else 1
        if not self._sweep or status not in (*FAILED, *(STOPPED if self._is_away else ())):
            self.clear(folder)
            raise end
        if interrupted:
            self.clear(folder)
        else:
            message = end.message if isinstance(end, Ended) else f"exit status {status}"
            with suppress(OSError):  # it has been printed
                (folder / ERROR).write_text(message.rstrip() + "\n", encoding="utf-8")
        return status


def remove_unused(folders: Iterable[Path]) -> None:
    """Remove the folders that hold nothing but Hydra's own files and what a job failed for.

    Inner ones come before those that they lie in.
    """
    for folder in folders:
        record = folder / ".hydra"
        # No patterns: compiling one takes memory, of which a run may have ended for want.
        present = {path for place in (folder, record) if place.is_dir() for path in place.iterdir()}
        logs = {path for path in present if path.suffix == ".log" and path.parent == folder}
        own = {record, *(folder / name for name in (*HYDRAS_OWN, ERROR)), *logs}
        if present <= own:
            with suppress(OSError):  # not worth a second complaint
                for path in present - {record}:
                    path.unlink()
                if record in present:
                    record.rmdir()
                folder.rmdir()


def run_sweep(hydra: Any, name: str, jobs: Jobs, overrides: Sequence[str]) -> None:
    """Run a job for each combination of the values in `overrides`, and say how many succeeded.

    (UserError: not all did, or none was begun; Stopped: a signal came; the jobs have ended.)
    """
    config = hydra.compose_config(
        name, list(overrides), RunMode.MULTIRUN, with_log_configuration=True
    )
    context = HydraContext(hydra.config_loader, Callbacks(config))
    if config.hydra.sweeper._target_.rpartition(".")[2] != BasicSweeper.__name__:
        raise UserError("only Hydra's own sweeper is used here; leave hydra/sweeper= out")
    kind = config.hydra.launcher._target_.rpartition(".")[2]
    batches = _batches(config, context, kind)
    for words in chain(*batches):
        job = context.config_loader.load_sweep_config(config, words)
        with read_write(job), open_dict(job):
            del job["hydra"]
        settings_of(job, name)
    folder = _folder(config)
    launcher = Plugins.instance().instantiate_launcher(
        hydra_context=context, task_function=jobs.run, config=config
    )
    results = _launch(launcher, kind, jobs, batches)
    failed = {
        job.hydra_cfg.hydra.job.num: Path(job.hydra_cfg.hydra.runtime.output_dir)
        for job in results
        if job.return_value and job.hydra_cfg
    }
    if kind == HERE and len(failed) == len(results):  # nothing is left but what has been printed
        for made in failed.values():
            jobs.clear(made)
    _report(len(results), failed, folder)


def _batches(config: DictConfig, context: HydraContext, kind: str) -> Batches:
    """Return the overrides of each job, those together that a launcher is to start together."""
    at_once = config.hydra.sweeper.max_batch_size
    if at_once is None and kind == "LocalLauncher":
        at_once = cores()  # it would start all jobs at the same time
    words = [f"{key}={value}" for key, value in (config.hydra.sweeper.params or {}).items()]
    words += config.hydra.overrides.task
    parsed = OverridesParser.create(context.config_loader).parse_overrides(words)
    batches = BasicSweeper.split_arguments(parsed, at_once)
    if not any(batches):
        raise UserError("there is no job: a key is to be swept over no value at all")
    return batches


def _folder(config: DictConfig) -> Path:
    """Make the folder of the sweep, and the same one for jobs that are composed elsewhere."""
    folder = Path(config.hydra.sweep.dir).absolute()
    with read_write(config.hydra), open_dict(config.hydra):
        config.hydra.overrides.hydra.append(f"hydra.sweep.dir={quoted(str(folder))}")
        config.hydra.sweep.dir = str(folder)
    folder.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(config, folder / "multirun.yaml")
    return folder


def _launch(launcher: Launcher, kind: str, jobs: Jobs, batches: Batches) -> list[JobReturn]:
    """Run the jobs where the launcher has them run, and let a signal reach all of them."""
    if kind == HERE:
        return _results(launcher, batches)
    environment = {"TQDM_DISABLE": "1"}  # several bars would write over each other
    if kind == "LocalLauncher":  # joblib and Ray share the cores out by themselves
        threads = max(1, cores() // max(map(len, batches)))
        environment["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", str(threads))
    with env_override(environment):
        try:
            if kind not in CHILDREN or sys.platform == "win32":  # it has no lifeline
                with interruptible():
                    return _results(launcher, batches)
            with Lifeline() as line:
                jobs.lifeline = line.path
                return _results(launcher, batches, line)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"{kind} gave up, {type(error).__name__}: {reason.rstrip('.')}; what is finished "
                "is kept, and with resume=auto the same command goes on in the same folder"
            ) from error


def _results(launcher: Launcher, batches: Batches, line: Lifeline | None = None) -> list[JobReturn]:
    """Return what became of each job; raise what all were asked to stop for, once they have."""
    results: list[JobReturn] = []
    try:
        for batch in batches:
            if line is None or line.asked is None:
                results += launcher.launch(batch, initial_job_idx=len(results))
    finally:
        if line is not None and line.asked is not None:
            raise line.asked
    return results


def _report(count: int, failed: dict[int, Path], folder: Path) -> None:
    """Say how many jobs succeeded; a UserError tells of the others, by numbers and folders."""
    done = f"{count - len(failed)} of {count} jobs succeeded"
    if failed:
        numbers = ", ".join(f"#{number}" for number in failed)
        told = any((made / ERROR).exists() for made in failed.values())
        where = f"; why is in {ERROR} in their folders under {folder}" if told else ""
        raise UserError(f"{done}; failed: {numbers}{where}")
    print(done)


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
