"""What may watch a run: a progress bar, snapshots, metrics. They receive an Iterate, no more."""

import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Never, Self, TextIO

from tqdm.auto import tqdm

from styletransfer.errors import UserError
from styletransfer.objective.criterion import Losses
from styletransfer.optimize.results import Iterate
from styletransfer.pictures import images
from styletransfer.system.files import keep_lines, to_json

logger = logging.getLogger(__name__)

# Losses are fetched from the device this many at a time.
METRICS_BATCH = 20


class ProgressBar:
    """A tqdm bar on standard error with loss, scale and time left. Use as a context manager.

    It begins at the steps that were made before. Where nothing can be drawn, as on a closed
    standard error, there is none; nor where TQDM_DISABLE is in the environment.
    """

    def __init__(self, done: int = 0) -> None:
        self.bar: tqdm[Never] = tqdm(
            unit="step",
            initial=done,
            dynamic_ncols=True,
            leave=False,
            file=_Forgiving(sys.stderr),
            disable=sys.stderr is None or "TQDM_DISABLE" in os.environ,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.bar.close()

    def __call__(self, iterate: Iterate) -> None:
        """Advance by one step; the loss is read only when the bar is drawn anyway."""
        self.bar.total = iterate.steps
        if self.bar.update(1):
            height, width = iterate.image.shape[2:]
            self.bar.set_description_str(f"scale {iterate.scale}/{iterate.scales} {width}x{height}")
            self.bar.set_postfix_str(f"loss {iterate.losses.total.item():.4g}", refresh=False)


class _Forgiving:
    """A text file that takes whatever is written, also where it cannot."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self.file.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self.file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


class StepPictures:
    """Save every n-th picture as `step_00010.png` in a folder; if that fails, say so, once."""

    def __init__(self, folder: Path, every: int) -> None:
        self.folder, self.every = folder, every
        self._failed = False

    def __call__(self, iterate: Iterate) -> None:
        """Save the picture if its turn has come."""
        if self._failed or iterate.step % self.every:
            return
        try:
            images.write(self.folder / f"step_{iterate.step:05d}.png", iterate.picture)
        except UserError as error:
            self._failed = True
            logger.warning("%s; going on without", error)


class Metrics:
    """Write one JSON line per step: step, scale, width, height and every loss, null if not finite.

    Use as a context manager: leaving it writes what is still held back. If nothing more can be
    written, as on a full disk, it says so once and the run goes on.

    Args:
        path: of the `.jsonl` file, of which only the first lines are kept.
        done: the steps that were made before, whose lines are kept.
    """

    def __init__(self, path: Path, done: int = 0) -> None:
        self.path = path
        # Not the iterates: their pictures are large.
        self.waiting: list[tuple[dict[str, int], Losses]] = []
        self.file: TextIO | None = None
        self.written = 0  # bytes of whole lines
        self._open(done)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.flush()
        if self.file is not None:
            self.file.close()

    def __call__(self, iterate: Iterate) -> None:
        """Hold the losses back and write them a batch at a time."""
        height, width = iterate.image.shape[2:]
        line = {"step": iterate.step, "scale": iterate.scale, "width": width, "height": height}
        self.waiting.append((line, iterate.losses))
        if len(self.waiting) == METRICS_BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what is held back; a checkpoint may count on the lines of its steps."""
        lines, self.waiting = self.waiting, []
        if self.file is None:
            return
        try:
            for line, losses in lines:
                self.file.write(to_json({**line, **losses.as_floats()}) + "\n")
            self.file.flush()
            self.written = self.path.stat().st_size
        except OSError as error:
            self._give_up(error)

    def rewind(self, done: int) -> None:
        """Forget the lines of all steps beyond the first `done`."""
        self.flush()
        if self.file is None:
            return
        self.file.close()
        self._open(done)

    def _open(self, done: int) -> None:
        try:
            if done > 0 and self.path.is_file():
                keep_lines(self.path, lambda line: line["step"] <= done)
            self.file = self.path.open("a" if done > 0 else "w", encoding="utf-8")
            self.written = self.path.stat().st_size
        except (OSError, UserError) as error:
            self._give_up(error)

    def _give_up(self, error: OSError | UserError) -> None:
        if isinstance(error, OSError):
            error = UserError(f"cannot write {self.path}: {error.strerror}")
        logger.warning("%s; going on without", error)
        file, self.file = self.file, None
        if file is not None:
            with suppress(OSError):  # closing tries to write once more
                file.close()
            with suppress(OSError):
                os.truncate(self.path, self.written)  # no half line
