"""The list of commands: for each, a summary, and where the dataclass of its settings is."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from styletransfer.resources import resource

CONFIGS = resource("configs")
SETTINGS = "styletransfer.settings"


@dataclass(frozen=True)
class Command:
    """A Command describes a command without importing its code."""

    summary: str  # one line for `--help`
    # Dataclass of the settings in NAME.yaml, as MODULE:CLASS, imported when the command runs; None
    # for a command that parses its own arguments.
    schema: str | None = None
    folder: Path = CONFIGS  # folder that holds NAME.yaml
    shared: bool = False  # whether several processes of torchrun can share the command's work
    code: str | None = None  # module with its `main`; None for one in styletransfer/commands


# Name -> description of `styletransfer NAME`.
COMMANDS = {
    "apply": Command("Paint with a style network.", f"{SETTINGS}.networks:ApplyConfig"),
    "compare": Command("Run one job under every loss mode.", f"{SETTINGS}.pictures:CompareConfig"),
    "explain": Command("Explain where the gradient goes.", f"{SETTINGS}:StyleTransferConfig"),
    "export": Command(
        "Write a style network as ONNX, or as a page.", f"{SETTINGS}.networks:ExportConfig"
    ),
    "film": Command(
        "Paint a film by optimisation.",
        f"{SETTINGS}.pictures:FilmConfig",
        code="styletransfer.films.command",
    ),
    "gallery": Command(
        "Show runs side by side, to choose from.", f"{SETTINGS}.pictures:GalleryConfig"
    ),
    "gradcheck": Command(
        "Check every hand-written backward against measured slopes.",
        code="styletransfer.lessons.checks",
    ),
    "info": Command("Print how a picture was made.", f"{SETTINGS}.pictures:InfoConfig"),
    "mix": Command("Mix a finished pastiche with its content.", f"{SETTINGS}.pictures:MixConfig"),
    "studio": Command(
        "Paint on a page, and change settings meanwhile.",
        f"{SETTINGS}.pictures:StudioConfig",
        code="styletransfer.studio.command",
    ),
    "train": Command(
        "Paint one picture in the style of another.",
        f"{SETTINGS}:TrainConfig",
        code="styletransfer.train",
    ),
    "train_network": Command(
        "Train a network that paints in one pass.",
        f"{SETTINGS}.networks:TrainNetworkConfig",
        shared=True,
        code="styletransfer.training.command",
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
    """Return the name of the module with the `main` of a command or tool.

    In styletransfer/commands this is the file NAME.py or NAME/command.py.
    """
    code, plain = command(name).code, f"styletransfer.commands.{name}"
    if code is not None:
        return code
    spec = find_spec(plain)
    is_folder = spec is not None and spec.submodule_search_locations is not None
    return f"{plain}.command" if is_folder else plain
