"""Reads the next picture or frame, and writes the last ones, while another one is painted.

Only the main thread paints: it waits for the others where their results or errors have their turn.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self, TypeVar

from styletransfer.errors import UserError

T = TypeVar("T")
R = TypeVar("R")

# Largest number of pictures or frames that are being written, or wait for it.
LARGEST = 2


def ahead(read: Callable[[T], R], items: Iterable[T]) -> Generator[tuple[T, Future[R]]]:
    """Yield (item, future of `read(item)`); meanwhile a thread reads the next item."""
    with ThreadPoolExecutor(1) as thread:
        waiting = deque[tuple[T, Future[R]]]()
        for item in items:
            waiting.append((item, thread.submit(read, item)))
            if len(waiting) > 1:
                yield waiting.popleft()
        yield from waiting


class Writing:
    """A Writing calls functions in `threads` threads, and tells UserErrors in the order of calls.

    `tell` gets each of them, in the main thread. Leaving the `with` block waits for all calls.
    """

    def __init__(self, tell: Callable[[UserError], object], threads: int = LARGEST) -> None:
        self._tell, self._waiting = tell, deque[Future[None]]()
        self._threads = ThreadPoolExecutor(threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._threads:
            if kind is None:
                self.settle()

    def call(self, write: Callable[[], None]) -> None:
        """Call `write` in a thread, once fewer than LARGEST calls are unfinished."""
        self.settle(LARGEST - 1)
        self._waiting.append(self._threads.submit(write))

    def settle(self, left: int = 0) -> None:
        """Wait until at most `left` calls are unfinished, and tell the errors of the others."""
        while len(self._waiting) > left:
            try:
                self._waiting.popleft().result()
            except UserError as error:
                self._tell(error)
