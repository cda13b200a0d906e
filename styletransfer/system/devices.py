"""Which device computes, and in which precision."""

import torch

from styletransfer.errors import UserError

PRECISIONS = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}


def choose_device(name: str) -> torch.device:
    """Return the device that `name` (auto, cpu, cuda, cuda:N) stands for here.

    Raises:
        UserError: an unknown name, or a GPU that is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise UserError(f"unknown device {name!r}; choose auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"device={name} is not here: {torch.cuda.device_count()} CUDA devices were found; "
            "choose device=cpu"
        )
    return device


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """Return the dtype of the network for `name` (auto, bfloat16, float32, float64) on `device`.

    auto takes bfloat16 where the hardware multiplies it natively, and float32 elsewhere.

    Raises:
        UserError: an unknown name.
    """
    if name == "auto":
        return torch.bfloat16 if has_native_bfloat16(device) else torch.float32
    if name not in PRECISIONS:
        raise UserError(f"unknown precision {name!r}; choose auto, {', '.join(PRECISIONS)}")
    return PRECISIONS[name]


def has_native_bfloat16(device: torch.device) -> bool:
    """Tell whether `device` has bfloat16 units: AMX or AVX512-BF16, or CUDA capability 8."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("amx_bf16") or capabilities.get("avx512_bf16"))


def set_float32_precision() -> None:
    """Say what float32 means on CUDA, instead of leaving it to torch's defaults or the environment.

    Convolutions use TF32's units: factors rounded to 10 bits, sums in float32. Matrix products,
    and with them the Gram matrices and the style's gradients, keep float32 throughout.
    """
    torch.backends.cudnn.conv.fp32_precision = "tf32"  # type: ignore[attr-defined]
    torch.backends.cuda.matmul.fp32_precision = "ieee"
