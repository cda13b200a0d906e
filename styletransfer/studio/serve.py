"""Serving the page: a port, an address with a token, and how it ends."""

import asyncio
import os
import secrets
import signal
import socket
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from styletransfer.config import StudioConfig, each
from styletransfer.errors import UserError
from styletransfer.studio.app import Studio, make_app
from styletransfer.system.signals import STOPPING, Stopped, signals_held

# Nothing else can reach it.
HOST = "127.0.0.1"
# Connections at a time, and seconds for them to end.
MOST, PATIENCE = 256, 2


def serve(config: StudioConfig, folder: Path) -> None:
    """Serve the page until a signal comes.

    Raises:
        UserError: the port is taken, or a folder of runs is none.
        Stopped: the signal.
    """
    others = [Path(path) for path in each(config.runs)]
    for path in others:
        if not path.is_dir():
            raise UserError(f"{path} is no folder; name one that holds runs")
    with _listening(config.port) as listener:
        port, token = listener.getsockname()[1], secrets.token_urlsafe(32)
        address = f"http://{HOST}:{port}/?token={token}"
        options = uvicorn.Config(
            make_app(Studio(folder, others), port, token),
            ws="websockets-sansio",
            ws_max_size=2**16,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=MOST,
            timeout_graceful_shutdown=PATIENCE,
        )
        server = _Server(options, address if config.open else None)
        print(f"the studio is at {address}\nCtrl-C ends it", flush=True)
        with signals_held():  # a signal is the server's to handle
            asyncio.run(server.serve([listener]))
    if server.stopped is not None:
        raise server.stopped


class _Server(uvicorn.Server):
    """uvicorn, which ends by our signals, and opens an address in the browser once it listens."""

    def __init__(self, config: uvicorn.Config, address: str | None) -> None:
        super().__init__(config)
        self.stopped: Stopped | None = None
        self._address = address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and then open the browser, which may take its time."""
        await super().startup(sockets)
        if self._address is not None and not await asyncio.to_thread(_open, self._address):
            print("no browser could be opened; open the address yourself", flush=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let each signal that is not ignored end the server in good order."""
        handled = [
            number for number in STOPPING if signal.getsignal(number) not in (signal.SIG_IGN, None)
        ]
        before = {number: signal.signal(number, self._stop) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopped = self.stopped or Stopped(number)
        self.should_exit = True


def _open(address: str) -> bool:
    """Open the address in a browser; tell whether there is one."""
    try:
        return webbrowser.open(address)
    except (OSError, webbrowser.Error):
        return False


def _listening(port: int) -> socket.socket:
    """Listen on a port of this machine, any free one for 0; UserError if it cannot be had."""
    if not 0 <= port < 2**16:
        raise UserError(f"port={port} must be 0 to 65535; 0 takes any that is free")
    try:  # to listen from now on: whoever has the address may come before we are ready
        return socket.create_server((HOST, port), backlog=MOST)
    except OSError as error:
        reason = f"port={port} cannot be had: {os.strerror(error.errno or 0)}"
        raise UserError(f"{reason}; leave it out for one that is free") from error
