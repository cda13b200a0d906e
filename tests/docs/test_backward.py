"""The programs and the figures of docs/backward.md, and excerpts of the programs, are correct."""

import re
import runpy
from textwrap import dedent

import pytest
import torch
from helpers import ROOT
from torch.autograd import gradcheck, gradgradcheck

DOCS = ROOT / "docs"
GUIDE = (DOCS / "backward.md").read_text(encoding="utf-8")
EXAMPLES = {path.stem: path for path in sorted((DOCS / "examples").glob("*.py"))}
WAYS = ("fake_backward", "loss_attribute", "autograd_function", "tensor_hook")


def run(name):
    """Run one example as a script; return its variables."""
    with torch.random.fork_rng(devices=[]):
        return runpy.run_path(str(EXAMPLES[name]))


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("cube", "24.0 by hand 48\n"),
        *((way, "gradient norm 0.121008791373\n") for way in WAYS),
    ],
)
def test_every_example_runs_and_prints_what_it_should(name, printed, capsys):
    run(name)
    assert capsys.readouterr().out == printed


def test_no_example_is_forgotten():
    assert set(EXAMPLES) == {"cube", *WAYS}
    assert all(f"(examples/{way}.py)" in GUIDE for way in WAYS)
    assert not any("styletransfer" in path.read_text("utf-8") for path in EXAMPLES.values())


def test_the_four_ways_print_the_same_gradient():
    gradients = [run(way)["image"].grad for way in WAYS]
    assert gradients[0].norm() > 0.05
    for gradient in gradients[1:]:
        torch.testing.assert_close(gradient, gradients[0], rtol=1e-12, atol=1e-15)


def test_the_guides_closed_form_passes_gradcheck():
    program = run("autograd_function")
    seeded = {"dtype": torch.float64, "generator": torch.Generator().manual_seed(0)}
    shapes = ((1, 3, 2, 4), (1, 3, 2, 4), (3, 3))
    features, content, style = (torch.randn(shape, **seeded) for shape in shapes)
    cases = [("ContentTap", content), ("StyleTap", style), ("StyleTap", style + style.T)]
    for name, target in cases:
        given = (program[name].apply, (features.requires_grad_(), target))
        assert gradcheck(*given)
        assert gradgradcheck(*given)


def packed(code):
    """Return code without comments and white space, and without commas before a bracket."""
    return re.sub(r",(?=[)\]])", "", re.sub(r"#.*|\s", "", code))


def test_excerpts_of_the_programs_stand_in_them():
    """Each loss mode's file begins with an excerpt; README shows two programs side by side."""
    excerpts = []
    for way in WAYS:
        text = (ROOT / "styletransfer" / "losses" / f"{way}.py").read_text(encoding="utf-8")
        opening = text.split('"""')[1]
        assert f"docs/examples/{way}.py:\n\n    " in opening
        excerpts.append((way, dedent("\n".join(re.findall(r"^(?:    .*)?$", opening, re.M)))))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"](docs/examples/{way}.py)" in readme for way in WAYS)
    blocks = re.findall(r"```python\n(.*?)```", readme.partition("<table>")[2], re.S)
    excerpts += zip(WAYS, blocks[:2], strict=False)
    assert len(excerpts) == 6
    for way, code in excerpts:
        program = packed(EXAMPLES[way].read_text(encoding="utf-8"))
        parts = [packed(part) for part in re.split(r"\n\s*\n", code)]
        assert [part for part in parts if part not in program] == []


def test_figures_are_those_of_this_version():
    colours = ROOT / "styletransfer" / "lessons" / "explain" / "templates" / "drawing.css"
    css = colours.read_text(encoding="utf-8")
    for figure in sorted(DOCS.glob("*.svg")):
        assert f"<style>\n{css}</style>" in figure.read_text(encoding="utf-8")
