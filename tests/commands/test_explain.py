"""The command: its page and its maps, which all say what was seen; and that itself."""

import re
import xml.etree.ElementTree as ElementTree
from html import unescape

import pytest
import torch
from comparing import written_functions
from explained import TERMS, objective, studied
from galleries import Tags
from helpers import LAYERS, MODES, check_error, composed

from styletransfer.commands.explain.command import draw_page, main
from styletransfer.commands.explain.drawing import Map
from styletransfer.commands.explain.facts import answers, format_bytes
from styletransfer.commands.explain.study import study
from styletransfer.settings.compose import compose

SVG = "{http://www.w3.org/2000/svg}"
SMALL = [*LAYERS, "features=vgg19", "features.weights=random", "size=24", "device=cpu"]
SMALL += ["precision=float32"]


@pytest.mark.parametrize("mode", MODES)
def test_the_map_shows_every_group_and_each_pass_adds_up(mode):
    seen = studied(mode, 0.5)
    drawing = Map(seen).draw(alone=True)
    tree = ElementTree.fromstring(drawing)
    groups = [one.get("data-group") for one in tree.iter(f"{SVG}g") if one.get("data-group")]
    assert sorted(groups) == sorted(group.name for group in seen.groups)
    times = "time" if seen.visits == 1 else "times"
    assert f"{len(seen.nodes)} nodes, entered {seen.visits} {times}" in drawing
    width, height = map(float, str(tree.get("viewBox")).split()[2:])
    for text in tree.iter(f"{SVG}text"):
        assert 0 <= float(str(text.get("x"))) < width
        assert 0 < float(str(text.get("y"))) < height
    lines = [one for one in tree.iter(f"{SVG}g") if str(one.get("class")).startswith("pass ")]
    trunk = [group.name for group in seen.groups if group.kind in ("image", "trunk")]
    for number, (line, one) in enumerate(zip(lines, seen.passes, strict=True), start=1):
        entered = seen.entered(number)
        label, *counts = (str(text.text) for text in line.iter(f"{SVG}text"))
        parts = [int(part) for part in re.findall(r"(\d+) in", label)]
        assert sum(map(int, counts)) == sum(parts) == entered.total()
        assert f" {one.root}: {entered.total()} nodes = " in label
        assert parts[0] == sum(entered[name] for name in trunk)


def test_the_page_begins_with_the_chosen_mode():
    modes = list(reversed(MODES))
    text = draw_page([studied(mode) for mode in modes], "a <tiny> network")
    page = Tags(text)
    assert page.values("href") + page.values("src") == ["data:,", *(f"#{mode}" for mode in modes)]
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)|{[{%]|[%}]}(?!\s)", text)
    assert "a &lt;tiny&gt; network" in text
    # A click on a box of the map finds its folded nodes.
    assert sorted(page.values("id")) == sorted({*page.values("data-opens"), *modes})
    sections = unescape(text).split('<section class="mode"')[1:]
    cards = re.findall(r"<dl>.*?</dl>", unescape(text), re.DOTALL)
    for mode, section, card in zip(modes, sections, cards, strict=True):
        seen = studied(mode)
        for scope, answer in answers(seen).items():
            assert f">{scope}</th><td>{answer}</td>" in section
        counts = len(seen.passes), len(seen.nodes), seen.visits
        memory = format_bytes(seen.kept), format_bytes(seen.passes[-1].held_after)
        entered = seen.written("loss")[1], seen.written("trunk")[1]
        figures = re.findall(r"<dt>(.*?)</dt><dd.*?>.*?</dd>", card)
        assert figures == [*map(str, (*counts, *memory, *entered))]
        for node in seen.nodes:
            assert node.name in section
    rows = re.findall(r"<tr><td><code>(\w)</code></td><td>(\d+)</td><td><b>(\w+)</b></td>", text)
    assert "<td>c is no leaf (AddBackward0 made it): its gradient is passed on" in text
    assert [*map("".join, rows)] == ["a24", "b34", "d45", "c5None", "e20None"]


