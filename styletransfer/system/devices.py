"""Chooses device and precision, measures free memory, and recognises out-of-memory errors."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import torch

from styletransfer.errors import UserError
from styletransfer.system.allocator import return_freed_memory
from styletransfer.system.rank import process_rank

# Values of ONEDNN_MAX_CPU_ISA under which oneDNN does not use the CPU's bfloat16 units.
WITHOUT_BFLOAT16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")
PRECISIONS = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}


def choose_device(name: str) -> torch.device:
    """Return the torch device for `name`: auto, cpu, cuda, cuda:N, mps or xpu.

    auto selects the accelerator that torch finds, else the CPU. If torchrun runs several processes
    on this machine, each gets its own accelerator. (UserError if the name is unknown, the device is
    missing, there are fewer devices than processes, or several processes are to share cuda:N.)
    """
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if name == "auto":
        name = "cpu" if accelerator is None else accelerator.type
    kind, colon, index = name.partition(":")
    known = ("cpu", "cuda", "mps", "xpu", getattr(accelerator, "type", "cpu"))
    if kind not in known or (colon and not index.isdecimal()):
        raise UserError(f"unknown device {name!r}; choose auto, cpu, cuda, cuda:N, mps or xpu")
    if kind == "cpu":
        return torch.device("cpu")
    is_here = accelerator is not None and accelerator.type == kind
    count = torch.accelerator.device_count() if is_here else 0
    if int(index or 0) >= count:
        raise UserError(
            f"device={name} is not here: {count} {kind.upper()} devices were found; "
            "choose device=auto or device=cpu"
        )
    here = process_rank()
    if here.local_world_size == 1:
        return torch.device(kind, int(index)) if index else torch.device(kind)
    if index:
        raise UserError(
            f"device={name} is one device for {here.local_world_size} processes; "
            f"choose device={kind}"
        )
    if here.local_world_size > count:
        raise UserError(
            f"{here.local_world_size} processes on this machine, and {count} {kind.upper()} "
            f"devices; start torchrun with --nproc-per-node={count}, or choose device=cpu"
        )
    return torch.device(kind, here.local_rank)


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """Return the network's dtype for `name` (auto, bfloat16, float32, float64) on `device`.

    auto selects bfloat16 if the hardware multiplies it natively, else float32. (UserError for
    float64 on mps, which does not have this dtype.)
    """
    if name == "auto":
        return torch.bfloat16 if has_native_bfloat16(device) else torch.float32
    if name == "float64" and device.type == "mps":
        raise UserError("device=mps has no float64; choose precision=float32")
    return PRECISIONS[name]


def has_native_bfloat16(device: torch.device) -> bool:
    """Tell whether `device` has bfloat16 units; False for MPS, as torch has no query for it."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "xpu":
        return bool(torch.xpu.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and bool(cpu_bfloat16_units())


def cpu_bfloat16_units() -> list[str]:
    """Return the CPU's bfloat16 units that oneDNN may use: AVX512-BF16, AMX, both or none."""
    if os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in WITHOUT_BFLOAT16:
        return []
    units = {"avx512_bf16": "AVX512-BF16", "amx_bf16": "AMX"}
    capabilities = torch.cpu.get_capabilities()
    return [name for key, name in units.items() if capabilities.get(key)]


def set_cuda_arithmetic() -> None:
    """Set how CUDA computes, whatever torch's defaults and the environment say.

    Convolutions in float32 use TF32: factors rounded to 10 bits, sums in float32. Matrix products,
    including the Gram matrices and the style loss's gradients, use float32 throughout. Convolutions
    use algorithms that give the same bits each time, so that a command makes the same bytes twice.
    """
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    torch.backends.cudnn.conv.fp32_precision = "tf32"  # type: ignore[attr-defined]
    torch.backends.cuda.matmul.fp32_precision = "ieee"


def hardware(device: torch.device) -> dict[str, str]:
    """Return what a recipe says about an accelerator and its libraries; {} for the CPU.

    The last bits of a picture depend on them.
    """
    if device.type != "cuda":
        return {} if device.type == "cpu" else {"hardware": device.type}
    name, cudnn = torch.cuda.get_device_name(device), torch.backends.cudnn.version()
    toolkit = f"ROCm {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
    return {"hardware": f"{name}, {toolkit}, cuDNN {cudnn}"}


# Some operations work on blocks of rows. On a GPU a block gives at most this many values: 512 MB in
# float32, three times VGG's largest features of 1024 x 683 pixels. No other number has been tried.
LARGEST_ON_GPU = 2**27


def at_a_time(on_cpu: int, device: torch.device, values: int) -> int:
    """Return how many rows an operation works on at a time; a row gives `values` values.

    On the CPU this is `on_cpu`, which the caller has measured or chosen to limit memory. On a GPU
    each block of rows costs the start of some kernels, and often a wait, so blocks are large.
    """
    return on_cpu if device.type == "cpu" else max(1, LARGEST_ON_GPU // values)


# Parts of messages with which torch, its CPU allocator and oneDNN report a lack of memory in a
# RuntimeError. The last two are oneDNN's. They give no reason, but a network that has run before
# fails in oneDNN only for lack of memory.
SHORTAGE = (
    "out of memory",
    "not enough memory",
    "allocate memory",
    "bad_alloc",
    "could not create a primitive",
    "could not execute a primitive",
)


def free_bytes(device: torch.device) -> float:
    """Return how many more bytes this process can allocate on `device`.

    On the CPU this is the available memory of the machine or container, divided by the number of
    the job's processes on this machine. An accelerator that reports no numbers, such as MPS, shares
    the machine's memory and counts as the CPU.
    """
    if device.type != "cpu":
        with suppress(NotImplementedError, RuntimeError):  # torch cannot tell, as on MPS
            free, _ = torch.accelerator.get_memory_info(device)
            # Memory that torch has reserved but not used is free too.
            reserved = torch.accelerator.memory_reserved(device)
            return float(free + reserved - torch.accelerator.memory_allocated(device))
    return_freed_memory()  # else the heap's freed memory would count as used
    return available_memory() / process_rank().local_world_size


def available_memory(root: Path = Path("/")) -> float:
    """Return the available bytes of the machine, or of the container; `root` is for tests."""
    return max(0.0, min(float(psutil.virtual_memory().available), *_left_in_groups(root)))


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error means that memory ran out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    if isinstance(error, SystemError):  # Python's regular expressions raise it if memory runs out
        return "without exception set" in text
    return isinstance(error, RuntimeError) and any(words in text for words in SHORTAGE)


def readable(count: float) -> str:
    """Return a number of bytes as MiB or GiB, such as "2.6 GiB"."""
    mebibytes = count / 2**20
    return f"{mebibytes:.0f} MiB" if mebibytes < 1000 else f"{mebibytes / 1024:.1f} GiB"


def _left_in_groups(root: Path) -> Iterator[float]:
    """Yield the bytes left in each control group of this process (kernel.org, cgroup-v2)."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    mount = root / "sys/fs/cgroup"
    for path in (line.removeprefix("0::") for line in lines if line.startswith("0::")):
        group = mount / path.lstrip("/")
        # In a container, the path may be the group's path on the host, which does not exist here.
        # Then only the mount folder has the files.
        for folder in (group, *group.parents):
            used = _number(folder / "memory.current") - _number(
                folder / "memory.stat", "inactive_file"
            )
            yield _number(folder / "memory.max", unknown=math.inf) - used
            if folder == mount:
                break
    yield math.inf


def _number(path: Path, name: str = "", unknown: float = 0.0) -> float:
    """Return the last number in a file's first line, or in its line that begins with `name`.

    If the file has no such number, return `unknown`.
    """
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
        return next(float(row[-1]) for row in rows if not name or row[0] == name)
    except (OSError, ValueError, LookupError, StopIteration):
        return unknown
