"""An evaluation that is recorded once and replayed: a CUDA graph.

Python starts thousands of kernels for an evaluation, and a fast GPU waits for it. A graph starts
all of them at once. What is recorded reads and writes the same memory at each replay. So each
picture is copied into that memory, and gradient and losses are copied out of it: otherwise a
picture, gradient or loss that somebody keeps would become that of the next step.

`captured_on_cuda` follows torch's documentation ("CUDA semantics", CUDA Graphs). It has not been
tried on a GPU, so an evaluation is captured only if the setting `captured` asks for it.
"""

import gc
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from styletransfer.losses import STYLE_LOSSES, LossMode
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.evaluation import Evaluates, Losses
from styletransfer.system.signals import raise_waiting, signals_held, stop_on_signals

logger = logging.getLogger(__name__)

# The gradient (1, 3, H, W) and the losses (n,) of an evaluation.
Outputs = tuple[Tensor, Tensor]
# A Capture records the work of a function; it returns a function that replays it, and its outputs.
Capture = Callable[[Callable[[], Outputs]], tuple[Callable[[], object], Outputs]]
# Loss modes with one backward pass and without hooks of Python, which a replay would not call.
MODES = ("autograd_function", "loss_attribute")
# One capture at a time: while one is under way, other work on the device can spoil it.
_ONE_AT_A_TIME = threading.Lock()


def obstacle(device: torch.device, mode: LossMode, criterion: Criterion) -> str:
    """Return why whole pictures' evaluations cannot be captured, such as "on cpu"; "" if they can.

    Parts of a Wasserstein distance are computed on the CPU.
    """
    if device.type != "cuda":
        return f"on {device.type}"
    if mode.name not in MODES:
        return f"with loss_mode={mode.name}"
    if criterion.styles and criterion.measure is STYLE_LOSSES["wasserstein"]:
        return "with objective.style_loss=wasserstein"
    return ""


class CapturedObjective:
    """A `CapturedObjective` evaluates as `objective` does, by replaying its first evaluation.

    If the evaluation cannot be captured, a warning says why, and `objective` itself evaluates.

    Args:
        objective: the objective; all its pictures have the size of the first.
        capture: the function that records the evaluation.
    """

    def __init__(self, objective: Evaluates, capture: Capture) -> None:
        self._objective = objective
        self._capture: Capture | None = capture  # None after it has failed
        # The picture that a replay reads, names of losses, the replay, the outputs that it writes.
        self._graph: tuple[Tensor, list[str], Callable[[], object], Outputs] | None = None

    @property
    def is_captured(self) -> bool:
        """Whether evaluations are replayed; False before the first, and if capturing it failed."""
        return self._graph is not None

    def evaluate(self, image: Tensor) -> Losses:
        """Return the losses at `image`, and add their gradient to `image.grad`, see `Evaluates`."""
        if self._graph is None and self._capture is not None:
            self._begin(image.detach().clone(), self._capture)
        if self._graph is None:
            return self._objective.evaluate(image)
        picture, names, replay, (gradient, values) = self._graph
        picture.copy_(image.detach())
        replay()
        image.grad = gradient.clone() if image.grad is None else image.grad + gradient
        return Losses(dict(zip(names, values.clone().unbind(), strict=True)))

    def _begin(self, picture: Tensor, capture: Capture) -> None:
        """Record the evaluation of what is in the memory of `picture` (1, 3, H, W)."""

        names, objective = list[str](), self._objective  # `work` does not refer to `self`

        def work() -> Outputs:
            # A new leaf: autograd's node of an old one would belong to another stream.
            leaf = picture.detach().requires_grad_()
            terms = objective.evaluate(leaf).terms
            assert leaf.grad is not None
            names[:] = terms
            return leaf.grad, torch.stack(list(terms.values()))

        try:
            with _undisturbed():
                self._graph = (picture, names, *capture(work))
        except Exception as error:  # for any error, since evaluations may still work uncaptured
            reason = (str(error) or type(error).__name__).splitlines()[0]
            logger.warning("captured=true has no effect: %s", reason)
            self._capture = None
        if self._graph is None and picture.is_cuda:
            torch.cuda.empty_cache()  # the graph's memory, now that the error does not hold it


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let no signal, no other capture and no garbage collection interrupt the `with` block."""
    with _ONE_AT_A_TIME, stop_on_signals():
        collects = gc.isenabled()
        try:
            with signals_held():
                gc.collect()  # a graph that is destroyed during a capture spoils it
                gc.disable()
                yield
        finally:
            if collects:
                gc.enable()
            raise_waiting()


def captured_on_cuda(
    device: torch.device, work: Callable[[], Outputs]
) -> tuple[Callable[[], object], Outputs]:
    """Record `work` on `device` as a CUDA graph; see `Capture`. Only a replay computes outputs."""
    with torch.cuda.device(device):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            # A library's handles, which are made at its first call, must not be made in a graph.
            # The outputs are dropped: a graph must not meet the autograd nodes of other streams.
            work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            outputs = work()
    return graph.replay, outputs
