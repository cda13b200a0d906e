"""Every cell of the course runs, in the notebook and in the script that are made of its page."""

import ast
import json
import re
import runpy

import pytest
import torch
from helpers import ROOT, needs

COURSE = ROOT / "docs" / "course"
DOWNLOAD = runpy.run_path(str(ROOT / "docs" / "download.py"))
# Those that have what their cells print; matrix and pastiche show theirs on the site alone.
FILLED = ["called", "clinic", "functions", "graph", "modules"]


BLOCKS = DOWNLOAD["BLOCK"]


@pytest.mark.parametrize("page", FILLED)
def test_the_chinese_page_names_each_block_of_code(page):
    """Read in the repository, its links lead to the section of the English page with that block."""
    english = (COURSE / f"{page}.md").read_text("utf-8")
    places, section = [], ""
    for found in re.finditer(f"{DOWNLOAD['BLOCK'].pattern}|^#+ ([^\n]*)$", english, re.M | re.S):
        if found[4] is None:
            places.append(section)
        else:  # as GitHub makes an anchor of a heading
            section = re.sub(r"[^\w -]", "", found[4].lower()).replace(" ", "-")
    wanted = [f"../course/{page}.md#{section}" for section in places]
    chinese = (COURSE.parent / "zh" / f"{page}.md").read_text("utf-8")
    assert re.findall(r"^\[(?:代码|输出)[ \d]*\]\((.*)\)$", chinese, re.M) == wanted


@pytest.mark.parametrize("page", [*FILLED, "matrix"])
def test_the_chinese_page_has_the_same_sections(page):
    english, chinese = (
        re.findall("^#+(?= )", BLOCKS.sub("", (folder / f"{page}.md").read_text("utf-8")), re.M)
        for folder in (COURSE, COURSE.parent / "zh")
    )
    assert chinese == english


@pytest.mark.parametrize("page", FILLED)
def test_the_chinese_page_is_built_with_the_same_code(page):
    english, chinese = (
        re.findall(r"^```.*?^```$", DOWNLOAD["whole"](one), re.M | re.S)
        for one in (COURSE / f"{page}.md", COURSE.parent / "zh" / f"{page}.md")
    )
    assert chinese == english


def test_a_clinic_heading_has_the_message_that_is_printed():
    """So has the Chinese one. A section that begins with a wrong number needs no message."""
    english, chinese = (
        re.findall(r"^### (.+)\n((?:(?!###? ).*\n)*)", DOWNLOAD["whole"](one), re.M)
        for one in (COURSE / "clinic.md", COURSE.parent / "zh" / "clinic.md")
    )
    assert len(english) == len(chinese)
    for (heading, text), (translated, _) in zip(english, chinese, strict=True):
        first, *_ = re.findall(r"^```text\n(.*)$", text, re.M)
        message = re.findall(r"`([^`]+)`$", heading)
        assert message or not re.match(r"\w+(Error|Warning): ", first), heading
        assert re.findall(r"`([^`]+)`$", translated) == message
        assert "".join(message) in "".join(re.findall(r"^```text\n(.*?)^```$", text, re.M | re.S))


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are")  # torch's, before 2.15
@pytest.mark.parametrize("chapter", FILLED)
def test_a_page_shows_what_its_cells_print(chapter):
    """`python docs/download.py docs/course/CHAPTER.md` writes it there."""
    page = (COURSE / f"{chapter}.md").read_text(encoding="utf-8")
    with torch.random.fork_rng(devices=[]):
        filled = DOWNLOAD["filled"](page)
    # torch before 2.14, and before 2.15.
    filled = filled.replace(
        "One of the differentiated Tensors app", "The differentiated Tensor at index 0 app"
    )
    assert re.sub(r"(utput 0 of \w+)Backward0?\b", r"\1", filled) == page


@pytest.mark.parametrize("chapter", [*FILLED, "matrix", "pastiche"])
def test_a_page_is_a_script_and_a_notebook(chapter, tmp_path):
    DOWNLOAD["write"](COURSE / f"{chapter}.md", tmp_path)
    script = (tmp_path / f"{chapter}.py").read_text(encoding="utf-8")
    book = json.loads((tmp_path / f"{chapter}.ipynb").read_text(encoding="utf-8"))
    cells = [cell["source"] for cell in book["cells"] if cell["cell_type"] == "code"]
    page = (COURSE / f"{chapter}.md").read_text(encoding="utf-8")
    assert len(cells) == page.count("```{code-cell} python\n") > 5
    same = re.sub(r"\.save\(\"\w+\.png\"\)$", "", script, flags=re.M)
    assert ast.dump(ast.parse("\n".join(cells))) == ast.dump(ast.parse(same))
    with_package = {"pastiche"}  # the only notebook that needs the package
    assert ("styletransfer" in "\n".join(cells)) == (chapter in with_package)
    needs("docs", "nbformat").validate(book)


@pytest.mark.slow
def test_the_pastiche_is_painted_by_less_than_sixty_lines(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # scripts save pictures
    script = DOWNLOAD["script"](COURSE / "pastiche.md")
    with torch.random.fork_rng(devices=[]):
        exec(compile(script, "pastiche.py", "exec"), {"__name__": "__main__"})
    assert "as it can be shown" in capsys.readouterr().out
    assert len([*tmp_path.glob("*.png")]) == 4
    lines = script.partition("from styletransfer import stylize")[0].splitlines()
    own = [line for line in lines if line.strip() and not line.startswith("#")]
    assert 50 < len(own) < 60


@pytest.mark.slow
def test_the_cells_of_the_page_on_notebooks_run(capsys):
    script, names = DOWNLOAD["script"](ROOT / "docs" / "api" / "notebook.md"), {}
    exec(compile(script, "notebook.py", "exec"), names)
    assert (capsys.readouterr().out[:15], names["result"].steps) == ("20 steps, loss ", 20)
