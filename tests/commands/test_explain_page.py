import io
import math
import re
import xml.etree.ElementTree as ElementTree
from html import unescape
from html.parser import HTMLParser

import pytest
from explained import studied
from helpers import MODES
from rich.console import Console

from styletransfer.commands.explain.facts import NodeFacts, Study
from styletransfer.commands.explain.map_layout import colour_of
from styletransfer.commands.explain.page import draw_example, draw_map, draw_page
from styletransfer.commands.explain.small_example import SmallExample, small_example
from styletransfer.commands.explain.tree import draw_comparison, draw_small_tree, draw_tree
from styletransfer.commands.explain.words import answers, figures, format_bytes

SVG = "{http://www.w3.org/2000/svg}"


# Maps and lanes.


@pytest.mark.parametrize("tv_weight", [0.0, 0.5])
@pytest.mark.parametrize("mode", MODES)
def test_map_shows_every_group_and_one_line_per_pass(mode: str, tv_weight: float) -> None:
    seen = studied(mode, tv_weight)
    drawing = draw_map(seen)
    tree = ElementTree.fromstring(drawing)
    shown = [group.get("data-group") for group in tree.iter(f"{SVG}g")]
    assert sorted(filter(None, shown)) == sorted(group.name for group in seen.groups)
    assert len(lanes_of(tree)) == len(seen.passes)
    times = "time" if seen.visits == 1 else "times"
    assert f"{len(seen.nodes)} nodes, entered {seen.visits} {times}" in drawing
    width, height = map(float, str(tree.get("viewBox")).split()[2:])
    for text in tree.iter(f"{SVG}text"):
        assert 0 <= float(str(text.get("x"))) < width
        assert 0 < float(str(text.get("y"))) < height


def lanes_of(tree: ElementTree.Element) -> list[ElementTree.Element]:
    return [group for group in tree.iter(f"{SVG}g") if "lane" in str(group.get("class"))]


@pytest.mark.parametrize("tv_weight", [0.0, 0.5])
@pytest.mark.parametrize("mode", MODES)
def test_the_counts_in_the_map_add_up_to_the_nodes_of_each_pass(
    mode: str, tv_weight: float
) -> None:
    seen = studied(mode, tv_weight)
    lanes = lanes_of(ElementTree.fromstring(draw_map(seen)))
    for lane, one in zip(lanes, seen.passes, strict=True):
        label, *counts = (str(text.text) for text in lane.iter(f"{SVG}text"))
        assert sum(map(int, counts)) == one.nodes
        assert f" {one.root}: {one.nodes} nodes = " in label
        parts = [int(part) for part in re.findall(r"(\d+) in", label)]
        assert sum(parts) == one.nodes
        # Circles are the trunk's, squares those of the losses and of their sum.
        circles = len(list(lane.iter(f"{SVG}circle")))
        assert len(list(lane.iter(f"{SVG}rect"))) == len(counts) - circles > 0
        trunk = [group.name for group in seen.groups if group.kind in ("image", "trunk")]
        assert parts[0] == sum(one.visits.get(name, 0) for name in trunk)
    assert sum(one.nodes for one in seen.passes) == seen.visits


def test_more_passes_than_colours_begin_again() -> None:
    assert [colour_of(number) for number in (1, 7, 8, 15)] == [1, 7, 1, 1]


def drawn(nodes: list[NodeFacts]) -> str:
    return draw_example(SmallExample(tuple(nodes), len(nodes), ()))


def node(index: int, *follows: int) -> NodeFacts:
    return NodeFacts(index, f"Node{index}", "", follows, (), False)


def test_lanes_join_every_node_with_those_it_leads_to() -> None:
    nodes = [node(0, 1, 3), node(1, 2), node(2, 4), node(3, 4, 5), node(4, 5), node(5)]
    tree = ElementTree.fromstring(drawn(nodes))
    svg = "{http://www.w3.org/2000/svg}"
    dots = [(float(dot.get("cx", 0)), float(dot.get("cy", 0))) for dot in tree.iter(f"{svg}circle")]
    edges = set()
    for line in tree.iter(f"{svg}path"):
        begin = [float(number) for number in re.findall(r"[-\d.]+", line.get("d", ""))[:2]]
        end_y = float(re.findall(r"V([-\d.]+)$", line.get("d", ""))[0])
        (start,) = (i for i, dot in enumerate(dots) if dot == tuple(begin))
        (end,) = (i for i, dot in enumerate(dots) if math.isclose(dot[1], end_y))
        edges.add((start, end))
    assert edges == {(one.index, target) for one in nodes for target in one.follows}


# Page and tree.


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []
        self.sections: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        self.ids += [values["id"] or ""] if tag == "details" else []
        self.targets += [values["data-opens"] or ""] if "data-opens" in values else []
        self.sections += [values["id"] or ""] if tag == "section" else []
        self.links += [values[key] or "" for key in ("href", "src") if key in values]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass


