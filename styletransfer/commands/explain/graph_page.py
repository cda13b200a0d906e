"""Lays one study out as a page that a browser opens offline: everything is inside the one file."""

from html import escape
from string import Template

from styletransfer.commands.explain.facts import Group, NodeFacts, Study
from styletransfer.commands.explain.graph_svg import draw_map, format_bytes, pass_colour
from styletransfer.commands.explain.lane_svg import draw_lanes
from styletransfer.commands.explain.page_template import PAGE
from styletransfer.commands.explain.small_example import CODE, SmallExample

LESSONS = {
    "fake_backward": (
        "Each loss module has a method called <code>backward</code>, and the driver calls them one "
        "after another. Autograd has no idea that these methods exist: none is a node below. Every "
        "call starts a pass of its own from its loss down to the image, so block 1 is walked once "
        "for every loss, and <code>retain_graph=True</code> keeps all memory for the next one."
    ),
    "loss_attribute": (
        "Each loss module keeps its loss in an attribute. The driver adds the weighted losses up "
        "and calls <code>total.backward()</code> once: gradients meet where the losses hang on the "
        "trunk, every node is entered once, and each frees its memory as the pass leaves it."
    ),
    "autograd_function": (
        "Each loss module is a <code>torch.autograd.Function</code>, so its hand-written backward "
        "is a node of the trunk itself: the features' gradient runs through it and leaves with the "
        "loss's own gradient added. One node stands where autograd would keep a whole subgraph."
    ),
}


def draw_page(study: Study, example: SmallExample, setting: str) -> str:
    """Return the page as HTML.

    Args:
        study: of one evaluation.
        example: the small one, for the head of the page.
        setting: one line that says what was evaluated.
    """
    return Template(PAGE).substitute(
        mode=escape(study.mode),
        setting=escape(setting),
        lesson=LESSONS.get(study.mode, ""),
        cards="".join(_card(*card) for card in _cards(study)),
        map=draw_map(study),
        answer=escape(answer(study)),
        groups=_groups(study),
        passes=_passes(study),
        retention=_retention(study),
        code=escape(CODE),
        example=draw_lanes(example.nodes, width=560),
        visits=example.visits,
        variables="".join(
            f"<tr><td><code>{one.name}</code></td><td>{one.value:g}</td>"
            f"<td><b>{'None' if one.grad is None else f'{one.grad:g}'}</b></td>"
            f"<td>{escape(one.why)}</td></tr>"
            for one in example.variables
        ),
    )


def answer(study: Study) -> str:
    """Return one sentence on whether autograd runs a backward that a person wrote."""
    if study.functions:
        names = ", ".join(f"{count} {name}" for name, count in study.functions.items())
        return f"Yes: {names} are among the nodes."
    if study.methods:
        return (
            f"No: {' and '.join(study.methods)} are ordinary methods. The driver entered them "
            f"{study.entered_by_driver} times, autograd {study.entered_by_autograd} times."
        )
    return "There is none: every backward here is autograd's own."


def describe_retention(study: Study) -> list[tuple[str, str]]:
    """Return what was done -> what the graph then kept alive."""
    kept = study.retention
    refused = "works: nothing that one pass frees is needed by another"
    if kept.second_pass:
        refused = f"torch refuses: {kept.second_pass[0].lower()}{kept.second_pass[1:]}"
    return [
        ("after forward", format_bytes(kept.before)),
        ("after one backward with retain_graph=True", format_bytes(kept.retained)),
        ("after one backward without it", format_bytes(kept.freed)),
        ("one backward per loss without it", refused),
    ]


def _cards(study: Study) -> list[tuple[str, str]]:
    return [
        (str(len(study.passes)), "backward passes per evaluation"),
        (str(len(study.nodes)), "nodes in the graph"),
        (str(study.visits), "nodes entered, all passes together"),
        (format_bytes(study.kept), "kept for backward by the graph alone"),
        (format_bytes(study.passes[-1].held_after), "still kept after the last pass"),
        (str(sum(study.functions.values())), "nodes with a loss's hand-written backward"),
    ]


def _card(value: str, label: str) -> str:
    return f'<div class="card"><b>{escape(value)}</b><span>{escape(label)}</span></div>'


def _passes(study: Study) -> str:
    rows = [
        f'<tr><td><i style="background:{pass_colour(number)}"></i>{number}</td>'
        f"<td><code>{escape(one.root)}</code></td><td>{one.retain_graph}</td><td>{one.nodes}</td>"
        f"<td>{format_bytes(one.held_before)}</td><td>{format_bytes(one.held_after)}</td></tr>"
        for number, one in enumerate(study.passes, start=1)
    ]
    return "".join(rows)


def _retention(study: Study) -> str:
    most = study.retention.before or 1
    sizes = (study.retention.before, study.retention.retained, study.retention.freed)
    bars = [f'<div class="bar" style="width:{100 * size / most:.1f}%"></div>' for size in sizes]
    return "".join(
        f"<tr><td>{escape(done)}</td><td>{escape(kept)}</td><td>{bar}</td></tr>"
        for (done, kept), bar in zip(describe_retention(study), [*bars, ""], strict=True)
    )


def _groups(study: Study) -> str:
    """One `<details>` per group; unfolded, it shows every node."""
    home = {node.index: (node, group) for group in study.groups for node in group.nodes}
    owners: dict[int, NodeFacts] = {}
    for group in study.groups:
        for node in reversed(group.nodes):
            for one in node.kept:
                owners.setdefault(one.storage, node)
    most = max(group.nbytes for group in study.groups) or 1
    return "".join(_details(study, group, home, owners, most) for group in study.groups)


def _details(
    study: Study,
    group: Group,
    home: dict[int, tuple[NodeFacts, Group]],
    owners: dict[int, NodeFacts],
    most: int,
) -> str:
    drawn = {node.index: home[node.index] for node in group.nodes}
    for node in group.nodes:
        drawn |= {index: home[index] for index in node.follows}
    outside = {
        index: (node, f"{node.name}, in {other.name}")
        for index, (node, other) in drawn.items()
        if other is not group
    }
    came: dict[int, dict[str, None]] = {}
    for begin, (node, other) in home.items():
        for index in node.follows:
            if begin not in drawn and index in drawn and index not in outside:
                came.setdefault(index, {})[other.name] = None
    entered = {index: f"from {', '.join(names)}" for index, names in came.items()}
    lanes = draw_lanes(
        group.nodes, outside=outside, entered_from=entered, lent=study.lent, owners=owners
    )
    passes = sorted({number for node in group.nodes for number in node.passes})
    dots = "".join(
        f'<i title="pass {number}" style="background:{pass_colour(number)}"></i>'
        for number in passes
    )
    count = f"{len(group.nodes)} node{'' if len(group.nodes) == 1 else 's'}"
    return (
        f'<details id="{escape(group.name)}" class="{group.kind}"><summary>'
        f"<b>{escape(group.name)}</b><span>{count}</span>"
        f"<span>{format_bytes(group.nbytes)}</span>"
        f'<span class="track"><span class="bar" style="width:{100 * group.nbytes / most:.1f}%">'
        f'</span></span><span class="dots">{dots}</span></summary>{lanes}</details>\n'
    )
