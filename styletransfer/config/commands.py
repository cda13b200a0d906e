"""Which commands there are: one entry for each, with its summary and its schema."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from styletransfer.config.networks import ApplyConfig, ExportConfig, TrainNetworkConfig
from styletransfer.config.pictures import (
    CompareConfig,
    FilmConfig,
    GalleryConfig,
    MixConfig,
    StudioConfig,
    TrainConfig,
)
from styletransfer.resources import resource

CONFIGS = resource("configs")


@dataclass(frozen=True)
class Command:
    """What is known of a command before its code is imported."""

    summary: str  # one line for `--help`
    # Of its config file; None for a command that reads its own arguments.
    schema: type[Any] | None = None
    folder: Path = CONFIGS  # where that file, NAME.yaml, is
    shared: bool = False  # several processes of torchrun's can share its work
    unused: tuple[str, ...] = ()  # keys that it takes like any run, and that change nothing


# What `explain` takes from the words of a run.
_OF_A_RUN = (
    *("output", "steps", "scales", "tile", "optimizer", "changes"),
    *("snapshot_every", "checkpoint_every", "stop_after", "resume", "dry_run"),
)
# Name -> what `styletransfer NAME` is; its code is found by the name.
COMMANDS = {
    "apply": Command("Paint with a style network.", ApplyConfig),
    "compare": Command("Run one job under every loss mode.", CompareConfig),
    "explain": Command("Explain where the gradient goes.", TrainConfig, unused=_OF_A_RUN),
    "export": Command("Write a style network as ONNX, or as a page.", ExportConfig),
    "film": Command("Paint a film by optimisation.", FilmConfig),
    "gallery": Command("Show runs side by side, to choose from.", GalleryConfig),
    "gradcheck": Command("Check every hand-written backward against measured slopes."),
    "mix": Command("Mix a finished pastiche with its content.", MixConfig),
    "studio": Command("Paint on a page of this machine, and steer while it dries.", StudioConfig),
    "train": Command("Paint one picture in the style of another.", TrainConfig, shared=True),
    "train_network": Command(
        "Train a network that paints in one pass.", TrainNetworkConfig, shared=True
    ),
    "train_tiny": Command("Train a tiny model twice: with torch's operations and with ours."),
}
# Name of a file under configs/ -> its schema.
SCHEMAS = {name: known.schema for name, known in COMMANDS.items() if known.schema is not None}
# What `hydrated` adds: tools that are no part of the package, composed, explained and run as those.
TOOLS: dict[str, Command] = {}


def command(name: str) -> Command:
    """Return the command, or the tool, of that name."""
    return COMMANDS.get(name) or TOOLS[name]


def schema_of(name: str) -> type[Any]:
    """Return the schema of NAME.yaml."""
    schema = command(name).schema
    assert schema is not None, f"{name} has no config file"
    return schema
