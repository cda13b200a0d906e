"""The command `studio`: starts the server of the page."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from styletransfer.errors import UserError, pip_install
from styletransfer.settings import number
from styletransfer.settings.registry import command

# Modules that the server needs, from packages of the extra [studio].
LIBRARIES = ("starlette", "uvicorn", "websockets")


@dataclass
class StudioConfig:
    """These are the settings of `scripts/studio.py`, which serves a page to paint on."""

    port: int = number(0, "[0, 65535]")
    """Port of the page; 0 for the port of the last time if it is free, else any free port."""
    open: bool = True
    """Open the page in the browser."""
    share: bool = False
    """Also serve the page in the private networks of this machine, for example to a phone, and
    print the address, also as a QR code. Whoever knows the address can do what you can; nothing is
    encrypted."""


@command(torch=False)  # the server does not import torch
def studio(config: StudioConfig, folder: Path) -> None:
    """Paint on a page, and change settings meanwhile."""
    if missing := [name for name in LIBRARIES if find_spec(name) is None]:
        needed = " and ".join(missing)
        raise UserError(f"the studio needs {needed}; run: {pip_install('studio')}")
    from styletransfer.studio.serve import serve

    serve(config, folder)
