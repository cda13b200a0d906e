"""One evaluation explained: a config and a folder in, a page and figures out."""

from dataclasses import dataclass
from pathlib import Path

from rich.tree import Tree

from styletransfer.commands.explain.facts import Study
from styletransfer.commands.explain.page import draw_example, draw_map, draw_page
from styletransfer.commands.explain.small_example import SmallExample, small_example
from styletransfer.commands.explain.study import study
from styletransfer.commands.explain.tree import draw_comparison, draw_small_tree, draw_tree
from styletransfer.config import StyleTransferConfig
from styletransfer.job.prepare import prepare
from styletransfer.job.schedule import starting_picture
from styletransfer.modes import LOSS_MODES
from styletransfer.objective.whole import Objective
from styletransfer.pictures.images import resize
from styletransfer.system.files import atomic


@dataclass(frozen=True)
class Explanation:
    """What `explain` leaves behind.

    Attributes:
        page: the HTML file, complete in itself.
        studies: one per loss mode, the config's own first.
        example: the small example on the page.
        setting: one line that says what was evaluated.
    """

    page: Path
    studies: tuple[Study, ...]
    example: SmallExample
    setting: str

    def trees(self) -> list[Tree]:
        """Return the same for the terminal: the small example, the evaluation, the other modes."""
        return [
            draw_small_tree(self.example),
            draw_tree(self.studies[0], self.setting),
            draw_comparison(self.studies),
        ]


def explain(config: StyleTransferConfig, folder: Path) -> Explanation:
    """Watch one evaluation at full size under every loss mode and write what was seen.

    Into `folder` go the page explain.html, a map_MODE.svg for each loss mode, and example.svg. The
    picture is the one that a run with this config starts from; no step is made.

    Raises:
        UserError: bad input, before anything is written.
    """
    job = prepare(config)
    pictures = job.pictures_at(config.size)
    start = starting_picture(config, pictures) if job.start is None else job.start
    height, width = pictures.content.shape[2:]
    image = resize(job.on_device(start), (height, width))

    def studied(name: str) -> Study:
        mode = LOSS_MODES[name]
        objective = Objective(job.extractor, mode, job.criterion, pictures)
        return study(name, objective, image)

    own = job.mode.name
    studies = tuple(studied(name) for name in [own, *(n for n in LOSS_MODES if n != own)])
    where = f"{job.precision}, {job.device.type}"
    setting = f"{config.features.name}, {width} x {height} pixels, {where}"
    example = small_example()
    files = {
        "explain.html": draw_page(studies, example, setting),
        **{f"map_{one.mode}.svg": draw_map(one) for one in studies},
        "example.svg": draw_example(example),
    }
    for name, text in files.items():
        with atomic(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return Explanation(folder / "explain.html", studies, example, setting)
