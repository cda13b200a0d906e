"""Serving the page: a port, an address with a token, and how it ends."""

import asyncio
import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import uvicorn

from styletransfer.config import StudioConfig, each
from styletransfer.errors import UserError
from styletransfer.studio.app import Studio, make_app
from styletransfer.system.signals import Stop, raise_waiting, signals_held, stop_on_signals

# Nothing else can reach it.
HOST = "127.0.0.1"
# Connections at a time, and seconds for them to end.
MOST, PATIENCE = 256, 2


def serve(config: StudioConfig, folder: Path) -> None:
    """Serve the page until a signal comes; see `command.main`."""
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
        print(f"the studio is at {address}\nCtrl-C ends it", flush=True)
        if config.open:  # it waits until we answer, as we wait for no browser
            threading.Thread(target=_open, args=(address,), daemon=True).start()
        with stop_on_signals() as stop:
            with signals_held():  # the server looks for itself whether one has come
                asyncio.run(_Server(options, stop).serve([listener]))
            raise_waiting()


def _open(address: str) -> None:
    with suppress(OSError, webbrowser.Error):
        if webbrowser.open(address):
            return
    print("no browser could be opened; open the address yourself", flush=True)


class _Server(uvicorn.Server):
    """uvicorn, which ends by our signals."""

    def __init__(self, config: uvicorn.Config, stop: Stop) -> None:
        super().__init__(config)
        self._stop = stop

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone: they are ours."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Do what is due, and tell whether to end in good order, as after a signal."""
        return await super().on_tick(counter) or self._stop.asked is not None


def _listening(port: int) -> socket.socket:
    """Listen on a port of this machine, any free one for 0; UserError if it cannot be had."""
    if not 0 <= port < 2**16:
        raise UserError(f"port={port} must be 0 to 65535; 0 takes any that is free")
    try:  # to listen from now on: whoever has the address may come before we are ready
        return socket.create_server((HOST, port), backlog=MOST)
    except OSError as error:
        reason = f"port={port} cannot be had: {os.strerror(error.errno or 0)}"
        raise UserError(f"{reason}; leave it out for one that is free") from error
