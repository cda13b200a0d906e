"""Run folders made by hand, as `train` leaves them, and pages read, for tests of the gallery."""

import json
from html.parser import HTMLParser
from itertools import product

from helpers import picture

from styletransfer.pictures import images


class Tags(HTMLParser):
    """The tags of a page, in their order, and its text."""

    def __init__(self, page):
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.cdata_elem is None:  # neither style nor script
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.seen if name == tag]

    def values(self, name):
        """Return an attribute of each tag that has it."""
        return [attributes[name] for _, attributes in self.seen if name in attributes]


def make_run(folder, settings, *, total=1.0, seconds=2.0, status="finished", choices=None):
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


def make_sweep(folder):
    """Leave a sweep of two styles and three weights, of which one run is without an end."""
    swept = product(("/a/oil.jpg", "/a/ink.jpg"), (10.0, 0.5, 2.0))
    for number, (style, weight) in enumerate(swept):
        settings = {"style": style, "objective.content_weight": weight, "steps": 3}
        make_run(folder / str(number), settings, total=1.0 + number, seconds=9.0 - number)
