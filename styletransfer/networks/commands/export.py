"""The command `export`: a style network for other programs, as ONNX or a web page."""

from dataclasses import dataclass
from pathlib import Path

from styletransfer.settings import MISSING, choice, path
from styletransfer.settings.registry import command


@dataclass
class ExportConfig:
    """These are the settings of `scripts/export.py`, which converts a style network."""

    network: str = path("any")
    """A file that train_network has written, or the name of a network that ships."""
    output: str = path(MISSING, written=True)
    """Path of the file, NAME.onnx; for target=web, of a new folder."""
    target: str = choice("onnx", "web")
    """onnx (a file), or web (a folder for any static web host, with a page that paints)."""
    runtime: str | None = path(None, idle="without target=web")
    """For target=web: folder of the npm package. Default: node_modules/onnxruntime-web."""


@command()
def export(config: ExportConfig, folder: Path) -> None:
    """Write a style network as ONNX, or as a web page."""
    from styletransfer.networks.export.onnx_file import export_network

    export_network(config)
