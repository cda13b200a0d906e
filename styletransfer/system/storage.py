"""Tensors so large that they are better kept in a file, mapped into memory.

The kernel writes such memory out where it is short and reads it when it is looked at: one picture
of 16384 x 16384 pixels has 3.2 GB as float32. Files lie where `tempfile` has them (the variable
TMPDIR chooses), have no name, and are gone with their tensors.
"""

import logging
import mmap
import os
import tempfile

import torch
from torch import Tensor

from styletransfer.system.memory import readable, total_bytes

logger = logging.getLogger(__name__)

# Of the memory there is: a larger tensor is worth a file.
SHARE = 1 / 16


def is_large(size: float) -> bool:
    """Tell whether a tensor of so many bytes is better kept in a file."""
    return os.name == "posix" and size > SHARE * total_bytes()


def offloaded(tensor: Tensor) -> Tensor:
    """Return an equal tensor for the long run: a large one on the CPU in a file, if there is room.

    Its memory is shared with nothing: any change stays in it.
    """
    size = tensor.nbytes
    if tensor.device.type != "cpu" or not is_large(size):
        return tensor
    try:
        with tempfile.TemporaryFile() as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a full disk would kill the process later
            memory = mmap.mmap(file.fileno(), size)
    except OSError as error:
        where, reason = tempfile.gettempdir(), error.strerror
        logger.warning("no file of %s in %s (%s): kept in memory", readable(size), where, reason)
        return tensor
    mapped = torch.frombuffer(memory, dtype=tensor.dtype).view(tensor.shape)
    mapped.copy_(tensor.detach())
    memory.madvise(mmap.MADV_DONTNEED)  # it is in the file
    return mapped
