"""Paint on a page of this machine, and steer while it dries: `scripts/studio.py`.

Serves the page on 127.0.0.1 alone, prints its address and opens the browser. Runs, and the pictures
that were dropped on the page, are kept in the run folder, `outputs/studio` by default.
"""

from pathlib import Path

from styletransfer.config import StudioConfig
from styletransfer.studio.library import check_library


def main(config: StudioConfig, folder: Path) -> None:
    """Serve the page until Ctrl-C.

    Raises:
        UserError: bad input, a port that is taken, or Starlette and uvicorn are not installed.
        Stopped: by a signal, which is the way to end it.
    """
    check_library()
    from styletransfer.studio.serve import serve

    serve(config, folder)
