"""The jobs of one command line: one, or those of a sweep, of which each may fail alone."""

import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from styletransfer.cli.errors import Ended, one_line_errors
from styletransfer.runs.folder import ERROR
from styletransfer.settings.compose import register_resolvers
from styletransfer.system.lifeline import following, is_gone, unblocked
from styletransfer.system.signals import STOPPING

# Others mean that a signal, or a reader who left, ends all jobs.
FAILED = (1, 2)
# Of a job that a signal has stopped.
STOPPED = tuple(128 + number for number in STOPPING)
# What Hydra writes into the folder of a run, and of a sweep, before our code is called.
HYDRAS_OWN = (".hydra/config.yaml", ".hydra/hydra.yaml", ".hydra/overrides.yaml", "multirun.yaml")


class Jobs:
    """Runs each job that Hydra composes, here or, unpickled, where a launcher has started it.

    Args:
        start: runs one.
        claimed: the folders that this process makes, by their full paths.
        sweep: whether a job that fails leaves the others to be run.
    """

    def __init__(
        self, start: Callable[[DictConfig], None], claimed: list[Path], *, sweep: bool
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
        """Run the job that Hydra has prepared.

        Returns:
            0; or the exit status of a job of a sweep that failed, and whose folder says why.

        Raises:
            SystemExit: it failed, and no other one is to be run.
        """
        self.count += 1
        folder = Path(HydraConfig.get().runtime.output_dir)
        if self._sweep:
            (folder / ERROR).unlink(missing_ok=True)
        try:
            if not (self._is_away and self.lifeline):
                self._run(config)
            elif is_gone(self.lifeline):
                raise SystemExit(STOPPED[0])
            else:
                with following(self.lifeline):
                    self._run(config)
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

    def _run(self, config: DictConfig) -> None:
        with one_line_errors(), unblocked():
            self._start(config)

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
