"""The list of commands: for each, a summary, and where the dataclass of its settings is."""

from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from styletransfer.resources import resource

CONFIGS = resource("configs")
PACKAGE = "styletransfer"


@dataclass(frozen=True)
class Command:
    """A Command describes a command without importing its code."""

    summary: str  # one line for `--help`
    # Dataclass of the settings in NAME.yaml, as MODULE:CLASS, imported when the command runs; None
    # for a command that parses its own arguments.
    schema: str | None = None
    folder: Path = CONFIGS  # folder that holds NAME.yaml
    shared: bool = False  # whether several processes of torchrun can share the command's work
    code: str = ""  # module with its `main`


# Name -> description of `styletransfer NAME`.
COMMANDS = {
    "apply": Command(
        "Paint with a style network.",
        f"{PACKAGE}.networks.settings:ApplyConfig",
        code=f"{PACKAGE}.networks.apply.command",
    ),
    "compare": Command(
        "Run one job under every loss mode.",
        f"{PACKAGE}.lessons.settings:CompareConfig",
        code=f"{PACKAGE}.lessons.compare",
    ),
    "explain": Command(
        "Explain where the gradient goes.",
        f"{PACKAGE}.settings:TrainConfig",
        code=f"{PACKAGE}.lessons.explain.command",
    ),
    "export": Command(
        "Write a style network as ONNX, or as a page.",
        f"{PACKAGE}.networks.settings:ExportConfig",
        code=f"{PACKAGE}.networks.export.command",
    ),
    "film": Command(
        "Paint a film by optimisation.",
        f"{PACKAGE}.films.settings:FilmConfig",
        code="styletransfer.films.command",
    ),
    "gallery": Command(
        "Show runs side by side, to choose from.",
        f"{PACKAGE}.runs.settings:GalleryConfig",
        code=f"{PACKAGE}.runs.gallery.command",
    ),
    "gradcheck": Command(
        "Check every hand-written backward against measured slopes.",
        code="styletransfer.lessons.checks",
    ),
    "info": Command(
        "Print how a picture was made.",
        f"{PACKAGE}.runs.settings:InfoConfig",
        code=f"{PACKAGE}.runs.info",
    ),
    "mix": Command(
        "Mix a finished pastiche with its content.",
        f"{PACKAGE}.runs.settings:MixConfig",
        code=f"{PACKAGE}.runs.mix",
    ),
    "studio": Command(
        "Paint on a page, and change settings meanwhile.",
        f"{PACKAGE}.studio.settings:StudioConfig",
        code="styletransfer.studio.command",
    ),
    "train": Command(
        "Paint one picture in the style of another.",
        f"{PACKAGE}.settings:TrainConfig",
        code="styletransfer.train",
    ),
    "train_network": Command(
        "Train a network that paints in one pass.",
        f"{PACKAGE}.networks.settings:TrainNetworkConfig",
        shared=True,
        code="styletransfer.networks.training.command",
    ),
}
# Name -> description of a maintainer's tool, which runs like a command. Tools lie outside of the
# package, in benchmarks/; each adds itself here when it is imported.
TOOLS: dict[str, Command] = {}


def command(name: str) -> Command:
    """Return the command or the tool called `name`."""
    return COMMANDS.get(name) or TOOLS[name]


def schema_of(name: str) -> type[Any]:
    """Return the dataclass of the settings in NAME.yaml, for a command or a tool `name`."""
    schema = command(name).schema
    assert schema is not None, f"{name} has no config file"
    found: type[Any] = resolve_name(schema)
    return found


def module(name: str) -> str:
    """Return the name of the module with the `main` of a command or tool."""
    return command(name).code
