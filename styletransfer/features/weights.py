"""Weights files, read without executing anything they hold."""

import hashlib
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from styletransfer.errors import UserError


def read(path: Path) -> Mapping[str, Tensor]:
    """Return the tensors of a `.safetensors`, `.pth` or `.pt` file by name, on the CPU.

    Raises:
        UserError: the file is missing, damaged, of another kind, or would execute code.
    """
    if not path.is_file():
        raise UserError(f"no weights file at {path}; check features.weights")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        if path.suffix in (".pth", ".pt"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # remarks on the pickle protocol
                return _tensors(torch.load(path, map_location="cpu", weights_only=True), path)
    except UserError:
        raise
    except pickle.UnpicklingError as error:
        # torch's own message tells how to execute the file all the same.
        raise UserError(
            f"{path} holds more than plain tensors, or something else altogether; "
            "nothing in it was executed: save the tensors alone, best as .safetensors"
        ) from error
    except Exception as error:  # a reader fed with broken bytes raises nearly anything
        told = isinstance(error, SafetensorError | RuntimeError | OSError)
        reason = str(error).strip().split(". ")[0] if told else "it is damaged or of another kind"
        raise UserError(f"{path} is not a readable weights file: {reason}") from error
    raise UserError(f"{path} must end in .safetensors, .pth or .pt")


BUNDLED = Path(__file__).with_name("bundled.safetensors")
# SHA-256 of that file; a flipped bit would load silently.
BUNDLED_SHA256 = "ec47f34b59a90271654fe177660b9b53dce5a97fb54e333029bec0fcbe91aa90"


def read_bundled() -> Mapping[str, Tensor]:
    """Return the tensors of the network that ships with the package, checked against their hash.

    Raises:
        UserError: the file is missing or damaged.
    """
    if not BUNDLED.is_file() or sha256(BUNDLED) != BUNDLED_SHA256:
        raise UserError(f"{BUNDLED} is missing or damaged; install the project again")
    return read(BUNDLED)


def sha256(path: Path) -> str:
    """Return the file's SHA-256 as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tensors(loaded: object, path: Path) -> Mapping[str, Tensor]:
    if isinstance(loaded, Mapping) and all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in loaded.items()
    ):
        return loaded
    raise UserError(f"{path} does not hold a plain mapping of names to tensors")
