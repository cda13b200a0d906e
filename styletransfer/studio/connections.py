"""The server's connections: if there are too many, idle ones are closed for new ones."""

from asyncio import Transport
from itertools import count
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_ARRIVALS = count()


class PatientConnection(H11Protocol):
    """A PatientConnection without a request in progress may be closed to make room for a new one.

    If there are `limit_concurrency` connections, the oldest idle one is closed; a browser opens it
    again. Clients without the token are answered at once, so they cannot keep connections busy.
    """

    def connection_made(self, transport: Any) -> None:
        """Accept a new connection; if there are too many, close the oldest idle ones."""
        super().connection_made(transport)
        self.arrival = next(_ARRIVALS)
        most = self.limit_concurrency or 0
        others = [one for one in self.connections if isinstance(one, PatientConnection)]
        waiting = sorted(
            (one for one in others if one.is_waiting and one is not self),
            key=lambda one: one.arrival,
        )
        for oldest in waiting[: max(0, len(self.connections) - most + 1)]:
            self.connections.discard(oldest)
            closed: Transport = oldest.transport
            closed.abort()

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered: the next request's headers have not come yet."""
        return self.cycle is None or self.cycle.response_complete
