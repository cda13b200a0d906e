"""Write a style network as ONNX: `scripts/export.py network=FILE output=net.onnx`.

Any ONNX runtime paints with the file, without this package; docs/networks.md shows how in ten
lines. It takes the extra `onnx`: pip install -e '.[onnx]'.
"""

from pathlib import Path

from styletransfer.commands.export.run import export
from styletransfer.config import ExportConfig


def main(config: ExportConfig, folder: Path) -> None:
    """Export, and say where the file is."""
    print(export(config))
