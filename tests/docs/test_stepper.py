"""docs/course/stepper.html: its numbers equal autograd's, and it works in a browser."""

import json
import re
from collections import Counter
from itertools import chain

import pytest
import torch
from helpers import MODES, ROOT
from torch import nn
from torch.nn.functional import mse_loss

from styletransfer.lessons.graph import count_visits, root, title, walk

PATH = ROOT / "docs" / "course" / "stepper.html"
DATA = json.loads(re.findall(r"const WAYS = (\{.*?\});\n", PATH.read_text("utf-8"), re.S)[0])
BOXES = ["sum", "loss 2", "relu 2", "conv 2", "loss 1", "relu 1", "conv 1", "image"]


class Tap(torch.autograd.Function):
    """The features and the mean of their squares, with a hand-written backward."""

    @staticmethod
    def forward(features):
        return features.view_as(features), features.square().mean()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output, grad_loss):
        (features,) = ctx.saved_tensors
        return grad_output + grad_loss * 2 * features / features.numel()


def record(way):
    """Run two layers with a loss after each; return nodes with their boxes, and the passes.

    A node is a pair of title and box. A pass is a list of node numbers in the order in which
    autograd ran the nodes. A hook on a tensor is listed like a node.
    """
    torch.manual_seed(0)
    convs = [nn.Conv2d(i, o, 3, padding=1).requires_grad_(False) for i, o in ((3, 4), (4, 4))]
    image = torch.rand(1, 3, 8, 8, requires_grad=True)
    boxes = {root(image): "image"}
    run: list[object] = []

    def keep(box, *tensors):
        for node in walk(*map(root, tensors)):
            boxes.setdefault(node, box)

    x, losses, hooks = image, [], []
    for number, conv in enumerate(convs, 1):
        x = conv(x)
        keep(f"conv {number}", x)
        x = x.relu()
        keep(f"relu {number}", x)
        if way == "autograd_function":
            x, loss = Tap.apply(x)
            losses.append(loss)
        elif way == "tensor_hook":
            grad_loss = 2 * x.detach() / x.numel()
            hook = ("hook", f"loss {number}")
            hooks.append(hook)
            x.register_hook(lambda g, add=grad_loss, hook=hook: run.append(hook) or g + add)
        else:
            losses.append(mse_loss(x, torch.zeros_like(x)))
        keep(f"loss {number}", x, *losses)
    roots = losses or [x]
    if way in ("loss_attribute", "autograd_function"):
        roots = [losses[0] + losses[1]]
        keep("sum", *roots)
    nodes = walk(*map(root, roots))
    for node in nodes:
        node.register_prehook(lambda grads, node=node: run.append(node) and None)
    boxes |= {hook: hook[1] for hook in hooks}
    entries = sorted([*nodes, *hooks], key=lambda each: BOXES.index(boxes[each]))
    passes, visits = [], Counter(hooks)
    with count_visits(nodes) as entered:
        for each in roots:
            run.clear()
            each.backward(torch.zeros_like(each) if each.dim() else None, retain_graph=True)
            passes.append([entries.index(step) for step in run])
    visits.update(entered)
    named = [[*each] if each in hooks else [title(each), boxes[each]] for each in entries]
    ran = [entries[number] for number in chain(*passes)]
    assert Counter(ran) == visits
    return {"nodes": named, "passes": passes}, image.grad


@pytest.mark.parametrize("way", DATA)
def test_the_steppers_counters_are_those_of_count_visits(way):
    found, grad = record(way)
    assert found == DATA[way]
    torch.testing.assert_close(grad, record("loss_attribute")[1])


def test_every_way_is_in_the_stepper():
    assert list(DATA) == MODES


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_stepper_works_by_keyboard(width, scheme):
    pages = pytest.importorskip("studio_pages", reason="needs the extra [browser]")
    if pages.CHROMIUM is None:
        pytest.skip("no Chromium to open the page with")
    with pages.playwright.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=pages.CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
        page.goto(PATH.as_uri())
        page.keyboard.press("Tab")
        for _ in range(2):
            page.keyboard.press("Space")
        page.keyboard.press("Tab")
        for _ in range(3):
            page.keyboard.press("Space")
        grads = re.findall(r"\.grad (\d)", str(page.text_content("#boxes")))
        assert sorted(grads) == ["4", "4", "5"]  # as docs/examples/small.py prints
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
        browser.close()
