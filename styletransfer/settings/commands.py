"""The list of commands: for each, a summary, and the dataclass of its settings (its schema)."""

from dataclasses import dataclass
from importlib.util import find_spec
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
    """A Command describes a command without importing its code."""

    summary: str  # one line for `--help`
    # Dataclass of the settings in NAME.yaml; None for a command that parses its own arguments.
    schema: type[Any] | None = None
    folder: Path = CONFIGS  # folder that holds NAME.yaml
    shared: bool = False  # whether several processes of torchrun can share the command's work


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
    "studio": Command("Paint on a page, and change settings meanwhile.", StudioConfig),
    "train": Command("Paint one picture in the style of another.", TrainConfig),
    "train_network": Command(
        "Train a network that paints in one pass.", TrainNetworkConfig, shared=True
    ),
}
# Name of a command, and of its file configs/NAME.yaml -> the dataclass of the command's settings.
SCHEMAS = {name: known.schema for name, known in COMMANDS.items() if known.schema is not None}
# Name -> description of a maintainer's tool, which runs like a command. Tools lie outside of the
# package, in tools/; each adds itself here when it is imported.
TOOLS: dict[str, Command] = {}


def command(name: str) -> Command:
    """Return the command or the tool called `name`."""
    return COMMANDS.get(name) or TOOLS[name]


def schema_of(name: str) -> type[Any]:
    """Return the dataclass of the settings in NAME.yaml, for a command or a tool `name`."""
    schema = command(name).schema
    assert schema is not None, f"{name} has no config file"
    return schema


def module(name: str) -> str:
    """Return the name of the module with the `main` of a command: a file or a package."""
    if name == "train":
        return "styletransfer.train"
    if name == "studio":
        return "styletransfer.studio.command"
    plain = f"styletransfer.commands.{name}"
    spec = find_spec(plain)
    is_folder = spec is not None and spec.submodule_search_locations is not None
    return f"{plain}.command" if is_folder else plain
