"""Which device computes, and in which precision."""

import logging
import os
import platform
from functools import cache

import torch

from styletransfer.errors import UserError
from styletransfer.system.memory import is_out_of_memory
from styletransfer.system.process import place

logger = logging.getLogger(__name__)

# Limits that oneDNN takes from the environment, and under which it has no bfloat16 units.
WITHOUT_BFLOAT16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")
PRECISIONS = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}


def choose_device(name: str) -> torch.device:
    """Return the device that `name` (auto, cpu, cuda, cuda:N, mps, xpu) stands for here.

    auto takes the accelerator that torch finds, else the CPU. Of several processes that torchrun
    has started on a machine, each takes an accelerator of its own. (UserError: an unknown name, a
    device that is not there, or fewer devices than processes.)
    """
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if name == "auto":
        return torch.device("cpu") if accelerator is None else _own(accelerator.type)
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda", "mps", "xpu"):
        raise UserError(f"unknown device {name!r}; choose auto, cpu, cuda, cuda:N, mps or xpu")
    if device.type == "cpu":
        return torch.device("cpu")
    is_here = accelerator is not None and accelerator.type == device.type
    count = torch.accelerator.device_count() if is_here else 0
    if (device.index or 0) >= count:
        raise UserError(
            f"device={name} is not here: {count} {device.type.upper()} devices were found; "
            "choose device=auto or device=cpu"
        )
    if device.index is None:
        return _own(device.type)
    if (processes := place().local_count) > 1:
        advice = f"choose device={device.type}"
        raise UserError(f"device={name} is one device for {processes} processes; {advice}")
    return device


def _own(kind: str) -> torch.device:
    """Return the accelerator that belongs to this process: the one, or that of its number."""
    here, count = place(), torch.accelerator.device_count()
    if here.local_count == 1:
        return torch.device(kind)
    if here.local_count > count:
        raise UserError(
            f"{here.local_count} processes on this machine, and {count} {kind.upper()} devices; "
            f"start torchrun with --nproc-per-node={count}, or choose device=cpu"
        )
    return torch.device(kind, here.local_rank)


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """Return the dtype of the network for `name` (auto, bfloat16, float32, float64) on `device`.

    auto takes bfloat16 where the hardware multiplies it natively, and float32 elsewhere. Where a
    processor emulates what was named, that is said in one line. (UserError: an unknown name, or a
    precision that the device does not have.)
    """
    if name == "auto":
        return torch.bfloat16 if has_native_bfloat16(device) else torch.float32
    if name not in PRECISIONS:
        raise UserError(f"unknown precision {name!r}; choose auto, {', '.join(PRECISIONS)}")
    try:
        torch.ones(1, dtype=PRECISIONS[name], device=device)
    except (TypeError, RuntimeError) as error:  # MPS has no float64
        if is_out_of_memory(error):
            raise
        raise UserError(
            f"precision={name} does not exist on device={device}; choose precision=float32"
        ) from error
    if name == "bfloat16" and device.type == "cpu" and not cpu_bfloat16_units():
        _tell_emulated()
    return PRECISIONS[name]


@cache
def _tell_emulated() -> None:
    """Say once what bfloat16 costs where the processor has no units for it.

    A convolution of 64 channels and its gradients took 9 to 12 times as long as in float32 with
    AVX2, and 3 times with AVX-512.
    """
    if platform.machine() in ("x86_64", "AMD64"):  # of others we cannot tell
        times = 3 if torch.cpu.get_capabilities().get("avx512_f") else 10
        logger.warning(
            "precision=bfloat16 is emulated on this processor, about %d times slower than "
            "precision=float32",
            times,
        )


def has_native_bfloat16(device: torch.device) -> bool:
    """Tell whether `device` has bfloat16 units; of MPS nothing tells, so the answer is no."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "xpu":
        return bool(torch.xpu.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and bool(cpu_bfloat16_units())


def cpu_bfloat16_units() -> list[str]:
    """Return the processor's units for bfloat16: AVX512-BF16, AMX, both or none."""
    if os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in WITHOUT_BFLOAT16:
        return []
    units = {"avx512_bf16": "AVX512-BF16", "amx_bf16": "AMX"}
    capabilities = torch.cpu.get_capabilities()
    return [name for key, name in units.items() if capabilities.get(key)]


def set_float32_precision() -> None:
    """Say what float32 means on CUDA, instead of leaving it to torch or the environment.

    Convolutions use TF32's units: factors rounded to 10 bits, sums in float32. Matrix products,
    and with them the Gram matrices and the style's gradients, keep float32 throughout.
    """
    torch.backends.cudnn.conv.fp32_precision = "tf32"  # type: ignore[attr-defined]
    torch.backends.cuda.matmul.fp32_precision = "ieee"
