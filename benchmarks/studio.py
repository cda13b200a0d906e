"""Measure how quick the studio is: `python benchmarks/studio.py`. Needs the extra [studio].

The script starts the studio, waits, and acts as the page does: it presses paint, moves a slider,
and reads the previews. Then it paints one picture with the studio and without a page, in turn.
"""

import argparse
import http.client
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import torch
from websockets.sync.client import ClientConnection, connect

from styletransfer.job.prepare import prepare
from styletransfer.optimize import Run
from styletransfer.runs.recording import recorded
from styletransfer.settings import ASSETS, TrainConfig


class Page:
    """A Page sends the requests of the studio's page to the printed address, without a browser."""

    def __init__(self, address: str) -> None:
        match = re.fullmatch(r"http://([\d.]+:\d+)(/\?token=.*)", address)
        assert match is not None
        self.host = match[1]
        self.headers = {"Origin": f"http://{self.host}"}
        self.headers["Cookie"] = self.ask("GET", match[2]).headers["set-cookie"].partition(";")[0]

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        """Send JSON as a button of the page does; return the answer (SystemExit if it fails)."""
        answer = self.ask("POST", path, json.dumps(body))
        content: dict[str, Any] = json.loads(answer.read())
        if answer.status >= 300:
            raise SystemExit(f"error: {content['error']}")
        return content

    @contextmanager
    def watched(self) -> Iterator[ClientConnection]:
        """Open the page's websocket."""
        address = f"ws://{self.host}/live"
        with connect(address, origin=None, additional_headers=self.headers) as socket:
            yield socket

    def ask(
        self, method: str, path: str, body: str | bytes | None = None
    ) -> http.client.HTTPResponse:
        """Send a request and return its answer."""
        connection = http.client.HTTPConnection(self.host)
        connection.request(method, path, body, self.headers)
        return connection.getresponse()


