"""Starlette and uvicorn, which serve the page: an extra, asked for only here by name."""

from importlib.util import find_spec

from styletransfer.errors import UserError

NEEDED = ("starlette", "uvicorn", "websockets")


def check_library() -> None:
    """Check that what the studio is served by is installed.

    Raises:
        UserError: it is not.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise UserError(
            f"the studio needs {' and '.join(missing)}; run: pip install 'styletransfer[studio]'"
        )
