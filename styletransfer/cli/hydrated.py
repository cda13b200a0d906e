"""Commands that Hydra runs: settings composed from configs/ and the command line."""

import importlib
import inspect
import logging
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from styletransfer import __version__
from styletransfer.cli import module
from styletransfer.cli.arguments import Arguments, help_text, parse
from styletransfer.cli.errors import one_line_errors
from styletransfer.cli.jobs import Jobs, remove_unused, run_sweep
from styletransfer.errors import UserError
from styletransfer.settings.commands import CONFIGS, TOOLS, Command, schema_of
from styletransfer.settings.compose import compose, initialized, search_path, settings_of
from styletransfer.settings.paths import absent
from styletransfer.settings.schemas import explain
from styletransfer.system.process import keep_freed_memory, place
from styletransfer.system.signals import interruptible

Function = Callable[[Any, Path], int | None]
# The run folder of a process that is to write nothing: nothing can be written there.
NOWHERE = Path(os.devnull)


def hydrated(
    name: str,
    function: Function | None = None,
    *,
    schema: type[Any] | None = None,
    folder: str | Path = CONFIGS,
) -> Callable[[Sequence[str] | None], None]:
    """Make a main from a function of its settings and its run folder.

        main = hydrated("judge", judge, schema=JudgeConfig, folder=CONFIGS_OF_TOOLS)

    The settings are NAME.yaml, composed, as an instance of its schema. The function may return an
    exit status. Errors of Hydra's own are one line as well; HYDRA_FULL_ERROR=1 in the environment
    brings their tracebacks back.

    The function is by default the `main` of the command of that name, imported when it is needed.
    With a schema, a dataclass, `name` is that of a tool that is no part of the package: the first
    line of the docstring of the function's module is its summary, the defaults list of NAME.yaml,
    in `folder`, calls the schema NAME_schema and can use the groups of the package's configs/, and
    from then on `compose(name)` and `settings_of(config, name)` know the tool as well.
    """
    if schema is not None:
        summary = (inspect.getmodule(function).__doc__ or name).splitlines()[0]
        TOOLS[name] = Command(summary, schema, Path(folder).absolute())

    def main(argv: Sequence[str] | None = None) -> None:
        with one_line_errors():
            arguments = parse(sys.argv[1:] if argv is None else argv, schema_of(name))
            if arguments.multirun and place().count > 1:
                raise UserError("torchrun starts the processes of one job; leave --multirun out")
            if place().rank:
                _assist(name, function, arguments)
            elif arguments.version:
                print(f"styletransfer {__version__}")
            elif arguments.help:
                print(help_text(name, arguments.overrides, arguments.config_dir))
            else:
                _run(name, function, arguments)

    return main


def _run(name: str, function: Function | None, arguments: Arguments) -> None:
    """Let Hydra compose the settings and call the function, once or for each job of a sweep."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("the folder this was started in is gone; go to another") from error
    claimed = [folder for named in arguments.folders for folder in absent(Path(named))]
    words = [*search_path(name, arguments.config_dir), *arguments.overrides]
    jobs = Jobs(partial(_call, name, function), claimed, sweep=arguments.multirun)
    try:
        with initialized(name, None if arguments.cfg else claimed) as hydra:
            if arguments.cfg:
                hydra.show_cfg(name, words, arguments.cfg, arguments.package, arguments.resolve)
            elif arguments.multirun:
                run_sweep(hydra, name, jobs, words)
            else:
                hydra.run(name, jobs.run, words)
    except BaseException as error:
        remove_unused(claimed)
        wanted = os.environ.get("HYDRA_FULL_ERROR") == "1"
        if wanted or not _is_about_the_input(error, began=jobs.count > 0):
            raise
        reason = explain(error, name)
        if isinstance(error, OSError) and error.errno is not None:
            reason = f"cannot write {error.filename}: {error.strerror}; choose hydra.run.dir=PATH"
        raise UserError(reason) from error


def _assist(name: str, function: Function | None, arguments: Arguments) -> None:
    """Run as another than the first process of a job, which alone has a folder, a log and a say."""
    if arguments.help or arguments.version or arguments.cfg:
        return
    logging.disable()
    try:
        config = compose(name, arguments.overrides, config_dir=arguments.config_dir)
        _call(name, function, config, NOWHERE)
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


def _call(name: str, function: Function | None, config: DictConfig, folder: Path) -> None:
    """Call the function with typed settings; it may return an exit status."""
    settings = settings_of(config, name)
    keep_freed_memory()
    if function is None:
        function = importlib.import_module(module(name)).main
    if "torch" in sys.modules:  # the studio's server computes nothing
        from styletransfer.system.devices import set_float32_precision

        set_float32_precision()
    with interruptible():
        status = function(settings, folder)
    if status:
        sys.exit(status)
