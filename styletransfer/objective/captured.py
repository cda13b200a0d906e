"""An evaluation that is recorded once and replayed: a CUDA graph.

Python starts thousands of kernels for an evaluation, and a fast GPU waits for it. A graph starts
all of them at once. What is recorded reads and writes the same memory at each replay. So each
picture is copied into that memory, and gradient and losses are copied out of it: otherwise a
picture, gradient or loss that somebody keeps would become that of the next step. A film keeps the
graph of a frame: the targets of the next frame are copied into the memory that it reads.

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
from styletransfer.objective.whole import Objective
from styletransfer.system.signals import raise_waiting, signals_held, stop_on_signals

logger = logging.getLogger(__name__)

# The gradient (1, 3, H, W) and the losses (n,) of an evaluation.
Outputs = tuple[Tensor, Tensor]
# A Capture records the work of a function; it returns a function that replays it, and its outputs.
# A replay reads the tensors that the work read, but does not keep them: the caller does.
Capture = Callable[[Callable[[], Outputs]], tuple[Callable[[], object], Outputs]]
# Loss modes with one backward pass and without Python hooks, which a replay would not call.
MODES = ("autograd_function", "loss_attribute")
# A capture holds this lock, because another capture on the device could spoil it.
_ONE_AT_A_TIME = threading.Lock()


def obstacle(device: torch.device, mode: LossMode, criterion: Criterion) -> str:
    """Return why a whole picture's evaluation cannot be captured, such as "on cpu"; "" if it can.

    A Wasserstein distance cannot be captured, because parts of it are computed on the CPU.
    """
    if device.type != "cuda":
        return f"on {device.type}"
    if mode.name not in MODES:
        return f"with loss_mode={mode.name}"
    if criterion.styles and criterion.measure is STYLE_LOSSES["wasserstein"]:
        return "with objective.style_loss=wasserstein"
    return ""


class CapturedObjective:
    """A `CapturedObjective` records the first evaluation of `objective`, and then replays it.

    If the evaluation cannot be captured, a warning says why, and `objective` itself evaluates.

    Args:
        objective: the objective; all its pictures have the size of the first.
        capture: the function that records the evaluation.
    """

    def __init__(self, objective: Evaluates, capture: Capture) -> None:
        self._objective = objective
        self._capture: Capture | None = capture  # None after a capture failed
        # The picture that a replay reads, the losses' names, the replay function, and its outputs.
        self._graph: tuple[Tensor, list[str], Callable[[], object], Outputs] | None = None

    @property
    def is_captured(self) -> bool:
        """Whether evaluations are replayed; False before the first one, and if a capture failed."""
        return self._graph is not None

    def follow(self, objective: Objective) -> bool:
        """Copy the state of `objective`, so that replays evaluate it; return whether they can.

        Its network, loss mode, criterion and picture size must be those of this objective; it has
        another content image, as the next frame of a film. It must have the same losses, too.
        """
        if self._graph is None or not isinstance(self._objective, Objective):
            return False
        own, new = self._objective.state(), objective.state()
        if {key: x.shape for key, x in own.items()} != {key: x.shape for key, x in new.items()}:
            return False
        for key, tensor in own.items():
            tensor.copy_(new[key])
        return True

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
        """Record an evaluation at `picture` (1, 3, H, W), whose memory each replay reads again."""

        # `work` refers to these variables, not to `self`.
        names, objective = list[str](), self._objective

        def work() -> Outputs:
            # Each call makes a new leaf: an old leaf's node would belong to another stream.
            leaf = picture.detach().requires_grad_()
            terms = objective.evaluate(leaf).terms
            assert leaf.grad is not None
            names[:] = terms
            return leaf.grad, torch.stack(list(terms.values()))

        try:
            with _undisturbed():
                self._graph = (picture, names, *capture(work))
        except Exception as error:  # any error: evaluations may still work without a capture
            reason = (str(error) or type(error).__name__).splitlines()[0]
            logger.warning("captured=true has no effect: %s", reason)
            self._capture = None
        if self._graph is None and picture.is_cuda:
            torch.cuda.empty_cache()  # frees the graph's memory, which `error` held until here


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let no signal, no other capture and no garbage collection interrupt the `with` block."""
    with _ONE_AT_A_TIME, stop_on_signals():
        collects = gc.isenabled()
        try:
            with signals_held():
                gc.collect()  # destroying an old graph during the capture would spoil it
                gc.disable()
                yield
        finally:
            if collects:
                gc.enable()
            raise_waiting()


def captured_on_cuda(
    device: torch.device, work: Callable[[], Outputs]
) -> tuple[Callable[[], object], Outputs]:
    """Record `work` on `device` as a CUDA graph (see `Capture`); a replay computes its outputs."""
    with torch.cuda.device(device):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            # A first call, outside of the graph: libraries such as cuBLAS create their handles now.
            # Its outputs are dropped, because a graph must not use autograd nodes of other streams.
            work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            outputs = work()
    return graph.replay, outputs
