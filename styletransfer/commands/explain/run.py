"""One evaluation explained: a config and a folder in, a page and a figure out."""

from dataclasses import dataclass
from pathlib import Path

import torch
from rich.tree import Tree

from styletransfer.commands.explain.facts import Study
from styletransfer.commands.explain.graph_page import draw_page
from styletransfer.commands.explain.graph_svg import draw_map
from styletransfer.commands.explain.graph_tree import draw_small_tree, draw_tree
from styletransfer.commands.explain.lane_svg import draw_lanes
from styletransfer.commands.explain.small_example import SmallExample, small_example
from styletransfer.commands.explain.study import study
from styletransfer.config import StyleTransferConfig
from styletransfer.objective.whole import Objective
from styletransfer.optimize.job import prepare
from styletransfer.optimize.schedule import starting_picture
from styletransfer.pictures.images import resize
from styletransfer.system.files import atomic


@dataclass(frozen=True)
class Explanation:
    """What `explain` leaves behind.

    Attributes:
        page: the HTML file, complete in itself.
        study: the facts on it.
        example: the small example on it.
        setting: one line that says what was evaluated.
    """

    page: Path
    study: Study
    example: SmallExample
    setting: str

    def trees(self) -> list[Tree]:
        """Return the same for the terminal: the small example, then the evaluation."""
        return [draw_small_tree(self.example), draw_tree(self.study, self.setting)]


def explain(config: StyleTransferConfig, folder: Path) -> Explanation:
    """Watch one evaluation at full size and write what was seen into `folder`.

    `explain.html` is the page, `map.svg` and `example.svg` its figures. The picture is the one
    that a run with this config starts from; no step is made.

    Raises:
        UserError: bad input, before anything is written.
    """
    job = prepare(config)
    device, network = next(job.extractor.parameters()).device, job.extractor.dtype
    # As in a run: the picture is at least float32.
    content, style = (
        picture.to(device, torch.promote_types(network, torch.float32))
        for picture in (job.content, job.style)
    )
    objective = Objective(job.extractor, job.mode, config.objective, content, style)
    start = starting_picture(config, content, style) if job.start is None else job.start
    image = resize(start.to(content), (content.shape[2], content.shape[3]))
    seen, example = study(objective, image), small_example()
    height, width = image.shape[2:]
    precision = str(network).removeprefix("torch.")
    setting = f"{config.features.name}, {width} x {height} pixels, {precision}, {device.type}"
    files = {
        "explain.html": draw_page(seen, example, setting),
        "map.svg": draw_map(seen),
        "example.svg": draw_lanes(example.nodes, width=560),
    }
    for name, text in files.items():
        with atomic(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return Explanation(folder / "explain.html", seen, example, setting)
