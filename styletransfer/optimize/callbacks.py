"""What may watch a run: a progress bar, snapshots, metrics. They receive an Iterate, no more."""

import json
import logging
import math
from contextlib import suppress
from pathlib import Path
from typing import Never, Self

from tqdm import tqdm

from styletransfer.errors import UserError
from styletransfer.objective.terms import Losses
from styletransfer.optimize.run import Callback, Iterate
from styletransfer.pictures import images

logger = logging.getLogger(__name__)

# Losses are fetched from the device this many at a time.
METRICS_BATCH = 20


class ProgressBar:
    """A tqdm bar on standard error with loss, scale and time left. Use as a context manager."""

    def __init__(self) -> None:
        self.bar: tqdm[Never] = tqdm(unit="step", dynamic_ncols=True, leave=False)

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


class Snapshots:
    """Save every n-th picture as `step_00010.png` in a folder.

    Args:
        folder: created when needed.
        every: steps between two snapshots, at least 1.
    """

    def __init__(self, folder: Path, every: int) -> None:
        self.folder, self.every = folder, every

    def __call__(self, iterate: Iterate) -> None:
        """Save the picture if its turn has come."""
        if iterate.step % self.every == 0:
            images.write(self.folder / f"step_{iterate.step:05d}.png", iterate.image)


class Metrics:
    """Write one JSON line per step: step, scale, width, height and every loss, null if not finite.

    Use as a context manager: leaving it writes what is still held back. If nothing more can be
    written, as on a full disk, it says so once and the run goes on.

    Args:
        path: of the `.jsonl` file, which is overwritten.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("w", encoding="utf-8")
        # Not the iterates: their pictures are large.
        self.held: list[tuple[dict[str, int], Losses]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._flush()
        self.file.close()

    def __call__(self, iterate: Iterate) -> None:
        """Hold the losses back and write them a batch at a time."""
        height, width = iterate.image.shape[2:]
        line = {"step": iterate.step, "scale": iterate.scale, "width": width, "height": height}
        self.held.append((line, iterate.losses))
        if len(self.held) == METRICS_BATCH:
            self._flush()

    def _flush(self) -> None:
        held, self.held = self.held, []
        if self.file.closed:
            return
        try:
            for line, losses in held:
                values = losses.as_floats().items()
                finite = {name: value if math.isfinite(value) else None for name, value in values}
                self.file.write(json.dumps(line | finite) + "\n")
            self.file.flush()
        except OSError as error:
            logger.warning("cannot write %s: %s; going on without", self.path, error.strerror)
            with suppress(OSError):  # closing tries to write once more
                self.file.close()


def tolerated(callback: Callback) -> Callback:
    """Return a callback that, once it cannot write, says so and does no more: the run goes on."""
    failed = False

    def call(iterate: Iterate) -> None:
        nonlocal failed
        if failed:
            return
        try:
            callback(iterate)
        except (OSError, UserError) as error:
            failed = True
            logger.warning("%s; going on without", error)

    return call
