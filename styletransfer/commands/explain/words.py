"""The sentences on one study, each made from its numbers; page, map and tree say the same."""

from styletransfer.commands.explain.facts import Group, Study


def format_bytes(nbytes: int) -> str:
    """Return bytes in the largest binary unit that leaves at least 1, such as "12.3 MiB"."""
    size, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1000:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"


def count(number: int, one: str, more: str = "") -> str:
    """Return "1 node", "2 nodes"; `more` is the plural if it is not made with an s."""
    return f"{number} {one if number == 1 else more or one + 's'}"


def answers(study: Study) -> list[tuple[str, str]]:
    """Return scope -> whether autograd enters a backward there that a person wrote.

    The scopes are the losses, which the loss mode is about, and the trunk, the network's own
    layers: there the mode changes nothing.
    """
    return [("In the losses", _in_losses(study)), ("In the trunk", _in_trunk(study))]


def _in_losses(study: Study) -> str:
    if written := _written(study, "loss"):
        return f"Yes: {written}."
    if study.methods:
        entered = study.entered_by_autograd
        return (
            f"{'Yes' if entered else 'No'}: {' and '.join(study.methods)} are ordinary methods, "
            f"no nodes. The driver entered them {count(study.entered_by_driver, 'time')}, "
            f"autograd {count(entered, 'time')}."
        )
    return "No: there is none. The losses' nodes run autograd's own formulas."


def _in_trunk(study: Study) -> str:
    if written := _written(study, "trunk"):
        return f"Yes, whatever the loss mode: {written}. They belong to the network's own layers."
    return "No: there is none. The trunk's nodes run autograd's own formulas."


def _written(study: Study, kind: str) -> str:
    """Say which hand-written backwards the groups of one kind have, "" if none."""
    written = study.written(kind)
    if not written:
        return ""
    names = ", ".join(f"{one.nodes} {one.name}" for one in written)
    entered = count(sum(one.entered for one in written), "time")
    return f"{names} among the nodes, entered {entered}"


def summarise(study: Study) -> list[str]:
    """Return three lines for the foot of the map: size, and both answers."""
    last = study.passes[-1].held_after
    after = f"{format_bytes(last)} still kept afterwards" if last else "all freed afterwards"
    size = (
        f"{count(len(study.nodes), 'node')}, entered {count(study.visits, 'time')}; "
        f"{format_bytes(study.kept)} kept for backward, {after}"
    )
    methods = f" ({' and '.join(study.methods)}: ordinary methods)" if study.methods else ""
    losses, trunk = (_written(study, kind) or "none" for kind in ("loss", "trunk"))
    return [
        size,
        f"The losses' hand-written backwards: {losses}{methods}",
        f"The trunk's hand-written backwards: {trunk}",
    ]


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


def figures(study: Study) -> list[tuple[str, str]]:
    """Return the numbers by which the modes are compared: value -> what it counts."""
    losses, trunk = (sum(one.entered for one in study.written(kind)) for kind in ("loss", "trunk"))
    return [
        (str(len(study.passes)), f"backward {'pass' if len(study.passes) == 1 else 'passes'}"),
        (str(len(study.nodes)), "nodes in the graph"),
        (str(study.visits), "nodes entered, all passes together"),
        (format_bytes(study.kept), "kept for backward by the graph alone"),
        (format_bytes(study.passes[-1].held_after), "still kept after the last pass"),
        (str(losses), "times autograd entered a loss's hand-written backward"),
        (str(trunk), "times it entered one of the trunk's"),
    ]


def where_entered(group: Group) -> list[int]:
    """Return the passes that entered a group, counted from 1."""
    return sorted({number for node in group.nodes for number in node.passes})
