"""Two pictures at a time without their names, to see which of two settings people prefer."""

from collections.abc import Sequence
from itertools import combinations

from styletransfer.commands.gallery.cards import LARGEST, make_preview
from styletransfer.commands.gallery.found import Axis, FoundRun
from styletransfer.errors import UserError


def pairs(runs: Sequence[FoundRun], varied: Sequence[Axis], key: str) -> list[dict[str, object]]:
    """Return the pairs of runs that differ in `key` alone, of all that was varied.

    Each has the `names` of both values and their `pictures`, data URIs (UserError: there is none,
    or a picture that cannot be read).
    """
    judged = next((axis for axis in varied if axis.key == key), None)
    if judged is None:
        names = ", ".join(axis.key for axis in varied) or "nothing"
        raise UserError(f"blind={key} does not differ between these runs; {names} does")
    others = [axis for axis in varied if axis is not judged]
    found = [
        pair
        for pair in combinations([n for n, run in enumerate(runs) if run.picture], 2)
        if len({judged.values[n] for n in pair}) == 2
        and not any(len({axis.values[n] for n in pair}) == 2 for axis in others)
    ]
    if not found:
        raise UserError(f"no two pictures differ in {key} alone; sweep it: {key}=ONE,OTHER")
    seen = sorted({n for pair in found for n in pair})
    made = {n: make_preview(path, LARGEST).uri for n in seen if (path := runs[n].picture)}
    return [
        {"names": [judged.values[n] for n in pair], "pictures": [made[n] for n in pair]}
        for pair in found
    ]
