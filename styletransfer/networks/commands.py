"""The commands of style networks."""

from pathlib import Path

from styletransfer.networks.settings import ApplyConfig, ExportConfig, TrainNetworkConfig
from styletransfer.settings.registry import command


@command(repeatable=True)
def apply(config: ApplyConfig, folder: Path) -> None:
    """Paint with a style network."""
    from styletransfer.networks.apply.command import main

    main(config, folder)


@command
def export(config: ExportConfig, folder: Path) -> None:
    """Write a style network as ONNX, or as a web page."""
    from styletransfer.networks.export.command import main

    main(config, folder)


@command(shared=True)
def train_network(config: TrainNetworkConfig, folder: Path) -> None:
    """Train a network that paints in one pass."""
    from styletransfer.networks.training.command import main

    main(config, folder)
