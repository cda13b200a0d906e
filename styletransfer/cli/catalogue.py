"""Which commands there are, and what each is for."""

import ast
import difflib
import importlib.util
import pkgutil
from pathlib import Path

from styletransfer import commands


def module(name: str) -> str:
    """Return the name of the module that holds a command's `main`."""
    if name == "studio":
        return "styletransfer.studio.command"
    found = importlib.util.find_spec(f"styletransfer.commands.{name}")
    is_folder = found is not None and found.submodule_search_locations is not None
    return f"styletransfer.commands.{name}" + (".command" if is_folder else "")


def names() -> list[str]:
    """Return the commands: what is under styletransfer/commands, and the studio."""
    return sorted(["studio", *(found.name for found in pkgutil.iter_modules(commands.__path__))])


def summary(name: str) -> str:
    """Return the first line of a command's docstring, without importing the command."""
    spec = importlib.util.find_spec(module(name))
    assert spec is not None
    assert spec.origin is not None
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return text.splitlines()[0].partition(": `")[0].rstrip(".") + "."


def unknown_command(name: str) -> str:
    """Say in one line that there is no such command, and which is the nearest."""
    if "=" in name:
        return f"{name!r} is no command; name one first: styletransfer train {name}"
    near = difflib.get_close_matches(name, names(), n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names())}"
    return f"unknown command {name!r}; {hint}"
