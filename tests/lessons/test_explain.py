"""The command `explain`: its page, its maps, and its record of one evaluation."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import fields
from functools import cache
from html import unescape

import pytest
import torch
from comparing import written_functions
from helpers import LAYERS, MODES, check_error, composed, make_objective, picture, tiny_network
from html_tags import Tags

from styletransfer.lessons.commands.explain import explain
from styletransfer.lessons.explain.drawing import Map, render, summary
from styletransfer.lessons.explain.study import study
from styletransfer.settings import StyleTransferConfig

SVG = "{http://www.w3.org/2000/svg}"
SMALL = [*LAYERS, "features=vgg19", "features.weights=random", "size=24", "device=cpu"]
SMALL += ["precision=float32"]


# Names of the losses in the network's order; at one layer, content comes before style.
TERMS = ["style/relu1_1", "content/relu2_1", "style/relu2_1"]


def objective(mode, **settings):
    network = tiny_network()
    content, style = picture(seed=1, height=12, width=10), picture(seed=2, height=12, width=10)
    return make_objective(mode, network, content, style, **settings)


@cache
def studied(mode, tv_weight=0.0):
    watched = objective(mode, tv_weight=tv_weight)
    return study(watched, torch.full((1, 3, 12, 10), 0.5, dtype=torch.float64))


@pytest.mark.parametrize("mode", MODES)
def test_the_map_shows_every_group_and_each_pass_adds_up(mode):
    seen = studied(mode, 0.5)
    drawing = Map(seen).draw(alone=True)
    tree = ElementTree.fromstring(drawing)
    groups = [each.get("data-group") for each in tree.iter(f"{SVG}g") if each.get("data-group")]
    assert sorted(groups) == sorted(group.name for group in seen.groups)
    assert f"{len(seen.nodes)} nodes, entered {visits(seen)} times" in drawing
    width, height = map(float, str(tree.get("viewBox")).split()[2:])
    for text in tree.iter(f"{SVG}text"):
        assert 0 <= float(str(text.get("x"))) < width
        assert 0 < float(str(text.get("y"))) < height
    lines = [each for each in tree.iter(f"{SVG}g") if str(each.get("class")).startswith("pass ")]
    for number, (line, call) in enumerate(zip(lines, seen.passes, strict=True)):
        label, *counts = (str(text.text) for text in line.iter(f"{SVG}text"))
        entered = [group.entered(number) for group in seen.groups if group.entered(number)]
        assert sorted(map(int, counts)) == sorted(entered)
        assert f" {call.root}: {sum(entered)} nodes" in label


def test_the_page_begins_with_the_chosen_mode():
    modes = list(reversed(MODES))
    studies = [studied(mode) for mode in modes]
    text = render("page.html", studies=studies, setting="a <tiny> network")
    page = Tags(text)
    assert page.values("href") + page.values("src") == ["data:,", *(f"#{mode}" for mode in modes)]
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)|{[{%]|[%}]}(?!\s)", text)
    assert "a &lt;tiny&gt; network" in text
    assert page.values("id") == modes
    sections = unescape(text).split("<h2 ")[1:]
    for seen, section in zip(studies, sections, strict=True):
        assert all(f">{line}</text>" in section for line in summary(seen))


def test_a_hand_written_backward_is_marked_where_it_is_entered():
    for mode, losses in {
        "fake_backward": "none",
        "loss_attribute": "none",
        "autograd_function": "2 MomentsTapBackward, 1 ContentTapBackward among the nodes, "
        "entered 3 times",
        "tensor_hook": "none among these nodes; each hook enters one in a small graph of its own",
    }.items():
        _, in_losses = summary(studied(mode))
        assert in_losses == f"The losses' hand-written backwards: {losses}"


@pytest.mark.slow
def test_explain_writes_page_and_figures(tmp_path, capsys):
    explain(composed("explain", *SMALL, "loss_mode=fake_backward"), tmp_path)
    printed = capsys.readouterr().out
    assert printed.startswith("fake_backward: vgg19, 24 x 16 pixels, float32, cpu\n")
    assert re.search(r"\n\d+ nodes, entered \d+ times\n", printed)
    assert printed.splitlines()[-1].endswith("explain.html")
    maps = {f"map_{mode}.svg" for mode in MODES}
    assert {path.name for path in tmp_path.iterdir()} == {"explain.html", *maps}


@pytest.mark.slow
def test_explain_has_the_default_look_and_no_keys_of_a_run():
    explained, trained = composed("explain"), composed("train")
    names = {each.name for each in fields(explained)}
    assert names == {each.name for each in fields(StyleTransferConfig)}
    assert all(getattr(explained, name) == getattr(trained, name) for name in names)
    for word in ("stop_after=1", "checkpoint_every=0", "recipe=false", "resume=auto"):
        check_error(f"Key '{word.partition('=')[0]}' not in", composed, "explain", word)


def test_bad_input_writes_nothing(tmp_path):
    config = composed("explain", *SMALL, "content=nowhere.jpg")
    check_error("nowhere.jpg", explain, config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def visits(seen):
    return sum(len(node.passes) for node in seen.nodes)


def group_of(seen, name):
    return next(group for group in seen.groups if group.name == name)


def test_fake_backward_walks_the_first_block_once_per_loss():
    seen = studied("fake_backward")
    block, image = group_of(seen, "block 1"), group_of(seen, "image")
    # The pass from relu1_1 enters conv1_1 and relu1_1; deeper passes enter all of block 1.
    assert [block.entered(number) for number in range(3)] == [2, *[len(block.nodes)] * 2]
    assert [image.entered(number) for number in range(3)] == [1, 1, 1]
    entered = [group.entered(number) for group in seen.groups for number in range(3)]
    assert sum(entered) == visits(seen) > len(seen.nodes)
    assert [call.root for call in seen.passes] == TERMS


def test_one_pass_enters_every_node_once():
    for mode in MODES[1:]:
        start = "output" if mode == "tensor_hook" else "total"
        assert [call.root for call in studied(mode).passes] == [start]
        assert {node.passes for node in studied(mode).nodes} == {(0,)}


def test_every_mode_has_the_same_trunk():
    def trunk(mode):
        groups = (group for group in studied(mode).groups if group.kind in ("trunk", "image"))
        return [(group.name, [node.name for node in group.nodes]) for group in groups]

    assert [trunk(mode) for mode in MODES] == [trunk(MODES[0])] * len(MODES)


def test_a_real_backward_is_a_node_of_the_trunk():
    seen = studied("autograd_function")
    nodes, entered = seen.written()
    assert set(nodes) <= {f"{name}Backward" for name in written_functions()}
    assert nodes.total() == entered == len(TERMS)
    losses = [group for group in seen.groups if group.kind == "loss"]
    assert [(group.name, group.on_trunk) for group in losses] == [(name, True) for name in TERMS]
    for group in losses:
        assert sum(node.is_function for node in group.nodes) == 1


def test_a_closed_form_needs_fewer_nodes():
    real, built_in = studied("autograd_function"), studied("loss_attribute")
    assert len(real.nodes) < len(built_in.nodes)


def test_separate_passes_fail_without_retain_graph():
    watched = objective("fake_backward")
    watched.network(torch.rand(1, 3, 12, 10, dtype=torch.float64).requires_grad_())
    first, *_, last = (term.module.loss for term in watched.terms)
    last.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        first.backward()
