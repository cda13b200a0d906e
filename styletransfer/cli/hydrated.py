"""Runs commands by Hydra: composes settings from configs/ and the command line; runs sweeps."""

import logging
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from styletransfer.cli import Ended, check_process, main_of, one_line_errors
from styletransfer.cli.arguments import Arguments, parse
from styletransfer.errors import UserError
from styletransfer.runs import ERROR, RECORD
from styletransfer.settings.compose import absent, compose, initialized, search_path, settings_of
from styletransfer.settings.registry import schema_of
from styletransfer.settings.schemas import refusal
from styletransfer.settings.values import HYDRA_FOLDERS
from styletransfer.system import interruptible, keep_freed_memory, process_rank

# Exit statuses of a job that failed; other statuses mean a signal or a closed standard output.
FAILED = (1, 2)


def hydrated(name: str) -> Callable[[Sequence[str] | None], None]:
    """Return a function that lets Hydra call the `main` of a command or tool.

    `main` gets the settings from NAME.yaml, as an instance of the dataclass in COMMANDS or TOOLS,
    and the run folder; it may return an exit status. Its module is imported late. Hydra's errors
    become one line, unless the environment has HYDRA_FULL_ERROR=1.
    """

    def main(argv: Sequence[str] | None = None) -> None:
        with one_line_errors():
            check_process(name)
            arguments = parse(sys.argv[1:] if argv is None else argv, schema_of(name))
            if process_rank().world_size > 1 and arguments.multirun:
                raise UserError("torchrun starts the processes of one job; leave --multirun out")
            if process_rank().rank:
                _run_beside_the_first(name, arguments)
            elif arguments.help:
                from styletransfer.settings.help import help_text

                print(help_text(name, arguments.overrides, arguments.config_dir))
            else:
                _run(name, arguments)

    return main


def _run(name: str, arguments: Arguments) -> None:
    """Let Hydra compose the settings and run the command, once or for each job of a sweep."""
    words = [*search_path(name, arguments.config_dir), *arguments.overrides]
    job = partial(run_job, name, arguments.multirun)
    values = [word.partition("=")[2] for word in words if word.startswith(HYDRA_FOLDERS)]
    named = [Path(value.strip("'")) for value in values]
    made = [folder for path in named for folder in absent(path)]
    # run.json of an earlier run in a folder named by the user -> its content, and Hydra's files.
    earlier = {
        one / RECORD: ((one / RECORD).read_bytes(), _files_in(one / ".hydra"))
        for one in named
        if (one / RECORD).is_file()
    }
    try:
        with initialized(name, None if arguments.cfg else made) as hydra:
            if arguments.cfg:
                hydra.show_cfg(name, words, arguments.cfg, None, arguments.resolve)
            elif arguments.multirun:
                from styletransfer.cli.sweep import report

                if any(word.startswith("hydra/launcher=") for word in words):
                    # Progress bars of several processes would write over each other.
                    os.environ["TQDM_DISABLE"] = "1"
                with interruptible():
                    batches = hydra.multirun(name, job, words)
                report([job for batch in batches for job in batch])
            else:
                hydra.run(name, job, words)
    except BaseException as error:
        remove_unused(made)
        for record, (content, files) in earlier.items():
            # If run.json is unchanged, restore the earlier run's files that Hydra has overwritten.
            if record.is_file() and record.read_bytes() == content:
                for path, old in files.items():
                    path.write_bytes(old)
        raise _in_one_line(error, name) from error


def _files_in(folder: Path) -> dict[Path, bytes]:
    """Return path -> content of the files in a folder; empty if there is no folder."""
    return {path: path.read_bytes() for path in folder.glob("*") if path.is_file()}


def _in_one_line(error: BaseException, name: str) -> BaseException:
    """Return an error of Hydra or of a launcher as a UserError, any other error unchanged."""
    is_full = os.environ.get("HYDRA_FULL_ERROR") == "1"
    if is_full or isinstance(error, UserError | MemoryError) or not isinstance(error, Exception):
        return error
    if not isinstance(error, OSError) or error.errno is None:
        return refusal(error, name)
    if error.filename is None:  # Standard output is full.
        return error
    return UserError(f"cannot write {error.filename}: {error.strerror}; choose hydra.run.dir=PATH")


def _run_beside_the_first(name: str, arguments: Arguments) -> None:
    """Run in a process of torchrun that is not the first, without a folder, a log or output."""
    if arguments.help or arguments.cfg:
        return
    logging.disable()
    try:
        config = compose(name, arguments.overrides, config_dir=arguments.config_dir)
        _call(name, config, Path(os.devnull))
    finally:
        logging.disable(logging.NOTSET)


def run_job(name: str, sweep: bool, config: DictConfig) -> str:
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
            _call(name, config, folder)
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


def _call(name: str, config: DictConfig, folder: Path) -> None:
    """Call the command's `main` with the settings in `config`; exit if it returns a status."""
    settings = settings_of(config, name)
    keep_freed_memory()
    main = main_of(name)
    if "torch" in sys.modules:  # The studio's server imports no torch.
        from styletransfer.system.devices import set_float32_precision

        set_float32_precision()
    with interruptible():
        status = main(settings, folder)
    if status:
        sys.exit(status)


def remove_unused(folders: Iterable[Path]) -> None:
    """Remove those of `folders` that hold only Hydra's files and error.txt; inner ones come first.

    A folder without Hydra's files is removed only if it is empty: other runs may use it.
    """
    for folder in folders:
        files = [name for _, _, names in os.walk(folder) for name in names]
        is_recorded = (folder / ".hydra").exists() or (folder / "multirun.yaml").exists()
        if is_recorded and all(name.endswith((".yaml", ".log", ERROR)) for name in files):
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            folder.rmdir()
