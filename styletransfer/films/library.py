"""PyAV, which is FFmpeg in Python: imported when a film is opened, and asked only here by name."""

import os
from types import ModuleType

from styletransfer.errors import UserError


def pyav() -> ModuleType:
    """Return the module.

    Raises:
        UserError: it is not installed.
    """
    try:
        import av
    except ImportError as error:
        raise UserError("films need PyAV; run: pip install 'styletransfer[video]'") from error
    return av


def url(path: str | os.PathLike[str]) -> str:
    """Return a path as FFmpeg takes it for one, even with a colon in it."""
    return f"file:{os.fspath(path)}"


def reason(error: Exception) -> str:
    """Return what FFmpeg or the system says, in a few words."""
    return getattr(error, "strerror", None) or str(error)
