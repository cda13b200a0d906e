"""The server's connections: one that waits for a request gives way to a new one."""

from asyncio import Transport
from itertools import count
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_ARRIVALS = count()


class PatientConnection(H11Protocol):
    """A PatientConnection is closed when the server is full and no request of it is answered.

    Whoever lacks the token is answered at once, so that nobody can hold places with requests that
    never end. Of several, the oldest gives way. A browser opens a closed connection anew.
    """

    def connection_made(self, transport: Any) -> None:
        """Take a new connection; if there are too many, close the oldest that waits."""
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
        """Whether no request is being answered: the head of the next one has not come."""
        return self.cycle is None or self.cycle.response_complete
