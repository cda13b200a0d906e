"""The processes of one job, which torchrun starts: what they exchange, and how they end together.

All make the same calls in the same order, and each of these waits for the others. torchrun starts
one process for each device; what is exchanged travels by gloo from CPU to CPU, and tensors on an
accelerator by its own library, NCCL for CUDA. Whatever is exchanged raises LostProcessError where
another process has ended.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from traceback import clear_frames
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed
from torch.distributed.rendezvous import rendezvous

from styletransfer.errors import LostProcessError, UserError
from styletransfer.system.memory import is_out_of_memory
from styletransfer.system.process import place
from styletransfer.system.signals import Stop, Stopped, signals_held

# Time for a process to reach torchrun, which is there before it and may have been killed since; for
# all to find the first one, where another launcher started them; and for an answer in the middle of
# the work: the others wait while the first one saves and paints. For the first two torch tries
# twice, with a pause of up to as long between.
TO_REACH, TO_FIND = timedelta(seconds=20), timedelta(minutes=2)
TO_ANSWER = timedelta(minutes=10)
T = TypeVar("T")


class Processes:
    """The `count` processes of a job, seen from that of number `rank`, from 0."""

    def __init__(self, rank: int = 0, count: int = 1) -> None:
        self.rank, self.count = rank, count

    def share(self, total: int) -> slice:
        """Return this process's part of `total` things; the parts differ by one at most."""
        return slice(self.rank * total // self.count, (self.rank + 1) * total // self.count)

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes, bit for bit the same in all.

        They have the same shapes and dtypes in all, and are on the job's device.
        """
        if self.count == 1 or not tensors:
            return
        if len(tensors) == 1 and tensors[0].is_contiguous():  # a large one is not copied
            _together(distributed.all_reduce, tensors[0].detach())
            return
        flat = torch.cat([tensor.detach().flatten() for tensor in tensors])
        _together(distributed.all_reduce, flat)
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.detach().copy_(part.view(tensor.shape))

    def first(self, make: Callable[[], T]) -> T:
        """Return the plain values and CPU tensors of `make`, which the first process alone calls.

        A UserError from there is raised in all processes.
        """
        if self.count == 1:
            return make()
        box: list[Any] = [None, None]
        if self.rank == 0:
            try:
                box[0] = make()
            except UserError as error:
                box[1] = str(error)
        _together(distributed.broadcast_object_list, box)
        if box[1] is not None:
            raise UserError(box[1])
        made: T = box[0]
        return made

    def check_equal(self, settings: Mapping[str, Any]) -> None:
        """Check that all were given the same, or else fail alike in all processes (UserError)."""
        if self.count == 1:
            return
        gathered: list[Any] = [None] * self.count
        mine = {key: str(value) for key, value in settings.items()}
        _together(distributed.all_gather_object, gathered, mine)
        for rank, other in enumerate(gathered):
            for key in sorted({*gathered[0], *other}):
                if gathered[0].get(key) != other.get(key):
                    raise UserError(
                        f"all processes must be given the same: {key} is {gathered[0].get(key)} in "
                        f"process 0 and {other.get(key)} in process {rank}"
                    )

    def largest(self, numbers: list[int]) -> list[int]:
        """Return the largest that any process has of each number."""
        if self.count == 1:
            return numbers
        tensor = torch.tensor(numbers)
        _together(distributed.all_reduce, tensor, distributed.ReduceOp.MAX)
        return [int(number) for number in tensor]

    def stopped(self, stop: Stop) -> Stopped | None:
        """Return the signal that any process has received by now, and the same one in all."""
        (status,) = self.largest([0 if stop.asked is None else stop.asked.status])
        return Stopped(status - 128) if status else None


@contextmanager
def joined(device: torch.device) -> Iterator[Processes]:
    """Find the other processes of this job (UserError: one is not reached, or stays away)."""
    here = place()
    if here.count == 1:
        yield Processes()
        return
    # Its functions have the group of their import as a default, and optimizers import it: it would
    # keep this group, whose threads then abort the process now and then while Python ends.
    import torch.distributed.nn.functional

    backend = "cpu:gloo"
    if device.type != "cpu":
        torch.accelerator.set_device_index(device)
        backend += f",{device.type}:{distributed.get_default_backend_for_device(device)}"
    is_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    try:
        store, *_ = next(rendezvous("env://", timeout=TO_REACH if is_torchrun else TO_FIND))
        distributed.init_process_group(
            backend, store=store, rank=here.rank, world_size=here.count, timeout=TO_ANSWER
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"process {here.rank} of {here.count} cannot reach the others ({_reason(error)}); "
            "check torchrun's --nnodes, --node-rank, --master-addr, --master-port, and the firewall"
        ) from error
    try:
        yield Processes(here.rank, here.count)
    finally:
        with signals_held():  # torchrun, which has seen another one end, may send its signal by now
            distributed.destroy_process_group()


def _together(exchange: Callable[..., object], *arguments: Any) -> None:
    """Exchange; an end of another process breaks its connection to this one: a line tells it."""
    try:
        exchange(*arguments)
    except BaseException as error:
        clear_frames(error.__traceback__)  # torch's would keep the group, and so its threads
        if not isinstance(error, RuntimeError) or is_out_of_memory(error):
            raise
        here = place()
        raise LostProcessError(
            f"process {here.rank} of {here.count} has lost another one ({_reason(error)}); the "
            "last checkpoint stands, and the same command goes on from there"
        ) from error


def _reason(error: Exception) -> str:
    """Return the first sentence of what torch says, without the line of its source."""
    return re.sub(r"^\[\S+:\d+\] ", "", str(error)).partition("\n")[0].partition(". ")[0]
