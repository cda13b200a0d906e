"""Helpers for tests of the gallery: fake folders of runs, and a parser of HTML pages."""

import json
from html.parser import HTMLParser
from itertools import product

from helpers import picture

from styletransfer.pictures import images


class Tags(HTMLParser):
    """Parse a page: `seen` holds its tags in order, `text` its text."""

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
        """Return the values of attribute `name` of all tags that have the attribute."""
        return [attributes[name] for _, attributes in self.seen if name in attributes]


def make_run(folder, settings, *, total=1.0, seconds=2.0, status="finished"):
    """Write the folder of a run of three steps whose last total loss is `total`."""
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
    hydra = {"hydra": {"job": {"name": "train"}, "runtime": {"choices": {}}}}
    (folder / ".hydra/hydra.yaml").write_text(json.dumps(hydra))  # JSON is YAML, too
    typed = [f"{key}={value}" for key, value in settings.items()]
    (folder / ".hydra/overrides.yaml").write_text(json.dumps(typed))


def make_sweep(folder):
    """Write a sweep of six finished runs: two styles times three content weights."""
    swept = product(("/a/oil.jpg", "/a/ink.jpg"), (10.0, 0.5, 2.0))
    for number, (style, weight) in enumerate(swept):
        settings = {"style": style, "objective.content_weight": weight, "steps": 3}
        make_run(folder / str(number), settings, total=1.0 + number, seconds=9.0 - number)
