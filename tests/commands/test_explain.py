import io
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from helpers import ROOT
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from rich.console import Console

from styletransfer.commands.explain.facts import NodeFacts, Study
from styletransfer.commands.explain.graph_page import draw_page
from styletransfer.commands.explain.graph_svg import draw_map, format_bytes
from styletransfer.commands.explain.graph_tree import draw_small_tree, draw_tree
from styletransfer.commands.explain.lane_svg import draw_lanes
from styletransfer.commands.explain.run import explain
from styletransfer.commands.explain.small_example import small_example
from styletransfer.commands.explain.study import study, trunk_group
from styletransfer.config import ObjectiveConfig, TrainConfig
from styletransfer.errors import UserError
from styletransfer.features import vgg
from styletransfer.modes import LOSS_MODES, get_loss_mode
from styletransfer.objective.whole import Objective
from styletransfer.settings import register_schemas

MODES = tuple(LOSS_MODES)
LAYERS = ObjectiveConfig(
    content_layers=["relu2_1"], style_layers=["relu1_1", "relu2_1"], tv_weight=0.0
)
TERMS = ["style/relu1_1", "content/relu2_1", "style/relu2_1"]
SMALL = [
    "features=vgg19",
    "features.weights=random",
    "size=24",
    "device=cpu",
    "precision=float32",
    "objective.style_layers=[relu1_1,relu2_1]",
    "objective.content_layers=[relu2_1]",
]


def objective(mode: str, config: ObjectiveConfig = LAYERS) -> Objective:
    network = vgg.build([[4, 4], [6, 6]])
    vgg.randomize(network, seed=0)
    generator = torch.Generator().manual_seed(1)
    content, style = (
        torch.rand(1, 3, 12, 10, dtype=torch.float64, generator=generator) for _ in range(2)
    )
    return Objective(network.double(), get_loss_mode(mode), config, content, style)


@cache
def studied(mode: str, tv_weight: float = 0.0) -> Study:
    picture = torch.full((1, 3, 12, 10), 0.5, dtype=torch.float64)
    return study(objective(mode, replace(LAYERS, tv_weight=tv_weight)), picture)


def group_sizes(mode: str) -> dict[str, int]:
    return {group.name: len(group.nodes) for group in studied(mode).groups}


# What an evaluation does, by mode.


def test_fake_backward_makes_one_pass_per_loss_and_the_others_make_one() -> None:
    assert [one.root for one in studied("fake_backward").passes] == TERMS
    for mode in ("loss_attribute", "autograd_function"):
        assert [one.root for one in studied(mode).passes] == ["total"]


@pytest.mark.parametrize("mode", MODES)
def test_a_node_is_entered_once_in_each_pass_that_reaches_it(mode: str) -> None:
    seen = studied(mode)
    for node in seen.nodes:
        assert len(set(node.passes)) == len(node.passes) >= 1
    assert seen.visits == sum(len(node.passes) for node in seen.nodes)


def test_fake_backward_walks_the_first_block_once_per_loss() -> None:
    sizes = group_sizes("fake_backward")
    passes = studied("fake_backward").passes
    # The pass from relu1_1 enters conv1_1 and relu1_1; the deeper ones all of block 1.
    assert [one.visits["block 1"] for one in passes] == [2, sizes["block 1"], sizes["block 1"]]
    assert [one.visits["image"] for one in passes] == [1, 1, 1]
    assert studied("fake_backward").visits > len(studied("fake_backward").nodes)


@pytest.mark.parametrize("mode", ["loss_attribute", "autograd_function"])
def test_one_pass_enters_every_node_once(mode: str) -> None:
    assert studied(mode).visits == len(studied(mode).nodes)


def test_every_mode_has_the_same_trunk() -> None:
    trunks = [
        [
            [(node.name, node.layer) for node in group.nodes]
            for group in studied(mode).groups
            if group.kind in ("trunk", "image")
        ]
        for mode in MODES
    ]
    assert trunks[0] == trunks[1] == trunks[2]


def test_a_real_backward_is_a_node_of_the_trunk() -> None:
    seen = studied("autograd_function")
    assert seen.functions == {"StyleTapBackward": 2, "ContentTapBackward": 1}
    losses = [group for group in seen.groups if group.kind == "loss"]
    assert [(group.name, len(group.nodes), group.on_trunk) for group in losses] == [
        (name, 1, True) for name in TERMS
    ]


@pytest.mark.parametrize("mode", ["fake_backward", "loss_attribute"])
def test_other_losses_hang_beside_the_trunk(mode: str) -> None:
    seen = studied(mode)
    assert not seen.functions
    losses = {group.name: group for group in seen.groups if group.kind == "loss"}
    assert {name: group.at for name, group in losses.items()} == {
        "style/relu1_1": "block 1",
        "content/relu2_1": "block 2",
        "style/relu2_1": "block 2",
    }
    assert not any(group.on_trunk for group in losses.values())