def test_a_hand_written_backward_is_marked_where_it_is_entered():
    for mode, losses in {
        "fake_backward": "No: ContentLoss.backward and StyleLoss.backward are ordinary methods",
        "loss_attribute": "No: there is none. The losses' nodes run autograd's own formulas.",
        "autograd_function": "Yes: 2 MomentsTapBackward, 1 ContentTapBackward among the nodes",
    }.items():
        in_losses, in_trunk = answers(studied(mode)).values()
        assert in_losses.startswith(losses)
        times = "2 times" if mode == "fake_backward" else "1 time"
        assert in_trunk.startswith("Yes, whatever the loss mode: 1 MaxPoolFunctionBackward among")
        assert f"entered {times}. They belong" in in_trunk
        built_in = answers(studied(mode, pooling="average"))["In the trunk"]
        assert built_in == "No: there is none. The trunk's nodes run autograd's own formulas."


def test_explain_writes_page_and_figures(tmp_path, capsys):
    assert compose("explain") == compose("train")
    main(composed("explain", *SMALL, "loss_mode=fake_backward"), tmp_path)
    printed = capsys.readouterr().out
    assert printed.startswith("fake_backward: vgg19, 24 x 16 pixels, float32, cpu\n")
    assert re.search(r"\n\d+ nodes, entered \d+ times; .* kept for backward", printed)
    assert printed.splitlines()[-1].endswith("explain.html")
    maps = {f"map_{mode}.svg" for mode in MODES}
    assert {path.name for path in tmp_path.iterdir()} == {"example.svg", "explain.html", *maps}
    page = (tmp_path / "explain.html").read_text(encoding="utf-8")
    shown = re.findall(r'<section class="mode" id="(\w+)"', page)
    assert shown == ["fake_backward", "loss_attribute", "autograd_function"]


def test_bad_input_writes_nothing(tmp_path):
    for override, message in (
        ("content=nowhere.jpg", "nowhere.jpg"),
        ("dry_run=true", "explain has no dry run"),
        ("resume=auto", "leave resume=auto out"),
    ):
        check_error(message, main, composed("explain", *SMALL, override), tmp_path / "run")
    assert not (tmp_path / "run").exists()


# What is seen in an evaluation.
def test_fake_backward_walks_the_first_block_once_per_loss():
    seen = studied("fake_backward")
    block = sum(node.group == "block 1" for node in seen.nodes)
    # The pass from relu1_1 enters conv1_1 and relu1_1; the deeper ones all of block 1.
    entered = [seen.entered(number) for number in (1, 2, 3)]
    assert [one["block 1"] for one in entered] == [2, block, block]
    assert [one["image"] for one in entered] == [1, 1, 1]
    assert sum(one.total() for one in entered) == seen.visits > len(seen.nodes)
    assert [one.root for one in seen.passes] == TERMS


def test_one_pass_enters_every_node_once():
    for mode in ("loss_attribute", "autograd_function"):
        assert [one.root for one in studied(mode).passes] == ["total"]
        assert {node.passes for node in studied(mode).nodes} == {(1,)}


def test_every_mode_has_the_same_trunk():
    def trunk(mode):
        groups = (group for group in studied(mode).groups if group.kind in ("trunk", "image"))
        return [[(node.name, node.layer) for node in group.nodes] for group in groups]

    assert trunk(MODES[0]) == trunk(MODES[1]) == trunk(MODES[2])


def test_a_real_backward_is_a_node_of_the_trunk():
    seen = studied("autograd_function")
    nodes, entered = seen.written("loss")
    assert set(nodes) <= {f"{name}Backward" for name in written_functions()}
    assert nodes.total() == entered == len(TERMS)
    losses = [group for group in seen.groups if group.kind == "loss"]
    assert [(group.name, group.on_trunk) for group in losses] == [(name, True) for name in TERMS]
    for group in losses:
        assert sum(node.is_function for node in group.nodes) == 1


def test_other_losses_hang_beside_the_trunk():
    for mode in ("fake_backward", "loss_attribute"):
        assert studied(mode).written("loss") == ({}, 0)
        losses = [group for group in studied(mode).groups if group.kind == "loss"]
        places = [(group.name, group.at, group.on_trunk) for group in losses]
        blocks = ["block 1", "block 2", "block 2"]
        assert places == [(*place, False) for place in zip(TERMS, blocks, strict=True)]


def test_a_fake_backward_is_no_node_and_autograd_never_enters_it():
    seen = studied("fake_backward")
    assert seen.methods == ("ContentLoss.backward", "StyleLoss.backward")
    assert seen.entered_by_driver == 3
    assert seen.entered_by_autograd == 0
    assert studied("loss_attribute").methods == studied("autograd_function").methods == ()
    assert not any("Loss" in node.name for node in seen.nodes)


