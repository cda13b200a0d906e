"""Reports the progress of a run to the studio's server, and carries out the server's requests."""

import math
import time
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from styletransfer.errors import UserError
from styletransfer.job import Scale
from styletransfer.optimize import Iterate
from styletransfer.optimize.run import Run
from styletransfer.pictures.convert import jpeg, to_image
from styletransfer.runs.recording import Recording
from styletransfer.settings.changes import changed
from styletransfer.studio.form import page_values
from styletransfer.studio.worker import RunLink

# Shortest time in seconds between two progress reports, if the second has no preview picture.
REPORT = 0.1
# SIDE: longer side of a preview in pixels. OFTEN: shortest time between two previews in seconds.
# SHARE: fraction of the run's time that previews may take. OLD: longest time in seconds between two
# previews, even if previews then take a larger fraction.
SIDE, OFTEN, SHARE, OLD = 1024, 0.25, 0.02, 1.0
QUALITY = 85  # JPEG quality of a preview, from 0 to 100
# One part of a step's time is proportional to the picture's number of pixels; the other part is
# constant, and as long as the time of STEP pixels.
STEP = 12_000


class Guide:
    """A Guide reports a run to the server, and carries out the server's requests after each step.

    It reports a step if a preview is due, or REPORT seconds after the last report.
    """

    def __init__(self, link: RunLink) -> None:
        self._link = link
        self._reported = self._next_preview = 0.0
        self._clock = Clock()
        self._last: Iterate | None = None

    def step(self, run: Recording, iterate: Iterate) -> None:
        """Report a step if it is due; carry out requests (KeyboardInterrupt: stop the run)."""
        if self._last is None:
            self._link.say("begun", now=page_values(run.config))
        self._clock.step(run.run, iterate)
        self._last = iterate
        began = time.monotonic()
        if began >= self._next_preview:
            picture = encode(iterate.picture)
            now = time.monotonic()
            self._next_preview = now + min(max(OFTEN, (now - began) / SHARE), OLD)
            self._tell(run, iterate, picture)
        elif began - self._reported >= REPORT:
            self._tell(run, iterate, None)
        show = partial(self._tell, run, iterate)
        if self._link.obey(lambda: show(encode(iterate.picture)), partial(self._steer, run)):
            self._clock.go_on()

    def end(self, run: Recording) -> None:
        """Report the last step and the result."""
        if self._last is not None:
            self._tell(run, self._last, encode(run.outcome.picture))

    def _steer(self, run: Recording, wish: dict[str, Any]) -> None:
        """Carry out a request to change settings; report the new settings, or an error."""
        error = key = None
        try:
            config = changed(run.config, wish["changes"])
            if config != run.config:
                run.steer(config)
        except UserError as problem:
            error, key = str(problem), problem.key
        number, now = wish.get("number"), page_values(run.config)
        self._link.say("standing", number=number, error=error, key=key, now=now)

    def _tell(self, run: Recording, iterate: Iterate, picture: bytes | None) -> None:
        """Send a progress report, with a JPEG if `picture` is not None."""
        self._reported = time.monotonic()
        self._link.say(
            "progress",
            step=iterate.step,
            steps=iterate.steps,
            scale=iterate.scale,
            scales=iterate.scales,
            seconds=round(self._clock.seconds, 1),
            left=self._clock.left(run.run, iterate),
            loss=iterate.losses.as_floats()["total"],
            pace=self._clock.pace,
            picture=picture,
        )


def encode(picture: Tensor) -> bytes:
    """Return a picture (1, 3, H, W) in [0, 1] as a JPEG whose sides are at most SIDE pixels."""
    factor = -(-max(picture.shape[2:]) // SIDE)
    small = torch.nan_to_num(avg_pool2d(picture.detach(), factor, ceil_mode=True))
    return jpeg(to_image(small.clamp(0.0, 1.0)), QUALITY)


def work(scale: Scale) -> int:
    """Return the work of one step at a scale: the number of the pastiche's pixels, plus STEP."""
    return STEP + math.prod(scale.size)


class Clock:
    """A Clock measures the working time of a run, and predicts the remaining time.

    Attributes:
        seconds: time of all steps so far, without pauses.
        pace: seconds of a step divided by its `work`; None before a measurement. The first step of
            a scale is left out, because that step also prepares the scale.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.pace: float | None = None
        self._last, self._scale = time.monotonic(), 0
        self._warm = [0.0, 0]  # seconds and work (in pixels) of the steps that count for `pace`

    def step(self, run: Run, iterate: Iterate) -> None:
        """Measure the step that has just ended."""
        seconds = time.monotonic() - self._last
        pixels = work(run.scales[iterate.scale - 1])
        self.seconds += seconds
        if iterate.scale == self._scale:
            self._warm[0] += seconds
            self._warm[1] += pixels
            self.pace = self._warm[0] / self._warm[1]
        self._scale = iterate.scale
        self.go_on()

    def go_on(self) -> None:
        """Start the measurement of the next step, for example after a pause."""
        self._last = time.monotonic()

    def left(self, run: Run, iterate: Iterate) -> float | None:
        """Return the predicted seconds until the end of the run, or None if `pace` is None."""
        if self.pace is None:
            return None
        later = run.scales[iterate.scale :]
        here = iterate.steps - iterate.step - sum(scale.steps for scale in later)
        pixels = sum(scale.steps * work(scale) for scale in later)
        pixels += max(here, 0) * work(run.scales[iterate.scale - 1])
        return round(self.pace * pixels, 1)
