"""Explain where the gradient goes: `python scripts/explain.py loss_mode=fake_backward`.

Takes the same keys as `scripts/train.py`, watches one evaluation under each loss mode, prints the
graph of the chosen one as a tree and writes `explain.html`, a page that a browser opens offline,
with all three side by side.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from styletransfer.commands.explain.drawing import Map, draw_nodes, rendered
from styletransfer.commands.explain.facts import Group, Study, answers, count, format_bytes
from styletransfer.commands.explain.study import SMALL, small_example, study
from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.job.job import starting_picture
from styletransfer.job.prepare import prepare
from styletransfer.modes import LOSS_MODES
from styletransfer.objective.whole import Objective
from styletransfer.pictures.images import resize
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
    Console().print(draw_tree(studies[0], setting))
    print(folder / "explain.html")


def draw_page(studies: Sequence[Study], setting: str) -> str:
    """Return the page as HTML, complete in itself; `setting` says in a line what was evaluated."""
    nodes, variables = small_example()
    return rendered("page.html", studies=studies, setting=setting, nodes=nodes, variables=variables)


def draw_tree(study: Study, setting: str) -> Tree:
    """Return the passes, the folded trunk with its losses, and what retain_graph=True keeps."""
    tree = Tree(f"[bold]{study.mode}[/]: {escape(setting)}")
    passes = tree.add(
        f"[bold]backward passes[/]: {len(study.passes)}, entering {study.visits} nodes in all"
    )
    for number, one in enumerate(study.passes, start=1):
        passes.add(
            f"{number} [cyan]{one.root}[/]: {count(study.entered(number).total(), 'node')}, "
            f"retain_graph={one.retain_graph}, "
            f"kept {format_bytes(one.held_before)} before, {format_bytes(one.held_after)} after"
        )
    kept = format_bytes(study.kept)
    trunk = tree.add(f"[bold]graph[/]: {len(study.nodes)} nodes, {kept} kept for backward")
    branches = {
        group.name: trunk.add(_line(group, "green" if group.kind == "image" else "blue"))
        for group in study.groups
        if group.kind != "loss"
    }
    for group in study.groups:
        if group.kind == "loss":
            how = "on the trunk" if group.on_trunk else "beside the trunk"
            branches[group.at].add(f"{_line(group, 'magenta')}, {how}")
    called = tree.add("[bold]is a hand-written backward ever called?[/]")
    for scope, answer in answers(study).items():
        called.add(f"[cyan]{scope}[/]: {answer}")
    retention = tree.add("[bold]what the graph keeps alive[/]")
    for done, nbytes in study.retention.items():
        retention.add(f"{done}: {format_bytes(nbytes)}")
    retention.add(f"one backward per loss without it: {escape(study.refusal)}")
    return tree


def _line(group: Group, colour: str) -> str:
    names = ""
    if group.on_trunk and group.kind == "loss":
        names = " (" + ", ".join(node.name for node in group.nodes) + ")"
    nodes = count(len(group.nodes), "node")
    return f"[{colour}]{group.name}[/]: {nodes}{names}, {format_bytes(group.nbytes)}"
