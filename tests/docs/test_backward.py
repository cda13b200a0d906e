"""The code, the figures and the test names in docs/backward.md are correct."""

import re
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
        ("small", "4.0 4.0 5.0\n7.0 6.0 5.0\n3.0 2.0 None\n"),
        ("scale", "[5.0, 7.0] None\n"),
        ("cube", "24.0 by hand 48\n"),
        ("global_max_pool", "4.0 1 False [[[[0.0, 1.0], [0.0, 0.0]]]]\n"),
        *((way, "gradient norm 0.071815025859\n") for way in WAYS),
    ],
)
def test_every_example_runs_and_prints_what_it_should(name, printed, capsys):
    run(name)
    assert capsys.readouterr().out == printed


def test_no_example_is_forgotten():
    assert set(EXAMPLES) == {"small", "scale", "global_max_pool", "cube", *WAYS}
    assert not any("styletransfer" in path.read_text("utf-8") for path in EXAMPLES.values())


def test_the_four_ways_print_the_same_gradient():
    gradients = [run(way)["image"].grad for way in WAYS]
    assert gradients[0].norm() > 0.05
    for gradient in gradients[1:]:
        torch.testing.assert_close(gradient, gradients[0], rtol=1e-12, atol=1e-15)


def test_the_guides_closed_form_passes_gradcheck():
    tap, pool = run("autograd_function")["StyleTap"], run("global_max_pool")["GlobalMaxPool"]
    seeded = {"dtype": torch.float64, "generator": torch.Generator().manual_seed(0)}
    features, target = (torch.randn(shape, **seeded) for shape in ((1, 3, 2, 4), (3, 3)))
    for any_target in (target, target + target.T):
        assert gradcheck(lambda x, to=any_target: tap.apply(x, to), features.requires_grad_())
        assert gradgradcheck(lambda x, to=any_target: tap.apply(x, to), features)
    x = torch.arange(12, dtype=torch.float64).view(1, 3, 2, 2).requires_grad_()
    assert gradcheck(lambda x: pool.apply(x)[0], x)


def test_a_scale_between_linear_layers_receives_the_product():
    scale = run("scale")["Scale"].apply
    x, after = torch.randn(4, 3), torch.randn(2, 3)
    weight = torch.randn(4, 3, requires_grad=True)
    scale(x, weight).matmul(after.T).sum().backward()
    torch.testing.assert_close(weight.grad, after.sum(0) * x)


def test_the_guide_quotes_its_examples_word_for_word():
    quotes = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(quotes) == 10
    texts = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES.values())
    assert [quote for quote in quotes if quote not in texts] == []


def test_figures_are_those_of_this_version():
    colours = ROOT / "styletransfer" / "lessons" / "explain" / "templates" / "drawing.css"
    css = colours.read_text(encoding="utf-8")
    for figure in sorted(DOCS.glob("*.svg")):
        assert f"<style>\n{css}</style>" in figure.read_text(encoding="utf-8")