@contextmanager
def opened(folder: Path) -> Iterator[tuple[Page, psutil.Process]]:
    """Start a studio in `folder`; yield its page and process; end the studio afterwards."""
    command = [sys.executable, "-m", "styletransfer", "studio", "open=false"]
    command.append(f"hydra.run.dir={folder}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as studio:
        try:
            assert studio.stdout is not None
            address = studio.stdout.readline().split()[-1]
            yield Page(address), psutil.Process(studio.pid)
        finally:
            studio.send_signal(signal.SIGTERM)


def used(studio: psutil.Process) -> float:
    """Return the seconds of processor time that the studio and its child processes have used."""
    family = [studio, *studio.children(recursive=True)]
    return sum(sum(one.cpu_times()[:2]) for one in family)


def until(socket: ClientConnection, wanted: Callable[[Any], bool]) -> Any:
    """Return the first message for which `wanted` is true: bytes for a picture, else a dict."""
    while True:
        message = socket.recv(timeout=600)
        seen = message if isinstance(message, bytes) else json.loads(message)
        if wanted(seen):
            return seen


def is_preview(message: Any) -> bool:
    """Return whether a message of the WebSocket is a preview picture."""
    return isinstance(message, bytes)


def state_with(wanted: Callable[[dict[str, Any]], bool]) -> Callable[[Any], bool]:
    """Return a function that tells whether `wanted` is true for the current run in a message."""
    return lambda message: (
        isinstance(message, dict)
        and message["type"] == "state"
        and message["current"] is not None
        and wanted(message["current"])
    )


def moved(page: Page, settings: dict[str, Any]) -> tuple[float, float]:
    """Press paint; at the last scale, move a slider; return the seconds from both to a preview."""
    with page.watched() as socket:
        began = time.perf_counter()
        id = page.post("/api/queue", settings=settings)["id"]
        until(socket, is_preview)
        first = time.perf_counter() - began
        until(socket, lambda seen: not is_preview(seen) and seen.get("scale") == seen.get("scales"))
        began = time.perf_counter()
        other = settings | {"objective.content_weight": 0.5}
        page.post(f"/api/queue/{id}/steer", settings=other)
        until(socket, state_with(lambda run: run["is_steered"]))
        until(socket, is_preview)
        second = time.perf_counter() - began
        page.post(f"/api/queue/{id}/stop")
        until(socket, state_with(lambda run: run["status"] == "stopped"))
    return first, second


def looked(page: Page, style: str) -> float:
    """Request the quick preview in the style with the id `style`; return the seconds it takes."""
    began = time.perf_counter()
    asked = quote(json.dumps({"content": "content-coffee", "style": [style]}))
    answer = page.ask("GET", f"/api/look?settings={asked}")
    if answer.status != 200 or not answer.read():
        raise SystemExit(f"error: the look was refused with {answer.status}")
    return time.perf_counter() - began


def by_page(page: Page, settings: dict[str, Any]) -> tuple[int, float]:
    """Paint in the studio; return an early step and the seconds from that step to the end."""
    with page.watched() as socket:
        page.post("/api/queue", settings=settings)
        step = until(socket, lambda seen: not is_preview(seen) and seen.get("step", 0) > 1)["step"]
        began = time.perf_counter()
        until(socket, state_with(lambda run: run["status"] == "finished"))
        return step, time.perf_counter() - began


def alone(size: int, steps: int, step: int) -> float:
    """Paint without a page; return the seconds from step number `step` to the end."""
    times: dict[int, float] = {}

    config = TrainConfig(size=size, steps=steps)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(prepare(config))
        with recorded(run, config, Path(folder) / "run") as record:
            for made in run:
                record(made)
                times[made.step] = time.perf_counter()
        return time.perf_counter() - times[step]


def main() -> None:
    """Measure the studio and print a Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=512, help="longer side in pixels")
    parser.add_argument("--steps", type=int, default=100, help="of the pictures with and without")
    parser.add_argument("--rounds", type=int, default=3, help="pictures of each kind")
    parser.add_argument("--loading", type=float, default=20, help="seconds until it rests")
    parser.add_argument("--rest", type=float, default=10, help="seconds of rest")
    options = parser.parse_args()
    settings = {"size": options.size, "steps": options.steps}
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as (page, studio):
        time.sleep(options.loading)
        before = used(studio)
        time.sleep(options.rest)
        idle = (used(studio) - before) / options.rest
        known = min(looked(page, "style-oil") for _ in range(4))  # the first loads the photograph
        painting = (ASSETS / "content" / "chelsea.jpg").read_bytes()
        added = page.ask("POST", "/api/pictures?name=new.jpg", painting)
        new = looked(page, json.loads(added.read())["id"])
        quick = [moved(page, settings) for _ in range(options.rounds)]
        both = []
        for _ in range(options.rounds):
            step, seconds = by_page(page, settings)
            both.append((seconds, alone(options.size, options.steps, step)))
        server = studio.memory_full_info().uss / 1e6
    first, steered = (statistics.median(times) for times in zip(*quick, strict=True))
    ratio = statistics.median(painted / plain for painted, plain in both)
    print(f"{options.size} pixels, median of {options.rounds}, {torch.get_num_threads()} threads\n")
    print("| | |\n|---|---:|")
    print(f"| from pressing paint to the first preview | {first:.2f} s |")
    print(f"| from moving a slider to a preview of it, finest scale | {steered:.2f} s |")
    print(f"| time of a run with a page over that without, {options.steps} steps | {ratio:.3f} |")
    print(f"| first look in a style that is added, in a bundled one | {new:.2f}, {known:.2f} s |")
    print(f"| memory of the server | {server:.0f} MB |")
    print(f"| processor time at rest, share of a core | {100 * idle:.2f} % |")
    pairs = ", ".join(f"{painted:.1f} / {plain:.1f}" for painted, plain in both)
    print(f"\nSeconds with and without a page, in turn: {pairs}")


if __name__ == "__main__":
    main()
