"""Every cell of the course runs, in the notebook and in the script that are made of its page."""

import ast
import json
import re
import runpy

import pytest
import torch
from helpers import ROOT

COURSE = ROOT / "docs" / "course"
WRITE = runpy.run_path(str(ROOT / "docs" / "download.py"))["write"]
SEEN = re.compile(r"^```text\n(.*?)^```$", re.M | re.S)
PRINTED = {
    "graph": [
        "<MulBackward0 object",
        "AddBackward0 0",
        "(None, 0)",
        "4.",
        "a second time",
        "8.",
        "tensor(7.)\ntensor(42.)\n",
    ],
    "modules": ["was called 0 times", "autograd_function"],
    "functions": ["relu passes", "weight [1.0, -2.0, 3.0] bias 0.5", "moments_tap"],
    **{
        page: ["".join(SEEN.findall((COURSE / f"{page}.md").read_text(encoding="utf-8")))]
        for page in ("clinic", "called")
    },
    "pastiche": ["as it can be shown"],
}


@pytest.mark.parametrize("page", ["backward", "course/modules", "course/clinic", "course/called"])
def test_the_chinese_page_has_the_code_of_the_english_one(page):
    """That of the guide ends before its first way."""
    docs = (ROOT / "docs" / f"{page}.md", ROOT / "docs" / "zh" / f"{page.rpartition('/')[2]}.md")
    english, chinese = (
        re.findall(r"^```.*?^```$", one.read_text("utf-8"), re.M | re.S) for one in docs
    )
    assert chinese == english[: 3 if page == "backward" else None]


@pytest.mark.parametrize(
    "chapter",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "pastiche")) for name in PRINTED],
)
def test_a_page_runs_as_a_script_and_as_a_notebook(chapter, capsys, tmp_path, monkeypatch):
    """The clinic and the checklist print what stands on their pages, and nothing else."""
    monkeypatch.chdir(tmp_path)  # scripts save pictures
    WRITE(COURSE / f"{chapter}.md", tmp_path)
    script = (tmp_path / f"{chapter}.py").read_text(encoding="utf-8")
    with torch.random.fork_rng(devices=[]):
        exec(compile(script, f"{chapter}.py", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    printed = re.sub(r"(utput 0 of \w+)Backward0?\b", r"\1", printed)  # torch before 2.14
    assert [words for words in PRINTED[chapter] if words not in printed] == []
    assert chapter not in ("clinic", "called") or [printed] == PRINTED[chapter]
    book = json.loads((tmp_path / f"{chapter}.ipynb").read_text(encoding="utf-8"))
    cells = [cell["source"] for cell in book["cells"] if cell["cell_type"] == "code"]
    page = (COURSE / f"{chapter}.md").read_text(encoding="utf-8")
    assert len(cells) == page.count("```{code-cell} python\n") > 5
    same = re.sub(r"\.save\(\"\w+\.png\"\)$", "", script, flags=re.M)
    assert ast.dump(ast.parse("\n".join(cells))) == ast.dump(ast.parse(same))
    if chapter == "pastiche":  # "in less than sixty lines"
        own = "\n".join(cells).partition("from styletransfer import stylize")[0]
        assert 50 < sum(bool(line.strip()) for line in own.splitlines()) < 60
        assert len([*tmp_path.glob("*.png")]) == 4
    pytest.importorskip("nbformat", reason="needs the extra [docs]").validate(book)
