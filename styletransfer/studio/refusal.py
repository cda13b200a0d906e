"""What the server answers where it does not do what was asked."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from styletransfer.errors import UserError
from styletransfer.studio.controls import key_in


class RefusedError(Exception):
    """A request that is refused, in one line, with an HTTP status."""

    def __init__(self, message: str, status: int = 400, key: str | None = None) -> None:
        super().__init__(message)
        self.status, self.key = status, key


def refused(request: Request, error: Exception) -> Response:
    """Return the answer to a request that was refused."""
    if isinstance(error, RefusedError):
        return _answer(str(error), error.status, error.key)
    assert isinstance(error, UserError)
    return _answer(str(error), 422, key_in(str(error)))


def _answer(message: str, status: int, key: str | None) -> Response:
    return JSONResponse({"error": message, "key": key}, status_code=status)
