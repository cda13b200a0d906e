"""docs/course/stepper.html has all loss modes, and works in a browser."""

import json
import re
import runpy
from itertools import chain

import pytest
import torch
from helpers import ROOT

PATH = ROOT / "docs" / "course" / "stepper.html"
DATA = json.loads(re.findall(r"const WAYS = (\{.*?\});\n", PATH.read_text("utf-8"), re.S)[0])


def test_every_way_is_in_the_stepper():
    ways = ["fake_backward", "loss_attribute", "autograd_function", "tensor_hook"]
    assert list(DATA) == ways


def edges(text):
    """Return the edges of the graphs that the page on modules prints, by their way."""
    graphs = re.findall(r"^0 .* leads to .*\n(?:^[1-9] .* leads to .*\n)*", text, re.M)[:4]
    lines = [[*map(json.loads, re.findall(r"leads to (.*)", graph))] for graph in graphs]
    found = [[[at, to] for at, all_ in enumerate(graph) for to in all_] for graph in lines]
    return dict(zip(DATA, found, strict=True))


def test_the_stepper_runs_the_nodes_that_torch_runs(capsys):
    """The page on modules has the same two layers and losses; a hook is no node."""
    script = runpy.run_path(str(ROOT / "docs" / "download.py"))["script"]
    page = {"__name__": "__main__"}
    with torch.random.fork_rng(devices=[]):
        exec(script(ROOT / "docs" / "course" / "modules.md"), page)
    printed = edges(capsys.readouterr().out)
    for way, each in DATA.items():
        is_node = [title != "hook" for title, _ in each["nodes"]]
        runs = sum(is_node[number] for number in chain(*each["passes"]))
        assert page["table"][way][:2] == (sum(is_node), runs)
        assert len(each["edges"]) == len(printed[way]) + 2 * (way == "tensor_hook")  # its hooks
        assert way == "tensor_hook" or each["edges"] == printed[way]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_stepper_works_by_keyboard(width, scheme, browser):
    from studio import studio_pages as pages  # not at the top: the import skips without [browser]

    size = {"width": width, "height": 844}
    with browser.new_page(viewport=size, color_scheme=scheme) as page:
        page.goto(PATH.as_uri())
        page.keyboard.press("Tab")
        for _ in range(2):
            page.keyboard.press("Space")
        page.keyboard.press("Tab")
        for _ in range(3):
            page.keyboard.press("Space")
        grads = re.findall(r"\.grad (\d)", str(page.text_content("#boxes")))
        assert sorted(grads) == ["4", "4", "5"]  # as docs/course/graph.md prints
        page.keyboard.press("Space")
        assert "a second time" in str(page.text_content("#said"))
        for way, each in DATA.items():
            page.check(f"input[value={way}]")
            page.click("#all")
            counts = [int(text) for text in page.locator("#graph b").all_text_contents()]
            run = [*chain(*each["passes"])]
            assert counts == [run.count(number) for number in range(len(each["nodes"]))]
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert pages.axe.Axe().run(page).response["violations"] == []
