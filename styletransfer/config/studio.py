"""The local page: `studio`."""

from dataclasses import dataclass, field
from typing import Any

from styletransfer.config.keys import PATHS


@dataclass
class StudioConfig:
    """`scripts/studio.py`: a page on this machine."""

    runs: Any = field(default=None, metadata=PATHS | {"positional": True})
    """More folders whose runs the page shows; may be given without runs=, several too."""
    port: int = 0
    """Of 127.0.0.1, where the page is served; 0 for any that is free."""
    open: bool = True
    """Open the page in the browser."""