def test_a_closed_form_needs_fewer_nodes_and_no_more_memory():
    real, built_in = studied("autograd_function"), studied("loss_attribute")
    assert len(real.nodes) < len(built_in.nodes)
    assert real.kept < built_in.kept


@pytest.mark.parametrize("mode", MODES)
def test_the_trunks_own_backwards_are_entered_in_every_mode(mode):
    # Both losses at relu2_1 have a pass of their own under fake_backward.
    entered = 2 if mode == "fake_backward" else 1
    assert studied(mode).written("trunk") == ({"MaxPoolFunctionBackward": 1}, entered)
    replaced = studied(mode, pooling="average", winograd=True)
    assert replaced.written("trunk") == ({"WinogradConvBackward": 1}, entered)
    assert studied(mode, pooling="average").written("trunk") == ({}, 0)


def test_a_method_that_autograd_does_enter_is_counted(monkeypatch):
    watched = objective("fake_backward")
    for kind in {type(term.module) for term in watched.terms}:
        monkeypatch.setattr(kind, "backward", lambda self, retain_graph=True: self.loss)
    for term in watched.terms:
        # A hook on the loss calls the method, which does nothing now.
        term.module.register_forward_hook(
            lambda module, *_: (
                module.loss.register_hook(lambda grad: module.backward() and None) and None
            )
        )
    seen = study("fake_backward", watched, torch.rand(1, 3, 12, 10, dtype=torch.float64))
    assert seen.entered_by_autograd == len(TERMS)
    assert "Yes: ContentLoss.backward and StyleLoss.backward" in answers(seen)["In the losses"]


def test_fake_backward_holds_everything_after_its_last_pass():
    seen = studied("fake_backward")
    assert all(one.retain_graph for one in seen.passes)
    assert {one.held_before for one in seen.passes} == {seen.kept}
    assert {one.held_after for one in seen.passes} == {seen.kept}


def test_one_pass_frees_as_it_goes():
    for mode in ("loss_attribute", "autograd_function"):
        (one,) = studied(mode).passes
        assert not one.retain_graph
        assert one.held_before == studied(mode).kept > 0
        assert one.held_after == 0


def test_separate_passes_fail_without_retain_graph():
    """With it every saved byte is kept, and after a plain backward none."""
    for mode in MODES:
        assert studied(mode).refusal.startswith("torch refuses: trying to backward through the")
        before, retained, freed = studied(mode).retention.values()
        assert before == retained > freed == 0
    # A single loss needs no retained graph.
    alone = objective("fake_backward", content_layers=[], style_layers=["relu2_1"])
    seen = study("fake_backward", alone, torch.rand(1, 3, 12, 10, dtype=torch.float64))
    assert seen.refusal.startswith("works: ")


@pytest.mark.parametrize("mode", MODES)
def test_the_groups_hold_all_that_the_graph_keeps(mode):
    seen = studied(mode, 0.5)
    assert sum(group.nbytes for group in seen.groups) == seen.kept
    # relu1_1, relu1_2, pool1 with its int64 indices, relu2_1, at 12 x 10 pixels in float64.
    trunk = {group.name: group.nbytes for group in seen.groups if group.kind == "trunk"}
    assert trunk["block 1"] >= 8 * (4 * 120 + 4 * 120 + 4 * 30)
    assert trunk["block 2"] >= 8 * 6 * 30
    # Total variation hangs on the image.
    (prior,) = (group for group in seen.groups if group.name == "total_variation")
    assert (prior.at, prior.on_trunk) == ("image", False)
    expected = [*TERMS, "total_variation"] if mode == "fake_backward" else ["total"]
    assert [one.root for one in seen.passes] == expected


@pytest.mark.parametrize("mode", MODES)
def test_studying_changes_neither_picture_nor_network(mode):
    watched = objective(mode)
    picture = torch.rand(1, 3, 12, 10, dtype=torch.float64)
    point, again = (picture.clone().requires_grad_() for _ in range(2))
    study(mode, watched, picture)
    assert torch.equal(picture, point)
    assert picture.grad is None
    assert all(parameter.grad is None for parameter in watched.network.parameters())
    # The same evaluation, watched before and not, has the same gradient.
    watched.evaluate(point)
    objective(mode).evaluate(again)
    torch.testing.assert_close(point.grad, again.grad, rtol=0, atol=0)
