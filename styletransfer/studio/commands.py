"""The command of the studio."""

from importlib.util import find_spec
from pathlib import Path

from styletransfer.errors import UserError, pip_install
from styletransfer.settings.registry import command
from styletransfer.studio.settings import StudioConfig

# Modules that the server needs, from packages of the extra [studio].
LIBRARIES = ("starlette", "uvicorn", "websockets")


@command(torch=False)  # the server does not import torch
def studio(config: StudioConfig, folder: Path) -> None:
    """Paint on a page, and change settings meanwhile."""
    if missing := [name for name in LIBRARIES if find_spec(name) is None]:
        needed = " and ".join(missing)
        raise UserError(f"the studio needs {needed}; run: {pip_install('studio')}")
    from styletransfer.studio.serve import serve

    serve(config, folder)
