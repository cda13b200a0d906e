"""Reads the next picture of a folder, and writes the last ones, while another one is painted."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self, TypeVar

from styletransfer.errors import UserError

T = TypeVar("T")
R = TypeVar("R")

# Largest number of pictures that are being written, or wait for it. A PNG is written more slowly
# than a GPU paints it.
WRITERS = 2


def ahead(read: Callable[[T], R], items: Iterable[T]) -> Generator[tuple[T, Future[R]]]:
    """Yield (item, future of `read(item)`); a thread reads the next item meanwhile."""
    with ThreadPoolExecutor(1) as thread:
        waiting = deque[tuple[T, Future[R]]]()
        for item in items:
            waiting.append((item, thread.submit(read, item)))
            if len(waiting) > 1:
                yield waiting.popleft()
        yield from waiting


class Writers:
    """Writers call functions in threads, and tell their UserErrors in the order of the calls.

    Leaving the `with` block waits for all of them.
    """

    def __init__(self, tell: Callable[[UserError], None]) -> None:
        self._tell, self._waiting = tell, deque[Future[None]]()
        self._threads = ThreadPoolExecutor(WRITERS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._threads:
            if kind is None:
                self.settle()

    def call(self, write: Callable[[], None]) -> None:
        """Call `write` in a thread, once fewer than WRITERS calls are unfinished."""
        self.settle(WRITERS - 1)
        self._waiting.append(self._threads.submit(write))

    def settle(self, left: int = 0) -> None:
        """Wait until at most `left` calls are unfinished."""
        while len(self._waiting) > left:
            try:
                self._waiting.popleft().result()
            except UserError as error:
                self._tell(error)
