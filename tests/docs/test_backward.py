"""The programs and the figures of docs/backward.md are correct."""

import runpy

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
        *((way, "gradient norm 0.071815025859\n") for way in WAYS),
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
    tap = run("autograd_function")["StyleTap"]
    seeded = {"dtype": torch.float64, "generator": torch.Generator().manual_seed(0)}
    features, target = (torch.randn(shape, **seeded) for shape in ((1, 3, 2, 4), (3, 3)))
    for any_target in (target, target + target.T):
        assert gradcheck(lambda x, to=any_target: tap.apply(x, to), features.requires_grad_())
        assert gradgradcheck(lambda x, to=any_target: tap.apply(x, to), features)


def test_figures_are_those_of_this_version():
    colours = ROOT / "styletransfer" / "lessons" / "explain" / "templates" / "drawing.css"
    css = colours.read_text(encoding="utf-8")
    for figure in sorted(DOCS.glob("*.svg")):
        assert f"<style>\n{css}</style>" in figure.read_text(encoding="utf-8")
