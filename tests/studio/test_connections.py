"""Connections without the token, however many, leave room for the page."""

import asyncio
import threading
from contextlib import ExitStack, contextmanager, suppress
from socket import create_connection, create_server

import pytest

pytest.importorskip("uvicorn", reason="needs the extra [studio]")

import uvicorn
from starlette.responses import PlainTextResponse

from styletransfer.studio import connections, serve

MOST = 8
GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
BODY = b"POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n"


BUSY = threading.Semaphore(0)  # counts the requests for /body that are being answered


async def app(scope, receive, send):
    """Answer at once, as to whoever has no token; at /body, once the body is there."""
    if scope["path"] == "/body":
        BUSY.release()
        await receive()
    await PlainTextResponse("hello")(scope, receive, send)


@contextmanager
def served(monkeypatch):
    """Serve `app` with the studio's options, but at most MOST connections; yield the address."""
    monkeypatch.setattr(connections, "MOST", MOST)
    options = serve.server_options(app)
    options.lifespan = "off"
    server = uvicorn.Server(options)
    server.capture_signals = ExitStack  # a thread may not set signal handlers
    with create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        thread.start()
        try:
            yield address
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


def status(address, request=GET):
    """Send a request on a new connection; return the status of its answer."""
    with create_connection(address, timeout=60) as connection:
        connection.sendall(request)
        return int(connection.recv(4096).split()[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET",
        b"GET / HTTP/1.1\r\nhost: a\r\n",
        GET,
        GET + GET[:20],
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99\r\n\r\nbegun",
    ],
)
def test_requests_that_never_end_take_nobodys_place(begun, monkeypatch):
    opened = []
    with served(monkeypatch) as address, ExitStack() as held:
        for _ in range(3 * MOST):
            connection = held.enter_context(create_connection(address, timeout=60))
            opened.append(connection)
            connection.sendall(begun)
            if begun.startswith((GET, b"POST")):
                assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        assert [status(address) for _ in range(MOST)] == [200] * MOST
        with suppress(ConnectionError):  # the oldest is closed
            while opened[0].recv(4096):
                pass


def test_a_busy_server_answers_all_the_same(monkeypatch):
    """The requests of strangers that are not answered yet do not make it refuse others."""
    with served(monkeypatch) as address, ExitStack() as held:
        opened = []
        for _ in range(2 * MOST):
            opened.append(held.enter_context(create_connection(address, timeout=60)))
            opened[-1].sendall(BODY)
            assert BUSY.acquire(timeout=60)
            assert status(address) == 200
        for connection in opened:
            connection.sendall(b"abc")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_request_that_is_being_answered_keeps_its_place(monkeypatch):
    with served(monkeypatch) as address, ExitStack() as held:
        first = held.enter_context(create_connection(address, timeout=60))
        first.sendall(BODY)
        assert status(address) == 200  # the server has read the first request, too
        for _ in range(3 * MOST):
            held.enter_context(create_connection(address, timeout=60)).sendall(b"GET")
        assert status(address) == 200
        first.sendall(b"abc")
        assert first.recv(4096).startswith(b"HTTP/1.1 200")
