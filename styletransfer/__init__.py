"""Neural style transfer by optimising an image under VGG features.

from styletransfer import stylize
stylize("photo.jpg", "painting.jpg", size=768).save("pastiche.png")
"""

from importlib import import_module
from typing import TYPE_CHECKING

from styletransfer.errors import UserError

if TYPE_CHECKING:
    from styletransfer.api import Iterate, Result, iterate, stylize

__version__ = "0.2.0"
__all__ = ["Iterate", "Result", "UserError", "__version__", "iterate", "stylize"]


def __getattr__(name: str) -> object:
    """Import `styletransfer.api`, and torch with it, when one of its names is used."""
    if name in ("Iterate", "Result", "iterate", "stylize"):
        return getattr(import_module("styletransfer.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
