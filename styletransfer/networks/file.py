"""Reads and writes style networks: `.safetensors` files with architecture and style names."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from styletransfer.errors import UserError
from styletransfer.features.weights import digest
from styletransfer.networks.encoder import StyleEncoder
from styletransfer.networks.johnson import Architecture, StyleNetwork
from styletransfer.resources import resource
from styletransfer.system.devices import is_out_of_memory
from styletransfer.system.files import write_atomic

# Key of the only metadata entry, a JSON text. With several entries, safetensors would write them in
# any order, but equal networks must give equal bytes.
KEY = "styletransfer"
FORMAT = "style network"
# Version of the file format; raise it when the meaning of the stored data changes.
VERSION = 2
# Largest width in channels, number of residual blocks, and number of styles that a file may have.
# The architectures in `johnson.LAYOUTS` are smaller. The limits keep a file from requesting a huge
# network.
WIDEST, DEEPEST, MOST_STYLES = 1024, 64, 1000
FOLDER = resource("assets") / "networks"
# Name of the shipped network from which a training starts by default; it paints six styles.
BASE = "painters"


@dataclass(frozen=True)
class NetworkFile:
    """A `NetworkFile` is the content of a style network's file."""

    network: StyleNetwork  # in float32 on the CPU, frozen
    styles: list[str]  # the name of each style


def shipped() -> list[str]:
    """Return the names of the networks that are shipped with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def network_file(name: str) -> Path:
    """Return `name` as a path, or the path of the shipped network `name` if no file is there."""
    path = Path(name)
    return FOLDER / f"{name}.safetensors" if name in shipped() and not path.is_file() else path


def write(path: Path, network: StyleNetwork, styles: list[str]) -> None:
    """Write a network in float32, its styles' names and a hash; a failed write changes no file."""
    tensors = {
        name: value.detach().to("cpu", torch.float32).contiguous()
        for name, value in network.state_dict().items()
    }
    header = {
        "format": FORMAT,
        "version": VERSION,
        "layout": asdict(network.layout),
        "styles": styles,
        "any_style": network.encoder is not None,
        "sha256": digest(tensors),
    }
    # save_file is not used, because only the owner could read the file that it writes.
    write_atomic(path, save(tensors, metadata={KEY: json.dumps(header)}))


def read(path: Path) -> NetworkFile:
    """Read a network (UserError if the file is missing, damaged, or of another kind or version)."""
    if not os.path.isfile(path):
        raise UserError(
            f"no style network at {path}; name a file that train_network has written, or one that "
            f"ships: {', '.join(shipped())}"
        )
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        raise UserError(f"{path} is no style network, or is damaged: {error}") from error
    header = _metadata_of(metadata, path)
    if header["version"] != VERSION:
        raise UserError(
            f"{path} is a style network of version {header['version']}, and this program reads "
            f"version {VERSION}; train it anew, or use the program that wrote it"
        )
    if header.get("sha256") != digest(tensors):
        raise UserError(f"{path} is damaged: its tensors are not those it was written with")
    tensors = {name: value.float() for name, value in tensors.items()}
    try:
        network = _built(header)
        network.load_state_dict(tensors, assign=True)
    except (KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise UserError(f"{path} is damaged: it holds another network than it says") from error
    return NetworkFile(network.requires_grad_(False).eval(), header["styles"])


def _metadata_of(metadata: Mapping[str, str], path: Path) -> dict[str, Any]:
    """Return the metadata of a file as a dict (UserError if the file is no style network)."""
    with suppress(KeyError, TypeError, ValueError, RecursionError):
        header: dict[str, Any] = json.loads(metadata[KEY])
        if header["format"] == FORMAT and "version" in header:
            return header
    raise UserError(f"{path} is no style network; name a file that train_network has written")


def _built(header: Mapping[str, Any]) -> StyleNetwork:
    """Return the network that a file's header describes, on the meta device (without weights).

    (KeyError, TypeError, ValueError, OverflowError, RuntimeError if the header is damaged.)
    """
    styles, blocks = header["styles"], int(header["layout"]["blocks"])
    first, second, third = widths = tuple(map(int, header["layout"]["widths"]))
    if not isinstance(styles, list) or not all(isinstance(name, str) for name in styles):
        raise TypeError(styles)
    if max(widths) > WIDEST or blocks > DEEPEST or len(styles) > MOST_STYLES:
        raise ValueError(header["layout"])
    with torch.device("meta"):
        network = StyleNetwork(Architecture((first, second, third), blocks), len(styles))
        network.encoder = StyleEncoder(network) if header.get("any_style") else None
    return network
