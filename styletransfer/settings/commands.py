"""The list of commands: one entry for each, with its summary and its schema."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from styletransfer.resources import resource
from styletransfer.settings.networks import ApplyConfig, ExportConfig, TrainNetworkConfig
from styletransfer.settings.pictures import (
    CompareConfig,
    FilmConfig,
    GalleryConfig,
    InfoConfig,
    MixConfig,
    StudioConfig,
    TrainConfig,
)

CONFIGS = resource("configs")


@dataclass(frozen=True)
class Command:
    """The description of a command, which is available before its code is imported."""

    summary: str  # one line for `--help`
    # Schema of its config file NAME.yaml; None for a command that parses its own arguments.
    schema: type[Any] | None = None
    folder: Path = CONFIGS  # folder of its config file
    shared: bool = False  # whether several processes of torchrun can share its work


# Name -> description of `styletransfer NAME`. The name also locates the command's code.
COMMANDS = {
    "apply": Command("Paint with a style network.", ApplyConfig),
    "compare": Command("Run one job under every loss mode.", CompareConfig),
    "explain": Command("Explain where the gradient goes.", TrainConfig),
    "export": Command("Write a style network as ONNX, or as a page.", ExportConfig),
    "film": Command("Paint a film by optimisation.", FilmConfig),
    "gallery": Command("Show runs side by side, to choose from.", GalleryConfig),
    "gradcheck": Command("Check every hand-written backward against measured slopes."),
    "info": Command("Print how a picture was made.", InfoConfig),
    "mix": Command("Mix a finished pastiche with its content.", MixConfig),
    "studio": Command("Paint on a page of this machine, and steer while it dries.", StudioConfig),
    "train": Command("Paint one picture in the style of another.", TrainConfig),
    "train_network": Command(
        "Train a network that paints in one pass.", TrainNetworkConfig, shared=True
    ),
}
# Name of a file under configs/ -> its schema.
SCHEMAS = {name: known.schema for name, known in COMMANDS.items() if known.schema is not None}
# Name -> description of a tool that runs like a command. A tool is outside of the package, and adds
# itself here when it is imported.
TOOLS: dict[str, Command] = {}


def command(name: str) -> Command:
    """Return the command or the tool called `name`."""
    return COMMANDS.get(name) or TOOLS[name]


def schema_of(name: str) -> type[Any]:
    """Return the schema of NAME.yaml."""
    schema = command(name).schema
    assert schema is not None, f"{name} has no config file"
    return schema
