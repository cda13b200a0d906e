"""The console command `styletransfer`: prints the list of commands, or runs a command."""

import difflib
import shlex
import sys
from collections.abc import Collection, Sequence

from styletransfer import __version__
from styletransfer.cli.errors import one_line_errors
from styletransfer.errors import UserError
from styletransfer.settings.registry import commands
from styletransfer.settings.terminal import wrapped

OVERVIEW = """\
Neural style transfer: two pictures in, one painting out.

usage: styletransfer COMMAND KEY=VALUE ...

{commands}

styletransfer COMMAND --help says what each key means; styletransfer --version, which version.
Try: styletransfer train content=photo.jpg style=painting.jpg output=pastiche.png
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line `argv`, without the program's name; the default is sys.argv[1:]."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with one_line_errors():
        known = commands()
        if not arguments or arguments[0] in ("-h", "--help"):
            lines = (f"  {name:<14}{command.summary}" for name, command in known.items())
            text = OVERVIEW.format(commands="\n".join(lines))
            for line in text.splitlines():
                print("\n".join(wrapped(line, 4)))
        elif arguments[0] == "--version":
            print(f"styletransfer {__version__}")
        elif arguments[0] not in known:
            raise UserError(_unknown(arguments[0], known))
        else:
            from styletransfer.cli.hydrated import run_command

            run_command(known[arguments[0]], arguments[1:])


def _unknown(name: str, known: Collection[str]) -> str:
    if "=" in name:
        return f"{name!r} is no command; name one first: styletransfer train {shlex.quote(name)}"
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"unknown command {name!r}; {hint}"
