"""The command: its page and its maps, which all say what was seen."""

import re
import xml.etree.ElementTree as ElementTree
from html import unescape

import pytest
from explained import studied
from galleries import Tags
from helpers import LAYERS, MODES, check_error, composed

from styletransfer.commands.explain.command import draw_page, main
from styletransfer.commands.explain.drawing import Map
from styletransfer.commands.explain.facts import answers, format_bytes
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


def test_page_is_complete_in_itself_and_begins_with_the_chosen_mode():
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


def test_a_hand_written_backward_is_called_where_autograd_enters_one():
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
