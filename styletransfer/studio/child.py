"""How a process of the studio behaves that is not its server."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

# Of 1000: whom Linux ends first where memory runs out.
FIRST_TO_GO = "500"


def become_a_child() -> None:
    """Leave Ctrl-C and a closed terminal to the server, say nothing there, and die before it."""
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO, encoding="ascii")
