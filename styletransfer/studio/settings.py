"""Settings of the command `studio`."""

from dataclasses import dataclass

from styletransfer.settings import number


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
