"""Runs the studio's server until a signal such as Ctrl-C; its address has a secret token."""

import asyncio
import json
import os
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import StringIO
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import psutil
import uvicorn

from styletransfer.errors import UserError, imported
from styletransfer.studio.app import Studio, make_app
from styletransfer.studio.commands.studio import StudioConfig
from styletransfer.studio.connections import MOST, PatientConnection
from styletransfer.system.locks import LOCK, lock_held
from styletransfer.system.signals import Stop, raise_waiting, signals_held, stop_on_signals

# Address of the server, which only this machine can reach; share=true adds other addresses.
HOST = "127.0.0.1"
SHARED = """Whoever in this network has that address paints on this machine, sees and removes its
pictures and runs; and what is sent is not encrypted: share it where you trust everybody.
"""
# Seconds that the server, before it ends, waits at most for connections to close.
PATIENCE = 2
# ADDRESS: file in the run folder with port and token, so that the next server has the same address.
# TOKEN: number of random bytes of a token; a stored token has at least as many characters.
ADDRESS, TOKEN = ".address.json", 32


def serve(config: StudioConfig, folder: Path) -> None:
    """Serve the page until a signal comes, such as Ctrl-C.

    (UserError: a port cannot be used, or another studio serves the folder.)
    """
    kept, token = _kept_address(folder)
    near = _private_addresses() if config.share else []
    with ExitStack() as opened:
        first = opened.enter_context(_listening(config.port, kept))
        port = first.getsockname()[1]
        shared = [opened.enter_context(_listening(port, 0, host)) for host in near]
        folder.mkdir(parents=True, exist_ok=True)
        advice = "wait for it, or end it, or choose another folder with hydra.run.dir=FOLDER"
        said = f"another studio is at work in {folder}; {advice}"
        opened.enter_context(lock_held(folder / LOCK, said))
        _keep_address(folder, port, token)
        address, *shown = (f"http://{host}:{port}/?token={token}" for host in (HOST, *near))
        options = server_options(make_app(Studio(folder), port, token, near))
        print(f"the studio is at {address}{''.join(map(_invitation, shown))}")
        print(f"{SHARED if shown else ''}Ctrl-C ends it", flush=True)
        if config.open:  # a separate thread, because opening a browser may take long
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        with stop_on_signals() as stop:
            with signals_held():  # `_Server.on_tick` checks for signals itself
                asyncio.run(_Server(options, stop).serve([first, *shared]))
            raise_waiting()


def server_options(app: Any) -> uvicorn.Config:
    """Return the options of a server for an ASGI application."""
    return uvicorn.Config(
        app,
        http=PatientConnection,
        ws="websockets-sansio",
        ws_max_size=2**16,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE,
    )


def _private_addresses() -> list[str]:
    """Return this machine's addresses in private networks (UserError: it has none)."""
    families = psutil.net_if_addrs().values()
    known = [
        one.address for interface in families for one in interface if one.family == socket.AF_INET
    ]
    near = [one for one in known if ip_address(one).is_private and not ip_address(one).is_loopback]
    if not near:
        raise UserError("share=true finds no private network on this machine; leave it out")
    return near


def _invitation(address: str) -> str:
    """Return a text with an address and, if the console can show it, a QR code of the address."""
    code = StringIO()
    segno = imported("segno", "share=true needs segno;", "studio")
    segno.make(address).terminal(code, compact=True)
    text = f"\nand for others in this network at {address}\n"
    with suppress(UnicodeEncodeError):
        code.getvalue().encode(sys.stdout.encoding or "ascii")
        text += code.getvalue()
    return text


class _Server(uvicorn.Server):
    """_Server is a uvicorn server that ends after a signal, which `stop` records."""

    def __init__(self, config: uvicorn.Config, stop: Stop) -> None:
        super().__init__(config)
        self._stop = stop

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers, because `serve` has its own."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Return whether the server must end."""
        return await super().on_tick(counter) or self._stop.asked is not None


def _kept_address(folder: Path) -> tuple[int, str]:
    """Return the port and the token that the last server stored, or 0 and a new token."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        said = json.loads((folder / ADDRESS).read_text(encoding="utf-8"))
        if len(said["token"]) >= TOKEN and 0 < said["port"] < 2**16:
            return int(said["port"]), str(said["token"])
    return 0, secrets.token_urlsafe(TOKEN)


def _keep_address(folder: Path, port: int, token: str) -> None:
    """Store port and token for the next server, in a file that only this user can read."""
    with suppress(OSError):
        (folder / ADDRESS).unlink(missing_ok=True)
        file = os.open(folder / ADDRESS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(file, "w", encoding="utf-8") as text:
            json.dump({"port": port, "token": token}, text)


def _listening(port: int, kept: int, host: str = HOST) -> socket.socket:
    """Return a socket that listens on a port of `host` (UserError: the port cannot be used).

    If `port` is 0, the socket listens on `kept`, the last server's port, or, if that is in use or
    0, on any free port.
    """
    if port == 0 and kept:
        with suppress(OSError):
            return socket.create_server((host, kept), backlog=MOST)
    try:  # the socket also listens, so that early requests wait until the server is ready
        return socket.create_server((host, port), backlog=MOST)
    except OSError as error:
        said = str(error.strerror).partition(" (while attempting")[0]  # Python appends the address
        reason = f"port={port} cannot be had: {said}"
        raise UserError(f"{reason}; leave it out for one that is free") from error
