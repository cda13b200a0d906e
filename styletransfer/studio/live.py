"""The socket through which a page watches."""

from contextlib import suppress

import anyio
from starlette.websockets import WebSocket, WebSocketDisconnect

from styletransfer.studio.desk import Desk
from styletransfer.studio.refusal import RefusedError
from styletransfer.studio.viewer import Viewer

# Seconds in which a page has to take what it is sent; the code that says "try again later".
PATIENCE, LATER = 20.0, 1013


async def live(socket: WebSocket) -> None:
    """Tell a page what happens until it goes, or takes nothing any more."""
    desk: Desk = socket.app.state.desk
    viewer = Viewer()
    try:
        desk.join(viewer)
    except RefusedError:
        await socket.close(LATER)
        return
    await socket.accept()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_tell, socket, viewer, group.cancel_scope)
            await _gone(socket)
            group.cancel_scope.cancel()
    finally:
        desk.viewers.leave(viewer)


async def _gone(socket: WebSocket) -> None:
    """Wait until the page goes; what it says meanwhile means nothing."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


async def _tell(socket: WebSocket, viewer: Viewer, both: anyio.CancelScope) -> None:
    """Send what there is, the latest of each kind, as fast as the page takes it."""
    with suppress(WebSocketDisconnect, RuntimeError):  # it has just gone
        while True:
            for each in await viewer.next():
                with anyio.move_on_after(PATIENCE) as patience:
                    await (
                        socket.send_text(each) if isinstance(each, str) else socket.send_bytes(each)
                    )
                if patience.cancelled_caught:
                    await socket.close(LATER)
                    both.cancel()
                    return
