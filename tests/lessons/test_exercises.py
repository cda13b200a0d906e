"""The exercises: each stub fails, a right answer passes, and a wrong one gets its hint."""

import re
import runpy
from collections import Counter

import pytest
from helpers import ROOT
from lessons.answers import RIGHT, WRONG

from styletransfer.lessons.exercises import UnsolvedError

FILES = {path.stem: path for path in sorted((ROOT / "exercises").glob("*.py"))}
PAGE = (ROOT / "docs" / "course" / "exercises.md").read_text(encoding="utf-8")


def answered(exercise, name, answer):
    """Return the test of an exercise in which `name` is the answer."""
    test = runpy.run_path(str(FILES[exercise]))["test"]
    assert name in test.__globals__
    test.__globals__[name] = answer
    return test


def said(capsys, path):
    """Run a file as a script; return what it prints and its exit status."""
    try:
        runpy.run_path(str(path), run_name="__main__")
        status = 0
    except SystemExit as ended:
        status = ended.code
    return capsys.readouterr().out, status


def test_each_exercise_has_a_right_answer_and_wrong_ones():
    assert len(FILES) == 12
    assert list(RIGHT) == list(FILES)
    wrong = Counter(exercise for exercise, *_ in WRONG)
    assert list(wrong) == list(FILES)
    assert min(wrong.values()) >= 2


@pytest.mark.parametrize("exercise", FILES)
def test_a_stub_is_not_solved(exercise, capsys):
    printed, status = said(capsys, FILES[exercise])
    title, hint = printed.split("\n", 1)
    assert re.fullmatch(r"Exercise \d+: .+\. Not yet\.", title)
    assert re.match("    [A-Za-z]", hint)
    assert status == 1


@pytest.mark.parametrize("exercise", FILES)
def test_a_right_answer_passes(exercise):
    answered(exercise, *RIGHT[exercise])()


@pytest.mark.parametrize(
    ("exercise", "name", "answer", "words"), WRONG, ids=[f"{each[0]} {each[3]}" for each in WRONG]
)
def test_a_wrong_answer_gets_its_hint(exercise, name, answer, words):
    with pytest.raises(UnsolvedError) as raised:
        answered(exercise, name, answer)()
    assert words in str(raised.value).replace("\n", " ")


def test_a_solved_exercise_names_the_next_one(capsys, tmp_path):
    for path in FILES.values():
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    path = tmp_path / "01_retain_grad.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("c = a + b\n", "c = a + b\n    c.retain_grad()\n"), "utf-8")
    printed, status = said(capsys, path)
    assert printed.endswith("in the middle. Right. Next: 02_two_losses.py\n")
    assert status == 0
    path.write_text(text.replace("c = a + b\n", "c = nothing\n"), encoding="utf-8")
    number = text.splitlines().index("    c = a + b") + 1
    printed, status = said(capsys, path)
    assert printed.endswith(f"    line {number}: NameError: name 'nothing' is not defined\n")
    assert status == 1


def test_the_page_lists_the_exercises_with_their_titles():
    rows = re.findall(r"^\| (\d+) \| \[(.+?)\]\(\.\./\.\./exercises/(.+?)\.py\) \|", PAGE, re.M)
    assert [name for _, _, name in rows] == list(FILES)
    for number, title, name in rows:
        first = FILES[name].read_text(encoding="utf-8").splitlines()[0]
        assert first.lower() == f'"""exercise {number}: {title}.'.lower()


def test_the_page_shows_what_is_printed(capsys):
    (command, shown) = re.findall(r"^    python (\S+)\n\n```text\n(.*?)^```$", PAGE, re.M | re.S)[0]
    assert said(capsys, ROOT / command) == (shown, 1)
