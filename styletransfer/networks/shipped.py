"""The networks that ship with the project, by name."""

from pathlib import Path

from styletransfer.resources import resource

FOLDER = resource("assets") / "networks"
# A training starts from it, unless told otherwise: it has seen the most styles.
BASE = "painters"


def shipped() -> list[str]:
    """Return the names of the networks that ship."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def network_file(name: str) -> Path:
    """Return the file of the shipped network of this name, or else `name` as the path that it is.

    A file in the way goes first, as in a shell.
    """
    path = Path(name)
    return FOLDER / f"{name}.safetensors" if name in shipped() and not path.is_file() else path