def test_a_fake_backward_is_no_node_and_autograd_never_enters_it() -> None:
    seen = studied("fake_backward")
    assert seen.methods == ("ContentLoss.backward", "StyleLoss.backward")
    assert seen.entered_by_driver == 3
    assert seen.entered_by_autograd == 0
    assert not any("Loss" in node.name for node in seen.nodes)


@pytest.mark.parametrize("mode", ["loss_attribute", "autograd_function"])
def test_other_loss_modules_have_no_method_backward(mode: str) -> None:
    assert studied(mode).methods == ()


def test_a_closed_form_needs_fewer_nodes_and_no_more_memory() -> None:
    real, built_in = studied("autograd_function"), studied("loss_attribute")
    assert len(real.nodes) < len(built_in.nodes)
    assert real.kept < built_in.kept


# Memory.


@pytest.mark.parametrize("mode", MODES)
def test_retain_graph_keeps_every_saved_byte_and_a_plain_backward_none(mode: str) -> None:
    kept = studied(mode).retention
    assert kept.before == kept.retained > 0
    assert kept.freed == 0


def test_fake_backward_still_holds_everything_after_its_last_pass() -> None:
    seen = studied("fake_backward")
    assert all(one.retain_graph for one in seen.passes)
    assert {one.held_before for one in seen.passes} == {seen.kept}
    assert {one.held_after for one in seen.passes} == {seen.kept}


@pytest.mark.parametrize("mode", ["loss_attribute", "autograd_function"])
def test_one_pass_frees_as_it_goes(mode: str) -> None:
    (one,) = studied(mode).passes
    assert not one.retain_graph
    assert one.held_before == studied(mode).kept > 0
    assert one.held_after == 0


@pytest.mark.parametrize("mode", MODES)
def test_separate_passes_fail_without_retain_graph(mode: str) -> None:
    refusal = studied(mode).retention.second_pass
    assert refusal is not None
    assert "backward through the graph a second time" in refusal


def test_a_single_loss_needs_no_retained_graph() -> None:
    alone = replace(LAYERS, content_layers=[], style_layers=["relu2_1"])
    seen = study(objective("fake_backward", alone), torch.rand(1, 3, 12, 10, dtype=torch.float64))
    assert seen.retention.second_pass is None


@pytest.mark.parametrize("mode", MODES)
def test_bytes_of_the_groups_add_up_to_what_the_graph_keeps(mode: str) -> None:
    seen = studied(mode)
    assert sum(group.nbytes for group in seen.groups) == seen.kept
    # relu1_1, relu1_2, pool1 with its int64 indices, relu2_1, at 12 x 10 pixels in float64.
    trunk = {group.name: group.nbytes for group in seen.groups if group.kind == "trunk"}
    assert trunk["block 1"] >= 8 * (4 * 120 + 4 * 120 + 4 * 30)
    assert trunk["block 2"] >= 8 * 6 * 30


@pytest.mark.parametrize("mode", MODES)
def test_studying_changes_neither_picture_nor_network(mode: str) -> None:
    watched = objective(mode)
    picture = torch.rand(1, 3, 12, 10, dtype=torch.float64)
    before = picture.clone()
    study(watched, picture)
    assert torch.equal(picture, before)
    assert picture.grad is None
    assert all(parameter.grad is None for parameter in watched.network.parameters())
    assert not any("backward" in vars(term.module) for term in watched.terms)
    # The same evaluation, watched and not, has the same gradient.
    point, again = (picture.clone().requires_grad_() for _ in range(2))
    watched.evaluate(point)
    objective(mode).evaluate(again)
    torch.testing.assert_close(point.grad, again.grad, rtol=0, atol=0)


@pytest.mark.parametrize("mode", MODES)
def test_total_variation_hangs_on_the_image(mode: str) -> None:
    seen = studied(mode, 0.5)
    (prior,) = (group for group in seen.groups if group.name == "total_variation")
    assert prior.at == "image"
    assert not prior.on_trunk
    expected = [*TERMS, "total_variation"] if mode == "fake_backward" else ["total"]
    assert [one.root for one in seen.passes] == expected
    drivers = [group for group in seen.groups if group.kind == "driver"]
    assert len(drivers) == (mode != "fake_backward")


def test_layers_fold_into_blocks() -> None:
    layers = ["preprocess", "conv1_1", "relu1_2", "pool1", "conv12_3"]
    assert [trunk_group(layer) for layer in layers] == [
        "preprocess",
        "block 1",
        "block 1",
        "block 1",
        "block 12",
    ]


# Pictures of it.


@pytest.mark.parametrize("tv_weight", [0.0, 0.5])
@pytest.mark.parametrize("mode", MODES)
def test_map_shows_every_group_and_one_line_per_pass(mode: str, tv_weight: float) -> None:
    seen = studied(mode, tv_weight)
    drawing = draw_map(seen)
    tree = ElementTree.fromstring(drawing)
    shown = [group.get("data-group") for group in tree.iter("{http://www.w3.org/2000/svg}g")]
    assert sorted(filter(None, shown)) == sorted(group.name for group in seen.groups)
    assert drawing.count('marker-end="url(') == len(seen.passes)
    assert f"entered {seen.visits} times" in drawing
    width, height = map(float, str(tree.get("viewBox")).split()[2:])
    for text in tree.iter("{http://www.w3.org/2000/svg}text"):
        assert 0 <= float(str(text.get("x"))) < width
        assert 0 < float(str(text.get("y"))) < height


