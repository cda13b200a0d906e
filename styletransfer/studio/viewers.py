"""Sends messages about the queue to open pages, through one WebSocket for each page."""

import asyncio
from contextlib import suppress
from typing import Any

import anyio
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

    async def next(self) -> list[str | bytes]:
        """Wait for unsent messages and return them: JSON as text, a picture as bytes."""
        await self._due.wait()
        self._due.clear()
        news, self._news = self._news, {}
        kinds = [kind for kind in ("state", "message", "progress", "picture") if kind in news]
        return [news[kind] if kind == "picture" else to_json(news[kind]) for kind in kinds]


async def live(socket: WebSocket) -> None:
    """Send the messages for one page, through its WebSocket, until the page closes it."""
    queue = socket.app.state.studio.queue
    viewer = queue.join()
    try:
        await socket.accept()
        async with anyio.create_task_group() as group:
            group.start_soon(_tell, socket, viewer)
            while (await socket.receive())["type"] != "websocket.disconnect":
                pass  # messages from the page are ignored
            group.cancel_scope.cancel()
    finally:
        queue.viewers.discard(viewer)


async def _tell(socket: WebSocket, viewer: Viewer) -> None:
    """Send the messages of `viewer` as fast as the page reads them."""
    with suppress(WebSocketDisconnect, RuntimeError):  # the page has just closed the socket
        while True:
            for news in await viewer.next():
                kind = "text" if isinstance(news, str) else "bytes"
                await socket.send({"type": "websocket.send", kind: news})
