"""docs/course/matrix.md: the table shows the behaviour of the installed torch."""

import re

import pytest
import torch
from helpers import ROOT
from torch.autograd import gradcheck

from styletransfer.lessons.matrix import ASKED, WAYS, cell, square

PAGE = (ROOT / "docs" / "course" / "matrix.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+) \|$", PAGE, re.M)[1:]
ERRORS = dict(re.findall(r"^(\d)\. `(.+)`$", PAGE, re.M))
COMPILED = [asked for asked in ASKED if "compile" in asked]


def test_the_page_has_every_row_and_column():
    head = re.search(r"^\| \| (.+) \|$", PAGE, re.M)
    assert head is not None
    assert head[1].split(" | ") == list(WAYS)
    assert [row.split(" | ")[0] for row in ROWS] == list(ASKED)


@pytest.mark.parametrize(
    "asked",
    [pytest.param(asked, marks=[pytest.mark.slow] * (asked in COMPILED)) for asked in ASKED],
)
def test_the_matrix_is_what_torch_does(asked):
    (row,) = (row.split(" | ")[1:] for row in ROWS if row.split(" | ")[0] == asked)
    found = [cell(way, asked) for way in WAYS]
    if torch.__version__.startswith("2.14."):  # matrix.md quotes the errors of torch 2.14
        row = [ERRORS[word.split()[1]] if word.startswith("error") else word for word in row]
    else:
        found = ["error" if "Error: " in word else word for word in found]
        row = [word.split()[0] for word in row]
    assert found == row, torch.__version__


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_opcheck_does_not_find_a_wrong_derivative():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert set(torch.library.opcheck(square, (x,)).values()) == {"SUCCESS"}
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(square, x)
