"""The jobs of one command line: one, or those of a sweep, of which each may fail alone."""

from collections.abc import Callable
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from styletransfer.cli.errors import one_line_errors
from styletransfer.cli.folders import remove_unused
from styletransfer.errors import UserError

# Others mean that a signal, or a reader who left, ends all jobs.
FAILED = (1, 2)


class Jobs:
    """Runs each job that Hydra composes.

    Attributes:
        count: of the jobs that have begun.
    """

    def __init__(
        self, start: Callable[[DictConfig], None], claimed: list[Path], *, sweep: bool
    ) -> None:
        """Remember how a job is run.

        Args:
            start: does it.
            claimed: the folders that this process makes, by their full paths.
            sweep: whether a job that fails, in one line, leaves the others to be run.
        """
        self.count = 0
        self._start, self._claimed, self._sweep = start, claimed, sweep
        self._failed: list[str] = []

    def run(self, config: DictConfig) -> None:
        """Run the job that Hydra has prepared.

        Raises:
            SystemExit: it failed, and no other one is to be run.
        """
        self.count += 1
        try:
            with one_line_errors():
                self._start(config)
        except SystemExit as exit:
            hydra = HydraConfig.get()
            folder = Path(hydra.runtime.output_dir)
            if {*self._claimed} & {*folder.parents}:
                remove_unused([folder])
            if not self._sweep or exit.code not in FAILED:
                raise
            self._failed.append(f"#{hydra.job.num}")

    def check(self) -> None:
        """Say at the end of a sweep which jobs failed.

        Raises:
            UserError: any did, or there was none.
        """
        if self._sweep and not self.count:
            raise UserError("there is no job: a key is to be swept over no value at all")
        if self._failed:
            done = self.count - len(self._failed)
            raise UserError(
                f"{done} of {self.count} jobs succeeded; failed: {', '.join(self._failed)}"
            )
