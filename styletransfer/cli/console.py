"""The console command: it finds a command by its name and runs it."""

import importlib
import sys
from collections.abc import Callable, Sequence

from styletransfer import __version__
from styletransfer.cli.catalogue import module, names, summary, unknown_command
from styletransfer.cli.errors import one_line_errors
from styletransfer.errors import UserError
from styletransfer.system.launch import place
from styletransfer.system.signals import interruptible

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
            lines = (f"  {name:<14}{summary(name)}" for name in names())
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
            from styletransfer.settings.schemas import SHARED

            if place().count > 1 and name not in SHARED:
                raise UserError(f"{name} works in one process; start it without torchrun")
            if name in SCHEMAS:
                hydrated(name)(argv)
            else:
                command = importlib.import_module(module(name)).main
                with interruptible():
                    status = command(argv)
                sys.exit(status)

    return run
