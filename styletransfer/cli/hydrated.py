"""Runs commands by Hydra: composes settings from configs/ and the command line; runs sweeps."""

import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from styletransfer.cli.arguments import Arguments, parse
from styletransfer.cli.errors import Ended, one_line_errors
from styletransfer.cli.folders import RunFolders
from styletransfer.errors import UserError
from styletransfer.runs.record import ERROR
from styletransfer.settings.compose import (
    compose,
    initialized,
    search_path,
    settings_of,
    with_preset,
)
from styletransfer.settings.registry import Command
from styletransfer.settings.resolvers import register_resolvers
from styletransfer.settings.schemas import refusal
from styletransfer.settings.values import HYDRA_FOLDERS
from styletransfer.system.allocator import keep_freed_memory
from styletransfer.system.rank import process_rank
from styletransfer.system.signals import interruptible

# Exit statuses of a job that failed; other statuses mean a signal or a closed standard output.
FAILED = (1, 2)


def script(command: Command) -> Callable[[Sequence[str] | None], None]:
    """Return a function that takes `argv`, without the program's name, and runs a command.

    Hydra composes the settings and calls the command with them and the run folder. Its errors
    become one line, unless the environment has HYDRA_FULL_ERROR=1.
    """

    def main(argv: Sequence[str] | None = None) -> None:
        with one_line_errors():
            check_process(command)
            arguments = parse(sys.argv[1:] if argv is None else argv, command.schema)
            if process_rank().world_size > 1 and arguments.multirun:
                raise UserError("torchrun starts the processes of one job; leave --multirun out")
            if process_rank().rank:
                _run_beside_the_first(command, arguments)
            elif arguments.help:
                from styletransfer.settings.help import help_text

                print(help_text(command, arguments.overrides, arguments.config_dir))
            else:
                _run(command, arguments)

    return main


def check_process(command: Command) -> None:
    """Raise UserError if the current folder is gone, or torchrun runs a one-process command."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("the folder this was started in is gone; go to another") from error
    if process_rank().world_size > 1 and not command.shared:
        raise UserError(f"{command.name} works in one process; start it without torchrun")


def _run(command: Command, arguments: Arguments) -> None:
    """Let Hydra compose the settings and run the command, once or for each job of a sweep."""
    words = [*search_path(command, arguments.config_dir), *with_preset(arguments.overrides)]
    job = partial(run_job, command, arguments.multirun)
    values = [word.partition("=")[2] for word in words if word.startswith(HYDRA_FOLDERS)]
    folders = RunFolders(Path(value.strip("'")) for value in values)
    try:
        if not arguments.cfg:
            register_resolvers(folders.new, folders.kept)
        with initialized(command) as hydra:
            if arguments.cfg:
                hydra.show_cfg(command.name, words, arguments.cfg, None, arguments.resolve)
            elif arguments.multirun:
                from styletransfer.cli.sweep import report

                if any(word.startswith("hydra/launcher=") for word in words):
                    # Progress bars of several processes would write over each other.
                    os.environ["TQDM_DISABLE"] = "1"
                with interruptible():
                    batches = hydra.multirun(command.name, job, words)
                report([job for batch in batches for job in batch])
            else:
                hydra.run(command.name, job, words)
    except BaseException as error:
        folders.clear()
        raise _in_one_line(error, command) from error
    finally:
        register_resolvers()


def _in_one_line(error: BaseException, command: Command) -> BaseException:
    """Return an error of Hydra or of a launcher as a UserError, any other error unchanged."""
    is_full = os.environ.get("HYDRA_FULL_ERROR") == "1"
    if is_full or isinstance(error, UserError | MemoryError) or not isinstance(error, Exception):
        return error
    if not isinstance(error, OSError) or error.errno is None:
        return refusal(error, command.schema)
    if error.filename is None:  # Standard output is full.
        return error
    return UserError(f"cannot write {error.filename}: {error.strerror}; choose hydra.run.dir=PATH")


def _run_beside_the_first(command: Command, arguments: Arguments) -> None:
    """Run in a process of torchrun that is not the first, without a folder, a log or output."""
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

    A sweep may call it in a process of its own. `sweep`: the job is one of several. A failed job
    of a sweep writes the reason to error.txt in its folder, and returns the reason's last line.
    A failed single job raises SystemExit, after a traceback if the cause is a bug.
    """
    folder = Path(HydraConfig.get().runtime.output_dir)
    if sweep:
        (folder / ERROR).unlink(missing_ok=True)
    try:
        with one_line_errors():
            if HydraConfig.get().job.chdir:
                raise UserError("hydra.job.chdir=true would change what file names mean")
            _call(command, config, folder)
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
    with suppress(OSError):  # nothing is lost: `report` prints the reason as well
        (folder / ERROR).write_text(f"{reason}\n", encoding="utf-8")
    return reason.splitlines()[-1]


def _call(command: Command, config: DictConfig, folder: Path) -> None:
    """Call the command with the settings in `config`; exit if it returns a status."""
    settings = settings_of(config)
    keep_freed_memory()
    if command.torch:
        from styletransfer.system.devices import set_float32_precision

        set_float32_precision()
    with interruptible():
        status = command.code(settings, folder)
    if status:
        sys.exit(status)
