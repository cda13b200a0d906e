"""The server's connections: if there are MOST, a new connection closes an old idle one."""

from asyncio import Transport
from itertools import count
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# Largest number of connections at the same time. Connections with a request in progress stay open,
# even if there are more of them.
MOST = 256
_ARRIVALS = count()


class PatientConnection(H11Protocol):
    """A PatientConnection without a request in progress may be closed to make room for a new one.

    If there are MOST connections, the oldest idle one is closed; a browser opens it again. Clients
    without the token are answered at once, so they cannot keep connections busy. uvicorn's own
    limit, `limit_concurrency`, counts requests before anybody has looked at their token, and then
    refuses those that come next, so it is not used.
    """

    def connection_made(self, transport: Any) -> None:
        """Accept a new connection; if there are too many, close the oldest idle ones."""
        super().connection_made(transport)
        self.arrival = next(_ARRIVALS)
        others = [one for one in self.connections if isinstance(one, PatientConnection)]
        waiting = sorted(
            (one for one in others if one.is_waiting and one is not self),
            key=lambda one: one.arrival,
        )
        for oldest in waiting[: max(0, len(self.connections) - MOST + 1)]:
            self.connections.discard(oldest)
            closed: Transport = oldest.transport
            closed.abort()

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered: the next request's headers have not come yet."""
        return self.cycle is None or self.cycle.response_complete
