"""Callbacks that are called after every step of a run: the progress bar and the metrics."""

import logging
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.objective import Losses
from styletransfer.optimize import Iterate
from styletransfer.system.files import keep_lines, to_json
from styletransfer.system.progress import progress_bar

logger = logging.getLogger(__name__)

# Number of steps whose losses are read together, because each reading waits for the device.
METRICS_BATCH = 20


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """A ProgressBar shows scale, steps, time and loss; `done` steps count as made at its start."""

    def __init__(self, done: int = 0) -> None:
        self.bar = progress_bar(unit="step", initial=done, leave=False)

    def __exit__(self, *raised: object) -> None:
        self.bar.close()

    def __call__(self, iterate: Iterate) -> None:
        """Advance by one step; read the loss, which waits for a GPU, only if the bar is drawn."""
        self.bar.total = iterate.steps
        if self.bar.update(1):
            height, width = iterate.image.shape[2:]
            self.bar.set_postfix_str(f"loss {iterate.losses.total.item():.4g}", refresh=False)
            self.bar.set_description_str(f"scale {iterate.scale}/{iterate.scales} {width}x{height}")


class Metrics(AbstractContextManager["Metrics"]):
    """Metrics writes a JSON line per step: step, scale, width, height, and each loss.

    A loss that is not finite is null. Use it as a context manager; its exit writes the lines still
    in memory. If writing fails, for example on a full disk, the run continues after one warning. An
    existing file keeps only the lines of its first `done` steps.
    """

    def __init__(self, path: Path, done: int = 0) -> None:
        self.path = path
        # Step numbers and losses of lines not yet written.
        self.waiting: list[tuple[dict[str, int], Losses]] = []
        self._failed = False
        with self._giving_up():
            self.path.open("a" if done > 0 else "w", encoding="utf-8").close()
            if done > 0:
                keep_lines(self.path, lambda line: line["step"] <= done)

    def __exit__(self, *raised: object) -> None:
        self.flush()

    def __call__(self, iterate: Iterate) -> None:
        """Collect the losses; write METRICS_BATCH lines at a time."""
        height, width = iterate.image.shape[2:]
        line = {"step": iterate.step, "scale": iterate.scale, "width": width, "height": height}
        self.waiting.append((line, iterate.losses))
        if len(self.waiting) == METRICS_BATCH:
            self.flush()

    def flush(self) -> None:
        """Write all waiting lines to the file. Call this before a checkpoint is saved as well."""
        lines, self.waiting = self.waiting, []
        if self._failed:
            return
        with self._giving_up():
            whole = self.path.stat().st_size
            try:
                with self.path.open("a", encoding="utf-8") as file:
                    for line, losses in lines:
                        file.write(to_json({**line, **losses.as_floats()}) + "\n")
            except OSError:
                with suppress(OSError):
                    os.truncate(self.path, whole)  # leave no partial line
                raise

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        """Turn a write error of the `with` block into a warning; from then on, write no lines."""
        try:
            yield
        except (OSError, UserError) as error:
            if isinstance(error, OSError):
                error = UserError(f"cannot write {self.path}: {error.strerror}")
            logger.warning("%s; going on without", error)
            self._failed = True
