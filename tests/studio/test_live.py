"""A socket that never reads is let go, and holds nothing up meanwhile."""

import asyncio
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette", reason="the studio needs the extra [studio]")

from starlette.websockets import WebSocket

from styletransfer.studio import live
from styletransfer.studio.desk import Desk


def test_a_socket_that_never_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "PATIENCE", 0.05)
    sent = []

    async def send(message):
        sent.append(message["type"])
        if message["type"] == "websocket.send":
            await asyncio.Event().wait()  # its buffers are full

    async def receive():
        if sent:
            await asyncio.Event().wait()
        return {"type": "websocket.connect"}

    async def watch():
        desk = Desk(tmp_path, None)
        app = SimpleNamespace(state=SimpleNamespace(desk=desk))
        scope = {"type": "websocket", "app": app, "headers": [], "path": "/live"}
        await asyncio.wait_for(live.live(WebSocket(scope, receive, send)), 20)

    asyncio.run(watch())
    assert sent == ["websocket.accept", "websocket.send", "websocket.close"]
