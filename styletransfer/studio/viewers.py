"""Sends messages about the queue to open pages, through one WebSocket for each page."""

import asyncio
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from styletransfer.system.files import to_json


class Viewer:
    """A Viewer holds the messages that one page has not received yet: the latest of each kind."""

    def __init__(self) -> None:
        self._news: dict[str, Any] = {}
        self._due = asyncio.Event()

    def tell(self, kind: str, news: Any) -> None:
        """Replace the unsent message of a kind: "state", "message", "progress" or "picture"."""
        self._news[kind] = news
        self._due.set()

    async def send(self, socket: WebSocket) -> None:
        """Send the messages, as JSON or as a picture's bytes, as fast as the page reads them."""
        with suppress(WebSocketDisconnect, RuntimeError):  # the page has just closed the socket
            while True:
                await self._due.wait()
                self._due.clear()
                news, self._news = self._news, {}
                for kind in ("state", "message", "progress"):
                    if kind in news:
                        await socket.send_text(to_json(news[kind]))
                if "picture" in news:
                    await socket.send_bytes(news["picture"])


async def live(socket: WebSocket) -> None:
    """Send the messages for one page, through its WebSocket, until the page closes it."""
    await socket.accept()
    queue = socket.app.state.studio.queue
    viewer = queue.join()
    sending = asyncio.create_task(viewer.send(socket))
    try:
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass  # messages from the page are ignored
    finally:
        sending.cancel()
        queue.viewers.discard(viewer)
