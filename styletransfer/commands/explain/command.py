"""Explain where the gradient goes: `python scripts/explain.py loss_mode=fake_backward`.

Takes the same keys as `scripts/train.py`, watches one evaluation under each loss mode, says what
the chosen one does and writes `explain.html`, a page that a browser opens offline, with all three.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from styletransfer.commands.explain.drawing import Map, draw_nodes, rendered
from styletransfer.commands.explain.facts import Study, summary
from styletransfer.commands.explain.study import SMALL, small_example, study
from styletransfer.errors import UserError
from styletransfer.job.job import starting_picture
from styletransfer.job.prepare import prepare
from styletransfer.losses import LOSS_MODES
from styletransfer.objective.whole import Objective
from styletransfer.pictures.images import resize
from styletransfer.settings import TrainConfig
from styletransfer.system.files import atomic

logger = logging.getLogger(__name__)


def main(config: TrainConfig, folder: Path) -> None:
    """Watch one evaluation per loss mode, and show the config's own (UserError: bad input).

    The picture is the one that a run starts from; beside the page go map_MODE.svg and example.svg.
    """
    if config.dry_run:
        raise UserError("explain has no dry run; leave dry_run=true out")
    if config.resume is not None:  # its folder is that of another run
        raise UserError(f"explain does not go on with a run; leave resume={config.resume} out")
    if config.output is not None:
        logger.warning("explain paints nothing: there will be no output=%s", config.output)
    job = prepare(replace(config, output=None))
    pictures = job.pictures_at(config.size)
    start = starting_picture(config, pictures) if job.start is None else job.start
    height, width = pictures.content.shape[2:]
    image = resize(job.on_device(start), (height, width))
    # The config's own loss mode comes first.
    modes = sorted(LOSS_MODES.values(), key=lambda mode: mode is not job.mode)
    studies = [
        study(mode.name, Objective(job.extractor, mode, job.criterion, pictures), image)
        for mode in modes
    ]
    where = f"{job.precision}, {job.device.type}"
    setting = f"{config.features.name}, {width} x {height} pixels, {where}"
    nodes, _ = small_example()
    files = {f"map_{one.mode}.svg": Map(one).draw(alone=True) for one in studies}
    files["example.svg"] = draw_nodes(nodes, SMALL, alone=True)
    files["explain.html"] = draw_page(studies, setting)
    for name, text in files.items():
        with atomic(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    print(f"{studies[0].mode}: {setting}", *summary(studies[0]), folder / "explain.html", sep="\n")


def draw_page(studies: Sequence[Study], setting: str) -> str:
    """Return the page as HTML, complete in itself; `setting` says in a line what was evaluated."""
    nodes, variables = small_example()
    return rendered("page.html", studies=studies, setting=setting, nodes=nodes, variables=variables)
