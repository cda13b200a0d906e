"""Run folders made by hand, as `train` leaves them, and pages read, for tests of the gallery."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from helpers import picture

from styletransfer.pictures import images


class Tags(HTMLParser):
    """The tags of a page, in their order, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is None:  # neither style nor script
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.seen if name == tag]

    def values(self, name: str) -> list[str | None]:
        """Return an attribute of each tag that has it."""
        return [attributes[name] for _, attributes in self.seen if name in attributes]


def make_run(
    folder: Path,
    settings: dict[str, Any],
    *,
    total: float = 1.0,
    seconds: float | None = 2.0,
    status: str = "finished",
    choices: dict[str, Any] | None = None,
) -> None:
    """Leave a run with three steps that ends with a total loss, and with its pastiche."""
    (folder / ".hydra").mkdir(parents=True)
    images.write(folder / "pastiche.png", picture(seed=len(settings)))
    record = {"status": status, "picture": str(folder / "pastiche.png"), "seconds": seconds}
    (folder / "run.json").write_text(json.dumps({**record, "config": settings}))
    lines = [
        {"step": step, "scale": 1 + step // 3, "width": 20, "height": 16}
        | {"total": 5 * loss, "style/relu1_1": 4 * loss, "content/relu2_1": loss}
        for step, loss in ((1, total), (2, total / 2), (3, total / 5))
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    hydra = {"hydra": {"job": {"name": "train"}, "runtime": {"choices": choices or {}}}}
    (folder / ".hydra/hydra.yaml").write_text(json.dumps(hydra))  # JSON is YAML, too
    typed = [f"{key}={value}" for key, value in settings.items()]
    (folder / ".hydra/overrides.yaml").write_text(json.dumps(typed))


def make_sweep(folder: Path) -> None:
    """Leave a sweep of two styles and three weights, of which one run is without an end."""
    for number, (style, weight) in enumerate(
        (style, weight) for style in ("/a/oil.jpg", "/a/ink.jpg") for weight in (10.0, 0.5, 2.0)
    ):
        make_run(
            folder / str(number),
            {"style": style, "objective.content_weight": weight, "steps": 3},
            total=1.0 + number,
            seconds=9.0 - number,
        )
