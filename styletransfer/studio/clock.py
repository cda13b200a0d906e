"""How long a run has been at work, and how long it will be."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from styletransfer.optimize.results import Iterate
from styletransfer.optimize.run import Run


class Clock:
    """Counts the seconds of a run, but for pauses, and those that a pixel takes at its scale."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._paused = 0.0
        self._scale = self._steps = 0
        self._spent = 0.0

    @property
    def seconds(self) -> float:
        """How long the run has been at work."""
        return time.monotonic() - self._began - self._paused

    def step(self, iterate: Iterate) -> None:
        """Note that a step was made."""
        now = self.seconds
        if iterate.scale != self._scale:  # its first step holds what its beginning takes
            self._scale, self._steps, self._spent = iterate.scale, 0, 0.0
        else:
            self._steps += 1
            self._spent += now - self._last
        self._last = now

    def left(self, run: Run, iterate: Iterate) -> float | None:
        """Return the seconds until the end, as steps take time by their pixels; None if unknown."""
        if not self._steps:
            return None
        height, width = run.scales[iterate.scale - 1].size
        each = self._spent / self._steps / (height * width)
        later = [
            scale.steps * scale.size[0] * scale.size[1] for scale in run.scales[iterate.scale :]
        ]
        here = (
            iterate.steps - iterate.step - sum(scale.steps for scale in run.scales[iterate.scale :])
        )
        return round(each * (sum(later) + max(here, 0) * height * width), 1)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Count no time within."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._paused += time.monotonic() - began