def page_of(*modes: str) -> str:
    return draw_page([studied(mode) for mode in modes], small_example(), "a <tiny> network")


def test_page_is_complete_in_itself() -> None:
    text = page_of(*MODES)
    page = Page(text)
    assert not page.open
    assert page.links == ["data:,", *(f"#{mode}" for mode in MODES)]
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not re.findall(
        r"{[{%]|[%}]}", text.partition("<style>")[0] + text.partition("</style>")[2]
    )
    assert "a &lt;tiny&gt; network" in text
    # A click on a box of the map finds its folded nodes.
    assert sorted(page.targets) == sorted(page.ids)
    assert len(set(page.ids)) == len(page.ids)
    assert not any(" " in name for name in page.ids)
    for mode in MODES:
        for group in studied(mode).groups:
            for one in group.nodes:
                assert one.name in text


@pytest.mark.parametrize("first", MODES)
def test_all_loss_modes_stand_side_by_side_the_chosen_one_first(first: str) -> None:
    modes = [first, *(mode for mode in MODES if mode != first)]
    text = page_of(*modes)
    page = Page(text)
    assert page.links[1:] == [f"#{mode}" for mode in modes]
    assert page.sections == modes
    for mode, section in zip(modes, text.split('<section class="mode"')[1:], strict=True):
        for scope, answer in answers(studied(mode)):
            assert f">{scope}</th><td>{answer}</td>" in unescape(section)
    for mode, card in zip(modes, re.findall(r"<dl>.*?</dl>", text, re.DOTALL), strict=True):
        shown = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", unescape(card))
        assert shown == figures(studied(mode))


@pytest.mark.parametrize(
    ("mode", "losses", "trunk"),
    [
        ("fake_backward", "No: ContentLoss.backward and StyleLoss.backward are ordinary", "Yes"),
        ("loss_attribute", "No: there is none.", "Yes"),
        ("autograd_function", "Yes: ", "Yes"),
    ],
)
def test_a_hand_written_backward_is_called_where_autograd_enters_one(
    mode: str, losses: str, trunk: str
) -> None:
    seen = studied(mode)
    (one, in_losses), (other, in_trunk) = answers(seen)
    assert (one, other) == ("In the losses", "In the trunk")
    assert in_losses.startswith(losses)
    assert in_trunk.startswith(trunk)
    for kind, answer in (("loss", in_losses), ("trunk", in_trunk)):
        written = seen.written(kind)
        assert answer.startswith("Yes") is bool(written)
        for each in written:
            assert f"{each.nodes} {each.name}" in answer
        times = sum(each.entered for each in written)
        assert not written or f"entered {times} time" in answer
    built_in = answers(studied(mode, pooling="average"))
    assert built_in[0] == answers(seen)[0]
    assert built_in[1][1] == "No: there is none. The trunk's nodes run autograd's own formulas."


def test_the_fake_methods_entries_are_counted_and_said() -> None:
    (_, answer), _ = answers(studied("fake_backward"))
    assert answer.endswith("no nodes. The driver entered them 3 times, autograd 0 times.")


def test_the_small_example_is_shown_with_its_gradients() -> None:
    rows = re.findall(
        r"<tr><td><code>(\w)</code></td><td>(\d+)</td><td><b>(\w+)</b></td><td>(.*?)</td>",
        page_of("loss_attribute"),
    )
    assert [row[:3] for row in rows] == [
        ("a", "2", "4"),
        ("b", "3", "4"),
        ("d", "4", "5"),
        ("c", "5", "None"),
        ("e", "20", "None"),
    ]
    assert rows[3][3].startswith("c is no leaf (AddBackward0 made it): its gradient is passed on")


def printed(*trees: object) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    for tree in trees:
        console.print(tree)
    return console.export_text()


@pytest.mark.parametrize("mode", MODES)
def test_tree_says_what_the_page_says(mode: str) -> None:
    seen: Study = studied(mode)
    text = printed(draw_tree(seen, "tiny [network]"), draw_small_tree(small_example()))
    assert "tiny [network]" in text
    for group in seen.groups:
        assert group.name in text
    for scope, answer in answers(seen):
        assert f"{scope}: {answer}" in text
    assert "a = 2, .grad 4" in text
    assert "c = 5, .grad None" in text


def test_the_modes_are_compared_in_the_terminal_too() -> None:
    text = printed(draw_comparison([studied(mode) for mode in MODES]))
    for mode in MODES:
        assert mode in text
        for value, label in figures(studied(mode)):
            assert f"{value} {label}" in text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (13 * 2**20, "13 MiB"),
        (3 * 2**40, "3072 GiB"),
    ],
)
def test_format_bytes(nbytes: int, text: str) -> None:
    assert format_bytes(nbytes) == text
