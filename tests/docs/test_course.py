"""Every cell of the course runs, in order."""

import re

import pytest
import torch
from helpers import ROOT

CHAPTERS = ("graph", "modules", "functions")
CELL = re.compile(r"^```{code-cell} python\n(.*?)^```$", re.M | re.S)
PRINTED = {
    "graph": ["<MulBackward0 object", "AddBackward0 0", "(None, 0)", "4.", "a second time", "8."],
    "modules": ["was called 0 times", "autograd_function"],
    "functions": ["relu passes", "moments_tap"],
}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_cell_runs(chapter, capsys):
    text = (ROOT / "docs" / "course" / f"{chapter}.md").read_text(encoding="utf-8")
    typed: dict[str, object] = {"__name__": "__main__"}
    with torch.random.fork_rng(devices=[]):
        for cell in CELL.findall(text):
            exec(compile(cell, f"{chapter}.md", "exec"), typed)
    printed = capsys.readouterr().out
    assert [words for words in PRINTED[chapter] if words not in printed] == []


CLINIC = re.compile(
    r"^```{code-cell} python\n:tags: \[remove-output\]\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?",
    re.M | re.S,
)


def test_the_clinic(capsys):
    """Each cell prints the text below it on the page."""
    text = (ROOT / "docs" / "course" / "clinic.md").read_text(encoding="utf-8")
    cells = CLINIC.findall(text)
    assert len(cells) == text.count("{code-cell}") > 20
    typed: dict[str, object] = {"__name__": "__main__"}
    for cell, expected in cells:
        exec(compile(cell, "clinic.md", "exec"), typed)
        assert capsys.readouterr().out == expected, cell
