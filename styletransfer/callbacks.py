"""What may watch a run: a progress bar, snapshots, metrics. They receive an Iterate, no more."""

import json
from pathlib import Path
from types import TracebackType
from typing import Never, Self

from tqdm import tqdm

from styletransfer import images
from styletransfer.optimize import Iterate

# Losses are fetched from the device this many at a time.
METRICS_BATCH = 20


class ProgressBar:
    """A tqdm bar on standard error with loss, scale and time left. Use as a context manager."""

    def __init__(self) -> None:
        self.bar: tqdm[Never] = tqdm(unit="step", dynamic_ncols=True, leave=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
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
    """Write one JSON line per step: step, scale, width, height and every loss.

    Use as a context manager: leaving it writes what is still held back.

    Args:
        path: of the `.jsonl` file, which is overwritten.
    """

    def __init__(self, path: Path) -> None:
        self.file = path.open("w", encoding="utf-8")
        self.held: list[Iterate] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._flush()
        self.file.close()

    def __call__(self, iterate: Iterate) -> None:
        """Hold the losses back and write them a batch at a time."""
        self.held.append(iterate)
        if len(self.held) == METRICS_BATCH:
            self._flush()

    def _flush(self) -> None:
        for iterate in self.held:
            height, width = iterate.image.shape[2:]
            line = {"step": iterate.step, "scale": iterate.scale, "width": width, "height": height}
            self.file.write(json.dumps(line | iterate.losses.as_floats()) + "\n")
        self.file.flush()
        self.held.clear()