def node(index: int, *follows: int) -> NodeFacts:
    return NodeFacts(index, f"Node{index}", "", follows, (), False)


def test_lanes_join_every_node_with_those_it_leads_to() -> None:
    nodes = [node(0, 1, 3), node(1, 2), node(2, 4), node(3, 4, 5), node(4, 5), node(5)]
    tree = ElementTree.fromstring(draw_lanes(nodes))
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


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        self.ids += [values["id"] or ""] if tag == "details" else []
        self.targets += [values["data-group"] or ""] if "data-group" in values else []
        self.links += [values[key] or "" for key in ("href", "src") if key in values]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass


@pytest.mark.parametrize("mode", MODES)
def test_page_is_complete_in_itself(mode: str) -> None:
    text = draw_page(studied(mode), small_example(), "a <tiny> network")
    page = Page(text)
    assert not page.open
    assert page.links == ["data:,"]
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not re.findall(r"\$\w", text)
    assert "a &lt;tiny&gt; network" in text
    # A click on a box of the map finds its folded nodes.
    assert sorted(page.targets) == sorted(page.ids)
    for group in studied(mode).groups:
        for one in group.nodes:
            assert one.name in text


@pytest.mark.parametrize("mode", MODES)
def test_tree_says_what_the_page_says(mode: str) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(draw_tree(studied(mode), "tiny [network]"))
    console.print(draw_small_tree(small_example()))
    text = console.export_text()
    assert "tiny [network]" in text
    for group in studied(mode).groups:
        assert group.name in text
    assert ("StyleTapBackward" in text) is (mode == "autograd_function")
    assert ("autograd 0 times" in text) is (mode == "fake_backward")
    assert "a = 2, .grad 4" in text


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


# End to end.


def composed(*overrides: str) -> TrainConfig:
    register_schemas()
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        config = OmegaConf.to_object(compose("explain", overrides=[*SMALL, *overrides]))
    assert isinstance(config, TrainConfig)
    return config


def test_explain_takes_the_same_config_as_train() -> None:
    register_schemas()
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        assert compose("explain") == compose("train")


@pytest.mark.parametrize("mode", MODES)
def test_explain_writes_page_and_figures(mode: str, tmp_path: Path) -> None:
    explanation = explain(composed(f"loss_mode={mode}"), tmp_path)
    assert explanation.page == tmp_path / "explain.html"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "example.svg",
        "explain.html",
        "map.svg",
    ]
    for figure in tmp_path.glob("*.svg"):
        ElementTree.fromstring(figure.read_text(encoding="utf-8"))
    assert explanation.setting == "vgg19, 24 x 16 pixels, float32, cpu"
    assert len(explanation.trees()) == 2


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("loss_mode.name=magic", "unknown loss mode 'magic'"),
        ("objective.style_layers=[relu9_1]", "relu9_1"),
        ("content=nowhere.jpg", "nowhere.jpg"),
    ],
)
def test_bad_input_writes_nothing(override: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        explain(composed(override), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_script_as_a_person_runs_it(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/explain.py", *SMALL, f"hydra.run.dir={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(tmp_path / "explain.html")
    assert (tmp_path / "explain.html").stat().st_size > 10_000
    assert "StyleTapBackward" in done.stdout


def test_script_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/explain.py", "szie=32", f"hydra.run.dir={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: unknown key szie; did you mean size?\n"


# The guide.


def test_guide_names_tests_that_exist() -> None:
    guide = (ROOT / "docs" / "backward.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", guide))
    written = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    assert len(named) > 15
    assert [name for name in sorted(named) if f"def {name}(" not in written] == []


def test_guide_shows_figures_that_exist() -> None:
    guide = (ROOT / "docs" / "backward.md").read_text(encoding="utf-8")
    figures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", guide)
    assert len(figures) == 4
    for figure in figures:
        ElementTree.parse(ROOT / "docs" / figure)


def test_guide_quotes_its_figures() -> None:
    docs = ROOT / "docs"
    guide = " ".join((docs / "backward.md").read_text(encoding="utf-8").split())
    nodes, visits = re.findall(r"(\d+) nodes are entered (\d+) times", guide)[0]
    fake = (docs / "fake_backward.svg").read_text(encoding="utf-8")
    assert f"{nodes} nodes, entered {visits} times" in fake
    assert "six losses" in guide
    assert fake.count('marker-end="url(') == 6
    assert "would keep and walk nine" in guide
    assert "9 nodes · 16 KiB" in (docs / "loss_attribute.svg").read_text(encoding="utf-8")
