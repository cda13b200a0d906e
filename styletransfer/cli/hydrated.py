"""Runs commands with Hydra, which composes their settings and repeats a command for a sweep."""

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from styletransfer.cli.arguments import Arguments, parse
from styletransfer.cli.errors import Ended, one_line_errors
from styletransfer.cli.folders import RunFolders
from styletransfer.cli.pipes import piped
from styletransfer.errors import UserError
from styletransfer.runs.claim import keep_command_line, made_by
from styletransfer.runs.record import ERROR, HYDRA, OVERRIDES, RECORD
from styletransfer.settings.compose import (
    compose,
    initialized,
    settings_of,
    words_of,
)
from styletransfer.settings.idle import warn_of_idle_keys
from styletransfer.settings.registry import Command
from styletransfer.settings.resolvers import register_resolvers
from styletransfer.settings.schemas import keys_marked, refusal
from styletransfer.system.allocator import keep_freed_memory
from styletransfer.system.rank import process_rank
from styletransfer.system.signals import interruptible

# Exit statuses of a failed job; other statuses mean a signal or a closed standard output.
FAILED = (1, 2)


def run_command(command: Command, argv: Sequence[str] | None = None) -> None:
    """Run a command with the words `argv`; the default is sys.argv[1:].

    Errors become one line; with the variable HYDRA_FULL_ERROR=1, Hydra's errors keep their
    traceback.
    """
    with one_line_errors():
        check_process(command)
        with piped(sys.argv[1:] if argv is None else argv, command.schema) as words:
            arguments = parse(words, command.schema)
            if process_rank().world_size > 1 and arguments.multirun:
                raise UserError("torchrun starts the processes of one job; leave --multirun out")
            if process_rank().rank:
                _run_beside_the_first(command, arguments)
            elif arguments.help:
                from styletransfer.settings.help import help_text

                print(help_text(command, arguments.overrides, arguments.config_dir))
            else:
                _run(command, arguments)


def check_process(command: Command) -> None:
    """Raise UserError if the current folder is gone, or torchrun runs a command for one process."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("the folder this was started in is gone; go to another") from error
    if process_rank().world_size > 1 and not command.shared:
        raise UserError(f"{command.name} works in one process; start it without torchrun")


def _run(command: Command, arguments: Arguments) -> None:
    """Let Hydra compose the settings and run the command, once or for each job of a sweep."""
    # Hydra must not write `.hydra`: `claimed` writes it when the command has the folder's lock.
    own = "hydra.output_subdir=null"
    typed, sweep = arguments.overrides, arguments.multirun
    words = [own, *words_of(command, typed, arguments.config_dir, sweep=sweep)]
    job, folders = partial(run_job, command, sweep), RunFolders()
    try:
        with initialized(command) as hydra:
            if arguments.cfg:
                hydra.show_cfg(command.name, words, arguments.cfg, None, arguments.resolve)
                return
            mode = RunMode.RUN
            if sweep:
                from styletransfer.cli.sweep import check_sweep, report

                check_sweep(words, keys_marked(command.schema, "divides"))
                mode = RunMode.MULTIRUN
            config = hydra.compose_config(command.name, words, mode, with_log_configuration=True)
            hydra.compose_config = lambda *_, **__: config  # else Hydra would compose it again
            folders.look_at(config, words, sweep)
            has_output = bool(OmegaConf.select(config, "output"))
            folders.may_move = command.repeatable and has_output and not sweep
            register_resolvers(folders.new, folders.kept)
            if sweep:
                if any(word.startswith("hydra/launcher=") for word in words):
                    # A launcher starts several processes; their bars would overwrite each other.
                    os.environ["TQDM_DISABLE"] = "1"
                with interruptible():
                    batches = hydra.multirun(command.name, job, words)
                report([job for batch in batches for job in batch])
            else:
                hydra.run(command.name, job, words)
    except BaseException as error:
        folders.clear()
        raise _in_one_line(error) from error
    finally:
        register_resolvers()


def _in_one_line(error: BaseException) -> BaseException:
    """Return an error of Hydra or of a launcher as a UserError, any other error unchanged."""
    is_full = os.environ.get("HYDRA_FULL_ERROR") == "1"
    if is_full or isinstance(error, UserError | MemoryError) or not isinstance(error, Exception):
        return error
    if not isinstance(error, OSError) or error.errno is None:
        return refusal(error)
    if error.filename is None:  # Standard output is full or closed: `one_line_errors` reports it.
        return error
    return UserError(f"cannot write {error.filename}: {error.strerror}; choose hydra.run.dir=PATH")


def _run_beside_the_first(command: Command, arguments: Arguments) -> None:
    """Run the command in a process of torchrun that is not the first; it writes no log."""
    if arguments.help or arguments.cfg:
        return
    logging.disable()
    try:
        config = compose(command, arguments.overrides, config_dir=arguments.config_dir)
        _call(command, config, Path(os.devnull))
    finally:
        logging.disable(logging.NOTSET)


def run_job(command: Command, sweep: bool, config: DictConfig) -> str:
    """Run a job with the config that Hydra composed; return "" on success.

    `sweep` says whether the job is one of several, which may run in other processes. A failed job
    of a sweep returns the last line of the reason, and writes the reason to error.txt in its folder
    unless that folder holds a run. A failed single job raises SystemExit; if the failure is a bug,
    its traceback is printed before.
    """
    folder = Path(HydraConfig.get().runtime.output_dir)
    is_used = (folder / RECORD).exists()  # whether a run is here, which must not change
    if sweep and not is_used:
        (folder / ERROR).unlink(missing_ok=True)
    try:
        with one_line_errors(), made_by(_files_of_hydra(config)):
            if HydraConfig.get().job.chdir:
                raise UserError("hydra.job.chdir=true would change what file names mean")
            _call(command, config, folder)
        if sweep:
            (folder / ERROR).unlink(missing_ok=True)
        return ""
    except SystemExit as end:
        if not sweep or end.code not in FAILED:
            raise
        reason = end.message if isinstance(end, Ended) else f"exit status {end.code}"
    except Exception as error:
        traceback.print_exc()
        if not sweep:
            raise Ended(1, str(error)) from error
        reason = traceback.format_exc().rstrip()
    if not is_used:
        with suppress(OSError):  # `report` prints the reason as well
            (folder / ERROR).write_text(f"{reason}\n", encoding="utf-8")
        with made_by(_files_of_hydra(config)):
            keep_command_line(folder)
    return reason.splitlines()[-1]


def _files_of_hydra(config: DictConfig) -> dict[str, str]:
    """Return name -> text of files for a job's folder .hydra; `_run` tells Hydra to write none."""
    hydra: Any = HydraConfig.instance().cfg
    files = {"config.yaml": config, HYDRA: hydra, OVERRIDES: HydraConfig.get().overrides.task}
    return {Path(name).name: OmegaConf.to_yaml(part) for name, part in files.items()}


def _call(command: Command, config: DictConfig, folder: Path) -> None:
    """Call the command with the settings in `config`; exit if it returns a status other than 0."""
    settings = settings_of(config)
    if getattr(settings, "format", "") == "json":  # only JSON may be on standard output
        for handler in logging.root.handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stdout:
                handler.setStream(sys.stderr)
    warn_of_idle_keys(settings)
    keep_freed_memory()
    if command.torch:
        from styletransfer.system.devices import set_cuda_arithmetic

        set_cuda_arithmetic()
    with interruptible():
        status = command.code(settings, folder)
    if status:
        sys.exit(status)
