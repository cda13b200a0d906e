"""What the painter is asked for, received by a thread of its own."""

import threading
from collections import deque
from multiprocessing.connection import Connection
from typing import Any


class Orders:
    """What the server has asked for and has not been done yet.

    Attributes:
        over: the pipe has ended: whatever is being painted is to be stopped and kept.
    """

    def __init__(self) -> None:
        self.over = False
        self._runs: deque[dict[str, Any]] = deque()
        self._wishes: deque[dict[str, Any]] = deque()
        self._changed = threading.Condition()

    def listen(self, pipe: Connection) -> None:
        """Receive until the pipe ends, or None comes."""
        try:
            while (message := pipe.recv()) is not None:
                with self._changed:
                    (self._runs if message["type"] == "paint" else self._wishes).append(message)
                    self._changed.notify()
        except (EOFError, OSError):
            pass
        with self._changed:
            self.over = True
            self._changed.notify()

    def next_run(self) -> dict[str, Any] | None:
        """Wait for a run to be asked for; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self.over or self._runs)
            return None if self.over else self._runs.popleft()

    def next_wish(
        self, job: str, *, wait: bool = False, other_runs: bool = True
    ) -> dict[str, Any] | None:
        """Return a wish about a run, or None if there is none, or the pipe has ended.

        Of several steerings in a row only the last one is returned.

        Args:
            job: the run's; what was meant for another one came too late.
            wait: for a wish, or for the end of the pipe.
            other_runs: whether another run that is asked for ends the waiting.
        """
        with self._changed:
            while True:
                while self._wishes:
                    wish = self._wishes.popleft()
                    if wish["job"] == job and not self._is_outdone(wish):
                        return wish
                if self.over or not wait or (other_runs and self._runs):
                    return None
                self._changed.wait()

    def _is_outdone(self, wish: dict[str, Any]) -> bool:
        """Tell whether the next wish steers as this one does."""
        both = [each["type"] for each in (wish, *list(self._wishes)[:1])]
        return both == ["steer", "steer"]
