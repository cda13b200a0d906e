"""Reads weights files without executing code in them, and writes weights files with a hash."""

import hashlib
import os
import pickle
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.system.devices import is_out_of_memory

BUNDLED = Path(__file__).with_name("bundled.safetensors")
# A file has two tensors for an int8 kernel: KEY holds its values, and KEY_scale holds one factor
# for each output channel, by which these values are multiplied.
SCALE = "_scale"


def read(path: Path) -> Mapping[str, Tensor]:
    """Return the tensors of a `.safetensors`, `.pth` or `.pt` file by name, on the CPU.

    Raises UserError if the file is missing or damaged, is of another kind, holds more than plain
    tensors, or does not match the hash that `write` stored. In .safetensors files, int8 kernels are
    multiplied by their scales.
    """
    if not os.path.isfile(path):
        raise UserError(f"no weights file at {path}; check features.weights")
    try:
        if path.suffix == ".safetensors":
            return _unpacked(_checked(load_file(path), path))
        if path.suffix in (".pth", ".pt"):
            _check_unpacked(path)
            with warnings.catch_warnings(action="ignore"):  # torch warns about old pickle protocols
                return _tensors(torch.load(path, map_location="cpu", weights_only=True), path)
    except UserError:
        raise
    except pickle.UnpicklingError as error:
        # torch's own message is not shown, because it explains how to execute the file anyway.
        raise UserError(
            f"{path} holds more than plain tensors, or something else altogether; "
            "nothing in it was executed: save the tensors alone, best as .safetensors"
        ) from error
    except Exception as error:  # readers raise many kinds of errors for damaged files
        if is_out_of_memory(error):
            raise
        clear = isinstance(error, SafetensorError | RuntimeError | OSError)
        reason = str(error).strip().split(". ")[0] if clear else "it is damaged or of another kind"
        raise UserError(f"{path} is not a readable weights file: {reason}") from error
    raise UserError(f"{path} must end in .safetensors, .pth or .pt")


def write(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a `.safetensors` file with a hash of its tensors, which `read` checks."""
    # save_file is not used: for a full disk it raises its own error instead of an OSError.
    path.write_bytes(save(dict(tensors), metadata={"sha256": digest(tensors)}))


def _unpacked(tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Multiply int8 kernels KEY (O, I, h, w) by "KEY_scale" (O,).

    Scales without a matching int8 kernel stay in the result, so that `vgg.load` reports them.
    """
    result = dict(tensors)
    for key, kernel in tensors.items():
        scale = tensors.get(key + SCALE)
        if kernel.dtype == torch.int8 and scale is not None and scale.shape == kernel.shape[:1]:
            result[key] = kernel * result.pop(key + SCALE)[:, None, None, None]
    return result


def digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of tensors' names, dtypes, shapes and values, as hexadecimal digits."""
    hashed = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        hashed.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        hashed.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return hashed.hexdigest()


def _checked(tensors: Mapping[str, Tensor], path: Path) -> Mapping[str, Tensor]:
    with safe_open(path, framework="pt") as file:
        expected = (file.metadata() or {}).get("sha256")
    if expected is not None and digest(tensors) != expected:
        raise UserError(f"{path} is damaged: its tensors do not have the hash it was written with")
    return tensors


def _check_unpacked(path: Path) -> None:
    """Raise UserError for a compressed zip archive; torch writes none, and it could fill memory."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if any(entry.file_size > entry.compress_size for entry in archive.infolist()):
                raise UserError(f"{path} is compressed, as torch saves no weights; it was not read")


def _tensors(loaded: object, path: Path) -> Mapping[str, Tensor]:
    if not isinstance(loaded, Mapping) or not all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in loaded.items()
    ):
        raise UserError(f"{path} does not hold a plain mapping of names to tensors")
    if odd := [name for name, value in loaded.items() if not _is_plain(value)]:
        raise UserError(f"{path} holds {odd[0]} in another form than plain numbers; save it anew")
    return loaded


def _is_plain(tensor: Tensor) -> bool:
    """Tell whether a tensor is dense, real, on the CPU, and has no more bytes than its storage."""
    if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
        return False
    return not tensor.is_complex() and tensor.nbytes <= tensor.untyped_storage().nbytes()
