"""The console command `styletransfer`; each script calls one of its commands."""

import difflib
import importlib
import os
import sys
from collections.abc import Callable, Sequence

from styletransfer import __version__
from styletransfer.cli.errors import one_line_errors
from styletransfer.errors import UserError
from styletransfer.settings.commands import COMMANDS, module
from styletransfer.system.process import place
from styletransfer.system.signals import interruptible

OVERVIEW = """\
Neural style transfer: two pictures in, one painting out.

usage: styletransfer COMMAND KEY=VALUE ...

{commands}

styletransfer COMMAND --help says what each key means; styletransfer --version, which version.
Try: styletransfer train content=photo.jpg style=painting.jpg output=pastiche.png
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line `argv`, without the program's name; the default is sys.argv."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with one_line_errors():
        if not arguments or arguments[0] in ("-h", "--help"):
            lines = (f"  {name:<14}{known.summary}" for name, known in COMMANDS.items())
            print(OVERVIEW.format(commands="\n".join(lines)), end="")
        elif arguments[0] == "--version":
            print(f"styletransfer {__version__}")
        elif arguments[0] not in COMMANDS:
            raise UserError(_unknown(arguments[0]))
        else:
            script(arguments[0])(arguments[1:])


def script(name: str) -> Callable[[Sequence[str] | None], None]:
    """Return a function that takes `argv` and runs a command; it imports the command's module.

    Hydra runs the commands that have a config file. Every other command has a `main(argv)` that
    parses its arguments and returns the exit status.
    """
    if COMMANDS[name].schema is not None:
        from styletransfer.cli.hydrated import hydrated

        return hydrated(name)

    def run(argv: Sequence[str] | None = None) -> None:
        with one_line_errors():
            check_process(name)
            command = importlib.import_module(module(name)).main
            with interruptible():
                status = command(argv)
            sys.exit(status)

    return run


def check_process(name: str) -> None:
    """Raise UserError in a deleted folder, or under torchrun if the command cannot share work."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("the folder this was started in is gone; go to another") from error
    if name in COMMANDS and place().count > 1 and not COMMANDS[name].shared:
        raise UserError(f"{name} works in one process; start it without torchrun")


def _unknown(name: str) -> str:
    if "=" in name:
        return f"{name!r} is no command; name one first: styletransfer train {name}"
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
    return f"unknown command {name!r}; {hint}"
