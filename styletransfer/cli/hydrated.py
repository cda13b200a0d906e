"""Commands that Hydra runs: settings composed from configs/ and the command line."""

import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from styletransfer import __version__
from styletransfer.cli.arguments import Arguments, parse
from styletransfer.cli.catalogue import module
from styletransfer.cli.errors import one_line_errors
from styletransfer.cli.folders import remove_unused
from styletransfer.cli.help import help_text
from styletransfer.cli.jobs import Jobs
from styletransfer.cli.sweep import run_sweep
from styletransfer.errors import UserError
from styletransfer.settings.compose import compose, settings_of
from styletransfer.settings.messages import explain
from styletransfer.settings.resolvers import absent, register_resolvers
from styletransfer.settings.schemas import (
    CONFIGS,
    add_command,
    folder_of,
    register_schema,
    schema_of,
    search_path,
)
from styletransfer.system.launch import place
from styletransfer.system.signals import interruptible

Command = Callable[[Any, Path], int | None]
# The run folder of a process that is to write nothing: nothing can be written there.
NOWHERE = Path(os.devnull)


def hydrated(
    config_name: str,
    function: Command | None = None,
    *,
    schema: type[Any] | None = None,
    folder: Path = CONFIGS,
) -> Callable[[Sequence[str] | None], None]:
    """Make a main from a function of its settings and its run folder.

    The settings are `<folder>/<config_name>.yaml`, composed, as an instance of its schema. The
    function may return an exit status.

    Bad input ends in one line on standard error and exit status 1, Hydra's own errors included.
    HYDRA_FULL_ERROR=1 in the environment brings the tracebacks of config errors back.

    Args:
        config_name: of a file under configs/.
        function: by default the `main` of the command of that name, imported when it is needed.
        schema: of the settings of a command that is not in the package.
        folder: where its file is.
    """
    if schema is not None:
        add_command(config_name, schema, folder)

    def main(argv: Sequence[str] | None = None) -> None:
        with one_line_errors():
            arguments = parse(sys.argv[1:] if argv is None else argv, schema_of(config_name))
            if arguments.multirun and place().count > 1:
                raise UserError("torchrun starts the processes of one job; leave --multirun out")
            if place().rank:
                _assist(config_name, function, arguments)
            elif arguments.version:
                print(f"styletransfer {__version__}")
            elif arguments.help:
                print(help_text(config_name, arguments.overrides, arguments.config_dir, function))
            else:
                _run(config_name, function, arguments)

    return main


def _run(config_name: str, function: Command | None, arguments: Arguments) -> None:
    """Let Hydra compose the settings and call the function, once or for each job of a sweep."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("the folder this was started in is gone; go to another") from error
    claimed = [folder for named in arguments.folders for folder in absent(Path(named))]
    sweep = arguments.multirun and not arguments.looks
    jobs = Jobs(partial(_start, config_name, function), claimed, sweep=sweep)

    def job(config: DictConfig) -> None:
        jobs.run(config)

    # Hydra names the job, and its log file, after the task's module.
    job.__module__ = f"styletransfer.commands.{config_name}"
    register_schema(config_name)
    register_resolvers(None if arguments.looks else claimed)
    files = str(folder_of(config_name))
    run = hydra.main(version_base="1.3", config_path=files, config_name=config_name)(job)
    wanted = os.environ.get("HYDRA_FULL_ERROR") == "1"
    with _process([sys.argv[0], *arguments.flags, *search_path(config_name), *arguments.overrides]):
        try:
            if sweep:
                run_sweep(config_name, jobs, arguments.overrides, arguments.config_dir)
            else:
                run()
        except BaseException as error:
            remove_unused(claimed)
            if wanted or not _is_about_the_input(error, began=jobs.count > 0):
                raise
            raise UserError(_reason(error, config_name)) from error


def _assist(config_name: str, function: Command | None, arguments: Arguments) -> None:
    """Run as another than the first process of a job, which alone has a folder, a log and a say."""
    if arguments.help or arguments.version or arguments.looks:
        return
    logging.disable()
    try:
        config = compose(config_name, arguments.overrides, config_dir=arguments.config_dir)
        settings = settings_of(config, config_name)
        _call(config_name, function, settings, NOWHERE)
    finally:
        logging.disable(logging.NOTSET)


def _is_about_the_input(error: BaseException, *, began: bool) -> TypeGuard[Exception]:
    """Tell Hydra's complaints about what it was given from everything else."""
    if isinstance(error, HydraException | OmegaConfBaseException):
        return True
    if began or isinstance(error, UserError) or not isinstance(error, Exception):
        return False
    # An error of the system without a file: our output takes no more.
    return not isinstance(error, OSError) or error.errno is None or error.filename is not None


def _reason(error: Exception, config_name: str) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot write {error.filename}: {error.strerror}; choose hydra.run.dir=PATH"
    return explain(error, config_name)


def _start(config_name: str, function: Command | None, config: DictConfig) -> None:
    """Call the function with typed settings and the run folder that Hydra chose."""
    settings = settings_of(config, config_name)
    _call(config_name, function, settings, Path(HydraConfig.get().runtime.output_dir))


def _call(config_name: str, function: Command | None, settings: Any, folder: Path) -> None:
    """Call the function; it may return an exit status."""
    from styletransfer.system.heap import keep_freed_memory

    keep_freed_memory()
    if function is None:
        function = importlib.import_module(module(config_name)).main
    if "torch" in sys.modules:  # the studio's server computes nothing
        from styletransfer.system.devices import set_float32_precision

        set_float32_precision()
    with interruptible():
        status = function(settings, folder)
    if status:
        sys.exit(status)


@contextmanager
def _process(argv: list[str]) -> Iterator[None]:
    """Lend Hydra the arguments that it reads, and make it raise its errors, not print them."""
    before, full = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    sys.argv, os.environ["HYDRA_FULL_ERROR"] = argv, "1"
    try:
        yield
    finally:
        sys.argv = before
        if full is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = full
