"""Exchanges data between the processes of one job; torchrun starts a process for each device.

All processes make the same calls in the same order, and each call waits for the other processes.
Data on the CPU travels by gloo, and tensors on an accelerator by its own library, such as NCCL for
CUDA. Each exchange raises UserError if another process has ended.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from traceback import clear_frames
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

from styletransfer.errors import UserError
from styletransfer.system.devices import is_out_of_memory
from styletransfer.system.rank import process_rank
from styletransfer.system.signals import Stop, Stopped, signals_held

# Timeout of the connection to the other processes, and of each exchange. It is long, because the
# other processes may wait in an exchange while the first process saves and paints.
TIMEOUT = timedelta(minutes=10)
T = TypeVar("T")


class Processes:
    """`Processes` exchanges data between `count` processes; this one is number `rank`, from 0."""

    def __init__(self, rank: int = 0, count: int = 1) -> None:
        self.rank, self.count = rank, count

    def shard(self, total: int) -> slice:
        """Return the slice of `total` items for this process; lengths differ by one at most."""
        return slice(self.rank * total // self.count, (self.rank + 1) * total // self.count)

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes, bit for bit the same in all.

        Shapes and dtypes are the same in all processes; all tensors are on the job's device.
        """
        if self.count == 1:
            return
        flat = torch.cat([tensor.detach().flatten() for tensor in tensors])
        _together(distributed.all_reduce, flat)
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.detach().copy_(part.view(tensor.shape))

    def broadcast(self, make: Callable[[], T]) -> T:
        """Return in all processes the result of `make`, which only the first process calls.

        The result holds plain values and CPU tensors. If `make` raises UserError, all processes do.
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

    def stopped(self, stop: Stop) -> Stopped | None:
        """Return in all processes an exception if one of them has received a signal, or None."""
        status = torch.tensor(0 if stop.asked is None else stop.asked.status)
        if self.count > 1:
            _together(distributed.all_reduce, status, distributed.ReduceOp.MAX)
        return Stopped(int(status) - 128) if status else None


@contextmanager
def joined(device: torch.device) -> Iterator[Processes]:
    """Connect the processes of this job; yield `Processes` (UserError if one is unreachable)."""
    here = process_rank()
    if here.world_size == 1:
        yield Processes()
        return
    # The module imported here stores the process group that exists at its import. If torch's
    # optimisers imported it later, the group's threads could abort the process when Python ends.
    import torch.distributed.nn.functional

    backend = "cpu:gloo"
    if device.type != "cpu":
        torch.accelerator.set_device_index(device)
        backend += f",{device.type}:{distributed.get_default_backend_for_device(device)}"
    try:
        distributed.init_process_group(backend, timeout=TIMEOUT)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"process {here.rank} of {here.world_size} cannot reach the others ({_reason(error)}); "
            "check torchrun's --nnodes, --node-rank, --master-addr, --master-port, and the firewall"
        ) from error
    try:
        yield Processes(here.rank, here.world_size)
    finally:
        with signals_held():  # torchrun may send a signal now, if another process has ended
            distributed.destroy_process_group()


def _together(exchange: Callable[..., object], *arguments: Any) -> None:
    """Call `exchange`; raise UserError if it fails because another process has ended."""
    try:
        exchange(*arguments)
    except BaseException as error:
        clear_frames(error.__traceback__)  # the traceback would keep the process group alive
        if not isinstance(error, RuntimeError) or is_out_of_memory(error):
            raise
        here = process_rank()
        raise UserError(
            f"process {here.rank} of {here.world_size} has lost another one ({_reason(error)}); "
            "the last checkpoint stands, and the same command goes on from there"
        ) from error


def _reason(error: Exception) -> str:
    """Return the first sentence of torch's message, without the source file and line number."""
    return re.sub(r"^\[\S+:\d+\] ", "", str(error)).partition("\n")[0].partition(". ")[0]
