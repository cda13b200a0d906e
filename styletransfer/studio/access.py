"""Access control of the studio: only its own page, which has a secret token, may send requests.

Every request and WebSocket is checked before the application handles it.
"""

import asyncio
import secrets
from collections.abc import Sequence
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from styletransfer.errors import UserError
from styletransfer.system.files import to_json

# Content-Security-Policy of all responses: the page loads only files of this server, and no other
# site may embed it.
POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)
ADVICE = "open the address that the studio has printed, with its token"
# Seconds without a new byte after which the server stops waiting for the rest of a request.
PATIENCE = 30.0
# Default headers of every response. The referrer policy hides the page's address from other sites,
# because this address holds the token until a redirect removes it.
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class RefusedError(UserError):
    """Raised to refuse a request, with a message, an HTTP status, and a setting's key or None."""

    def __init__(self, message: str, status: int = 400, key: str | None = None) -> None:
        super().__init__(message, key)
        self.status = status


class PlainJson(JSONResponse):
    """PlainJson is a JSON response in ASCII; numbers that are not finite become null.

    UTF-8 cannot encode a lone surrogate, but a request, a file name or a record may contain one.
    """

    def render(self, content: Any) -> bytes:
        """Return plain values as JSON in bytes."""
        return to_json(content).encode("ascii")


def _answer(status: int, message: str) -> Response:
    return PlainJson({"error": message, "key": None}, status)


class Access:
    """Access is middleware that refuses requests without the token or from pages of other origins.

    Access also refuses requests from outside of private networks, and requests whose header "Host"
    is not 127.0.0.1, localhost or an address in `near`, with `port`.
    """

    def __init__(self, app: ASGIApp, port: int, token: str, near: Sequence[str] = ()) -> None:
        self._app, self._token = app, token
        self._hosts = [f"{host}:{port}" for host in ("127.0.0.1", "localhost", *near)]
        self._cookie = f"studio_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it to the application."""
        refusal = None if scope["type"] == "lifespan" else self._refusal(scope)
        if refusal is None:
            await self._app(scope, _in_time(receive), _with_headers(send))
        elif scope["type"] == "http":
            await refusal(scope, receive, _with_headers(send))
        else:
            # The WebSocket is not accepted yet, so the client gets the status 403.
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Scope) -> Response | None:
        connection = HTTPConnection(scope)
        if connection.client is None or not ip_address(connection.client.host).is_private:
            return _answer(403, "the studio answers to private networks alone")
        hosts = connection.headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return _answer(400, f"this is http://{self._hosts[0]}, and has no other name")
        is_safe = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if not is_safe and connection.headers.getlist("origin") != [f"http://{hosts[0]}"]:
            return _answer(403, "a page from another origin may not do that")
        token = connection.query_params.get("token", "")
        if is_safe and scope["path"] == "/" and self._is_token(token):
            # The token moves to a cookie, and the redirect removes it from the address.
            answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
            answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return answer
        if not self._is_token(connection.cookies.get(self._cookie, "")):
            if scope["path"] == "/":
                return PlainTextResponse(f"This studio does not know you: {ADVICE}.", 403)
            return _answer(403, ADVICE)
        return None

    def _is_token(self, text: str) -> bool:
        """Return whether `text` is the token, in constant time, so that timing reveals nothing."""
        return secrets.compare_digest(text.encode("utf-8", "replace"), self._token.encode())


def _in_time(receive: Receive) -> Receive:
    """Return a `receive` that raises RefusedError if part of a body takes PATIENCE seconds."""
    limit: float | None = PATIENCE

    async def wrapped() -> Message:
        nonlocal limit
        try:
            message = await asyncio.wait_for(receive(), limit)
        except TimeoutError as error:
            raise RefusedError("the request stopped coming; send it again", 408) from error
        if not message.get("more_body"):  # later calls only wait for the disconnection
            limit = None
        return message

    return wrapped


def _with_headers(send: Send) -> Send:
    """Return a `send` that adds HEADERS to every response that does not set them itself."""

    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return wrapped
