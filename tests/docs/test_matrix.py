"""docs/course/matrix.md: the table shows the behaviour of the installed torch."""

import re
import runpy
import shutil

import pytest
import torch
from helpers import ROOT
from torch.autograd import gradcheck

PAGE = (ROOT / "docs" / "course" / "matrix.md").read_text(encoding="utf-8")
TABLE, OTHERS = (
    [[word.strip() for word in row.split("|")] for row in re.findall(r"^\|( .+)\|$", part, re.M)]
    for part in PAGE.split("<summary>Other versions")
)
CELLS = re.findall(r"^```\{code-cell\} python\n(.*?)^```$", PAGE, re.M | re.S)
PROGRAM: dict = {"__name__": "matrix"}  # that of the page, without its first and its last cell
exec("import torch\nfrom torch.func import jacfwd\n" + "\n".join(CELLS[1:-1]), PROGRAM)
ASKED, WAYS, cell, square = (PROGRAM[name] for name in ("ASKED", "WAYS", "cell", "square"))
ERRORS = dict(re.findall(r"^(\d)\. `(.+)`$", PAGE, re.M))
COMPILED = [asked for asked in ASKED if "compile" in asked]


def test_the_chinese_page_has_the_same_tables():
    """Each cell, each errors' words, and what stands as code in the names of rows and columns."""
    chinese = (ROOT / "docs" / "zh" / "matrix.md").read_text(encoding="utf-8")
    words = {"你的": "ours", "forward 的": "forward's", "错误": "error"}
    rows = [line.strip("|").split("|") for line in re.findall(r"^\|( .+)\|$", chinese, re.M)]
    for (name, *cells), (wanted, *others) in zip(rows, TABLE + OTHERS, strict=True):
        assert sorted(re.findall("`.+?`", name)) == sorted(re.findall("`.+?`", wanted))
        is_heading = not wanted
        for cell, other in zip(cells, others, strict=True):
            for each, word in words.items():
                cell = cell.replace(each, word)
            code = "`.+`" if is_heading else ".+"
            assert re.findall(code, cell.strip()) == re.findall(code, other)
    assert re.findall(r"^\d\. `.+`$", chinese, re.M) == re.findall(r"^\d\. `.+`$", PAGE, re.M)


@pytest.mark.parametrize(
    "asked",
    [pytest.param(asked, marks=[pytest.mark.slow] * (asked in COMPILED)) for asked in ASKED],
)
def test_the_matrix_is_what_torch_does(asked):
    """Between the versions of the page a cell may be that of any of them."""
    (_, *versions), *others = OTHERS
    version = torch.__version__[:4]
    assert [TABLE[0], len(TABLE)] == [["", *WAYS], len(ASKED) + 1]
    (row,) = (row[1:] for row in TABLE if row[0] == asked)
    allowed = {way: [word.strip("*")] for way, word in zip(WAYS, row, strict=True)}
    for name, *words in others:
        call, _, way = name.partition(": ")
        if call == asked:
            allowed[way] = [words[versions.index(version)]] if version in versions else words
    for way, words in allowed.items():
        found = cell(way, asked)
        if version in versions:  # the page quotes the errors of these
            words = [ERRORS.get(word.removeprefix("error "), word) for word in words]
        elif "Error: " in found:
            found, words = "error", [word.split()[0] for word in words]
        assert found in words, (torch.__version__, way)


def test_a_star_marks_the_cells_that_versions_differ_in():
    starred = {
        f"{asked}: {way}"
        for asked, *words in TABLE[1:]
        for way, word in zip(WAYS, words, strict=True)
        if word.endswith("*")
    }
    assert starred == {name for name, *_ in OTHERS[1:]}


def test_the_last_cell_prints_rows_of_the_table(capsys):
    rows = [row for row in TABLE if row[0] in ("`backward()`", "`func.grad`")]
    exec(CELLS[-1], PROGRAM | {"ASKED": {row[0]: ASKED[row[0]] for row in rows}})
    _, _, *lines = capsys.readouterr().out.splitlines()
    assert [re.split("  +", line.strip()) for line in lines[: len(rows)]] == rows
    assert lines[-1] == f"1. {ERRORS['1']}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # 2.11's
def test_a_compiled_jacfwd_calls_no_jvp(tmp_path, capsys):
    """The program of the page prints what stands below it."""
    ((program, printed),) = re.findall(
        r"^```\{code-cell\} python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.M | re.S
    )
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    runpy.run_path(str(tmp_path / "program.py"), run_name="program")
    assert capsys.readouterr().out == printed


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("c++"), reason="inductor needs a compiler")
@pytest.mark.parametrize("asked", COMPILED[::3])  # `backward` and `func.jacfwd`; each takes long
def test_inductor_takes_the_same_derivatives(asked, monkeypatch):
    wanted = [cell(way, asked) for way in WAYS]
    monkeypatch.setitem(PROGRAM, "compiled", lambda f: torch.compile(f, backend="inductor"))
    assert [cell(way, asked) for way in WAYS] == wanted


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_a_compiled_function_can_lose_a_tensor_hook():
    received = []

    def divided(x):
        y = x.square()
        loss = y.sum()
        torch._dynamo.graph_break()
        y.register_hook(received.append)
        return loss

    for function in (divided, torch.compile(divided, backend="aot_eager")):
        function(torch.tensor([1.0, 2.0], requires_grad=True)).backward()
    assert received[0].tolist() == [1.0, 1.0]
    assert received[1:] == [None]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_a_compiled_hook_can_receive_a_part_of_the_gradient():
    received = []

    def divided(x):
        y = x.square()
        before = 3 * y
        torch._dynamo.graph_break()
        y.register_hook(lambda grad: received.append(grad.item()))
        return before + 5 * y

    for function in (divided, torch.compile(divided, backend="aot_eager")):
        function(torch.tensor(1.0, requires_grad=True)).backward()
    assert received == [8, 5]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_opcheck_does_not_find_a_wrong_derivative():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert set(torch.library.opcheck(square, (x,)).values()) == {"SUCCESS"}
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(square, x)
