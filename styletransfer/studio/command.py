"""Serve a page on this machine that paints pictures: `scripts/studio.py`.

The server listens on 127.0.0.1, prints its address and opens the browser. Runs and uploads are
stored in the run folder, `outputs/studio` by default.
"""

from importlib.util import find_spec
from pathlib import Path

from styletransfer.errors import UserError, pip_install
from styletransfer.studio.settings import StudioConfig

# Modules that the server needs, from packages of the extra [studio].
LIBRARIES = ("starlette", "uvicorn", "websockets")


def main(config: StudioConfig, folder: Path) -> None:
    """Serve the page until a signal raises Stopped (UserError: wrong input or missing library)."""
    if missing := [name for name in LIBRARIES if find_spec(name) is None]:
        needed = " and ".join(missing)
        raise UserError(f"the studio needs {needed}; run: {pip_install('studio')}")
    from styletransfer.studio.serve import serve

    serve(config, folder)
