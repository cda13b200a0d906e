"""Sweeps: one job for each combination of values, run by one of Hydra's launchers.

Hydra's own loop over the jobs drops what they return, so it is written out here: all jobs are
composed before the first one starts, each tells how it ended, and a signal ends them all.
"""

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from hydra import initialize_config_dir
from hydra._internal.callbacks import Callbacks
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, env_override
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from styletransfer.cli.jobs import Jobs
from styletransfer.errors import UserError
from styletransfer.runs.folder import ERROR
from styletransfer.settings.compose import settings_of
from styletransfer.settings.paths import quoted
from styletransfer.settings.schemas import folder_of, search_path
from styletransfer.system.lifeline import Lifeline, lifeline
from styletransfer.system.signals import interruptible

# Of jobs that are launched together, each a list of KEY=VALUE.
Batches = list[list[list[str]]]
# Classes of launchers: that of this very process, and those whose processes are its children.
HERE, CHILDREN = "BasicLauncher", ("JoblibLauncher", "LocalLauncher")


def run_sweep(
    config_name: str, jobs: Jobs, overrides: Sequence[str], config_dir: str | None = None
) -> None:
    """Run a job for each combination of the values in `overrides`, and say how many succeeded.

    Args:
        config_name: of a file under configs/.
        jobs: run each.
        overrides: KEY=VALUE in Hydra's grammar, of which some have several values.
        config_dir: a folder with a person's own files, or None.

    Raises:
        UserError: not all did, or none was begun.
        Stopped: a signal came; the jobs have ended.
    """
    with initialize_config_dir(
        str(folder_of(config_name)), job_name=config_name, version_base="1.3"
    ):
        config, context = _composed(config_name, overrides, config_dir)
        if config.hydra.sweeper._target_.rpartition(".")[2] != BasicSweeper.__name__:
            raise UserError("only Hydra's own sweeper is used here; leave hydra/sweeper= out")
        kind = config.hydra.launcher._target_.rpartition(".")[2]
        at_once = config.hydra.sweeper.max_batch_size
        if at_once is None and kind == "LocalLauncher":
            at_once = cores()  # it would start all jobs at the same time
        batches = _batches(config, context, at_once)
        for words in chain(*batches):
            job = context.config_loader.load_sweep_config(config, words)
            with read_write(job), open_dict(job):
                del job["hydra"]
            settings_of(job, config_name)
        folder = _folder(config)
        launcher = Plugins.instance().instantiate_launcher(
            hydra_context=context, task_function=jobs.run, config=config
        )
        results = _launch(launcher, kind, jobs, batches)
    failed = {
        each.hydra_cfg.hydra.job.num: Path(each.hydra_cfg.hydra.runtime.output_dir)
        for each in results
        if each.return_value and each.hydra_cfg
    }
    if kind == HERE and len(failed) == len(results):  # nothing is left but what has been printed
        for made in failed.values():
            jobs.clear(made)
    _report(len(results), failed, folder)


def _composed(
    config_name: str, overrides: Sequence[str], config_dir: str | None
) -> tuple[DictConfig, HydraContext]:
    """Return the config of the sweep, and what composes those of its jobs."""
    if config_dir is not None and not os.path.isdir(config_dir):
        raise UserError(f"Additional config directory {config_dir!r} not found")
    searched = search_path(config_name, config_dir)
    hydra = GlobalHydra.instance().hydra
    assert hydra is not None
    config = hydra.compose_config(
        config_name, [*searched, *overrides], RunMode.MULTIRUN, with_log_configuration=True
    )
    return config, HydraContext(hydra.config_loader, Callbacks(config))


def _batches(config: DictConfig, context: HydraContext, at_once: int | None) -> Batches:
    """Return the overrides of each job, so many jobs together."""
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
            if kind not in CHILDREN:
                with interruptible():
                    return _results(launcher, batches)
            with lifeline() as line:
                jobs.lifeline = line.path
                return _results(launcher, batches, line)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"{kind} gave up, {type(error).__name__}: {reason.rstrip('.')}; what is finished "
                "is kept, and with resume=auto the same command goes on in the same folder"
            ) from error


def _results(launcher: Launcher, batches: Batches, line: Lifeline | None = None) -> list[JobReturn]:
    """Return what became of each job.

    Raises:
        Stopped: all were asked to stop, and have.
    """
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
    """Say how many jobs succeeded.

    Args:
        count: of the jobs.
        failed: the numbers and folders of those that did not.
        folder: of the sweep.

    Raises:
        UserError: not all did.
    """
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
