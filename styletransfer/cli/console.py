"""Which commands there are, and how one is found by its name."""

import ast
import difflib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from styletransfer import __version__, commands
from styletransfer.cli.errors import one_line_errors
from styletransfer.errors import UserError

OVERVIEW = """\
Neural style transfer: two pictures in, one painting out.

usage: styletransfer COMMAND KEY=VALUE ...

{commands}

styletransfer COMMAND --help says what each key means; styletransfer --version, which version.
Try: styletransfer train content=photo.jpg style=painting.jpg output=pastiche.png
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run `styletransfer` with these arguments, those of the process by default."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with one_line_errors():
        if not arguments or arguments[0] in ("-h", "--help"):
            lines = (f"  {name:<12}{summary(name)}" for name in names())
            print(OVERVIEW.format(commands="\n".join(lines)), end="")
        elif arguments[0] == "--version":
            print(f"styletransfer {__version__}")
        elif arguments[0] not in names():
            raise UserError(unknown_command(arguments[0]))
        else:
            script(arguments[0])(arguments[1:])


def script(name: str) -> Callable[[Sequence[str] | None], None]:
    """Return the main of a command; its modules are imported when it is called.

    Commands with a config file are run by Hydra. The others have a `main(argv)` that reads its own
    arguments and returns the exit status.
    """

    def run(argv: Sequence[str] | None = None) -> None:
        with one_line_errors():
            from styletransfer.cli.hydrated import hydrated
            from styletransfer.settings import SCHEMAS

            if name in SCHEMAS:
                hydrated(name)(argv)
            else:
                sys.exit(importlib.import_module(module(name)).main(argv))

    return run


def module(name: str) -> str:
    """Return the name of the module that holds a command's `main`."""
    return f"styletransfer.commands.{name}.command"


def names() -> list[str]:
    """Return the commands: the folders under styletransfer/commands."""
    return sorted(found.name for found in pkgutil.iter_modules(commands.__path__) if found.ispkg)


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
