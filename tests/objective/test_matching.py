"""Nearest-neighbour matching against a search written out; tests/tiling has the test in tiles."""

from dataclasses import replace

import pytest
import torch
from helpers import MODES, VGG19, gradient, picture, relative_error, tiny_network
from torch.nn.functional import cosine_similarity, interpolate, normalize, pad

from styletransfer.losses import LOSS_MODES
from styletransfer.losses.moments import gram_matrix
from styletransfer.objective import SEARCHED, Criterion, calm
from styletransfer.objective import matching as module
from styletransfer.objective.all_targets import all_targets
from styletransfer.objective.calm import busyness
from styletransfer.objective.inputs import Inputs, Region, StylePart, pair
from styletransfer.objective.matching import matching
from styletransfer.objective.reader import WholeReader
from styletransfer.objective.whole import Objective
from styletransfer.settings import ObjectiveConfig

MATCHED = ObjectiveConfig(
    match_weight=0.5, content_weight=0.25, match_layers=["relu3_1", "relu4_1"]
)
SKY = (torch.arange(52)[None, None, None] < 29).expand(1, 1, 37, 52).double()
REGIONS = (
    Region("sky", SKY, (StylePart(0, weights=picture(4, 40, 33)[:, :1].round()),)),
    Region("house", 1 - SKY, (StylePart(0), StylePart(1))),
)
LAYERS = ["relu1_1", "relu3_1", "relu4_1"]
STYLES = picture(2, 40, 33), picture(3, 35, 48)
DIVIDED = Inputs(picture(1, 37, 52), STYLES, REGIONS, start=picture(5, 37, 52))


def columns_of(network, image):
    """Return the centred hypercolumns (D, h, w) of an image, at the size of relu3_1."""
    seen = network(image, SEARCHED)
    size = seen["relu3_1"].shape[2:]
    parts = [
        interpolate(seen[name], size, mode="bilinear", align_corners=False) for name in SEARCHED
    ]
    joined = [part / part.pow(2).sum(1).mean().sqrt() for part in parts]
    columns = torch.cat(joined, 1)[0]
    return columns - columns.mean((1, 2), keepdim=True)


def calm_by_hand(network, image):
    """Return (h, w), True where unit hypercolumns vary less than 0.65 of their mean variation."""
    columns = normalize(columns_of(network, image), dim=0)
    squares = pad(columns[None], (2, 2, 2, 2), mode="replicate").unfold(2, 5, 1).unfold(3, 5, 1)
    variation = 1 - squares.mean((4, 5))[0].norm(dim=0)
    return variation < 0.65 * variation.mean()


def busy_by_hand(network, style):
    """Return 1 if at most 0.10 of a style is calm, 0 if at least 0.14 is, linear between."""
    share = float(calm_by_hand(network, style).double().mean())
    return min(1.0, max(0.0, (0.14 - share) / 0.04))


def places_by_hand(image, size):
    """Return (3, h, w): rows and columns over height and width, and ranks of lightness."""
    around = pad(image.mean(1, keepdim=True), (4, 4, 4, 4), mode="replicate")
    grey = around.unfold(2, 9, 1).unfold(3, 9, 1).mean((4, 5))
    rank = grey.flatten().argsort().argsort().double() / (grey.numel() - 1)
    light = interpolate(rank.view_as(grey), size, mode="bilinear", antialias=True)[0]
    row, column = ((torch.arange(length) + 0.5) / length for length in size)
    return torch.cat([row.expand(1, size[1], -1).mT, column.expand(1, *size), light])


def by_hand(network, pictures, layer, share):
    """Return the features at `layer` (relu3_1 or relu4_1) of each position's nearest neighbour.

    Also the weights of the match losses there, (h, w).
    """
    calm = calm_by_hand(network, pictures.content)
    sought = pictures.content
    if pictures.start is not None:
        sought = (1 - share) * sought + share * pictures.start
    wanted, offered = columns_of(network, sought), [columns_of(network, s) for s in pictures.styles]
    seen = [network(style, [layer])[layer][0] for style in pictures.styles]
    height, width = network(pictures.content, [layer])[layer].shape[2:]
    here = places_by_hand(pictures.content, wanted.shape[1:])
    there = [
        places_by_hand(style, keys.shape[1:])
        for style, keys in zip(pictures.styles, offered, strict=True)
    ]
    busy = [busy_by_hand(network, style) for style in pictures.styles]
    strengths = torch.tensor([3.0, 1.5, 6.0])[:, None, None]
    rows, weights = [], []
    for i in range(height):
        for j in range(width):
            y, x = (i + 0.5) * wanted.shape[1] / height, (j + 0.5) * wanted.shape[2] / width
            at = int(y), int(x)
            if len(pictures.regions) > 1:
                cover = interpolate(SKY, wanted.shape[1:], mode="bilinear", antialias=True)
                region = pictures.regions[0 if cover[0, 0, at[0], at[1]] > 0.5 else 1]
            else:
                region = pictures.regions[0]
            near = []
            for part in region.sources:
                keys = offered[part.style]
                alike = cosine_similarity(wanted[:, at[0], at[1], None, None], keys, dim=0)
                if calm[at]:
                    apart = there[part.style] - here[:, at[0], at[1], None, None]
                    alike = alike - (strengths * apart.square()).sum(0)
                if part.weights is not None:
                    inside = interpolate(
                        part.weights, keys.shape[1:], mode="bilinear", antialias=True
                    )
                    alike = alike.masked_fill(inside[0, 0] < 0.5, -99.0)
                place = divmod(int(alike.argmax()), keys.shape[2])
                near.append((float(alike.max()), part.style, place, keys.shape[1:]))
            _, style, place, cells = max(near)
            down, right = (
                int((place[axis] + (y, x)[axis] % 1) * seen[style].shape[1 + axis] / cells[axis])
                for axis in (0, 1)
            )
            rows.append(seen[style][:, down, right])
            weights.append(1 - 0.75 * busy[style] * float(calm[at]))
    made = torch.stack(rows, 1).view(-1, height, width)
    return made, torch.tensor(weights, dtype=torch.float64).view(height, width)


def made(criterion, network, pictures, kind):
    """Return layer -> its targets of one kind; those of "style" are of calm places alone."""
    found = all_targets(criterion, WholeReader(network, False), pictures, {})
    kept = {layer: [one for one in at if one.name.startswith(kind)] for layer, at in found.items()}
    return {layer: targets for layer, targets in kept.items() if targets}


@pytest.mark.parametrize("pictures", [pair(picture(1, 37, 52), picture(2, 40, 33)), DIVIDED])
def test_targets_are_those_of_a_search_by_hand(pictures):
    network = tiny_network(VGG19)
    criterion = Criterion.of(replace(MATCHED, match_painted=0.25))
    found = matching(criterion, pictures, WholeReader(network, False))
    for layer in ("relu3_1", "relu4_1"):
        expected, weights = by_hand(network, pictures, layer, 0.25)
        values = found.values(layer, expected.shape[1:])
        assert torch.equal(values[0], expected)
        assert (found.weights_at(weights.shape)[0, 0] - weights).abs().max() < 1e-12


def test_a_style_of_details_is_matched_at_its_layers_alone():
    criterion, network = Criterion.of(replace(MATCHED, match_layers=LAYERS)), tiny_network(VGG19)

    def targets(*sources):
        pictures = replace(DIVIDED, regions=(Region(sources=sources),))
        return made(criterion, network, pictures, "match")

    both = targets(StylePart(0, layers=LAYERS[1:]), StylePart(1, layers=LAYERS[:1]))
    for layer, style in zip(LAYERS, (1, 0, 0), strict=True):
        (alone,), (found,) = targets(StylePart(style))[layer], both[layer]
        assert torch.equal(found.distance.target, alone.distance.target)


def test_a_style_of_more_weight_is_chosen_more_often():
    def chosen(*shares):
        sources = tuple(StylePart(number, share) for number, share in enumerate(shares))
        pictures = replace(DIVIDED, regions=(Region(sources=sources),))
        found = matching(Criterion.of(MATCHED), pictures, WholeReader(tiny_network(VGG19), False))
        return found.styles[~found.calm]

    assert torch.equal(chosen(1.0, 1.0), chosen(0.5, 0.5))
    first, more = chosen(1.0, 1.0).sum(), chosen(1.0, 3.0).sum()
    assert 0 < first < more
    assert chosen(1.0, 1e9).all()


def test_a_style_without_weight_changes_no_target(monkeypatch):
    monkeypatch.setattr(module, "AXES", 6)  # of 14 channels
    network, one = tiny_network(VGG19), replace(DIVIDED, regions=(Region(),))
    alone, beside = (
        made(Criterion.of(MATCHED), network, replace(one, styles=styles), "match")
        for styles in (DIVIDED.styles[:1], DIVIDED.styles)
    )
    for (one,), (other,) in zip(alone.values(), beside.values(), strict=True):
        assert torch.equal(one.distance.target, other.distance.target)


@pytest.mark.parametrize("axes", [128, 6])
def test_a_picture_matched_with_itself_is_itself(monkeypatch, axes):
    monkeypatch.setattr(module, "AXES", axes)  # of 14 channels
    network, image = tiny_network(VGG19), picture(1, 37, 52)
    objective = Objective(
        network, LOSS_MODES["autograd_function"], Criterion.of(MATCHED), pair(image, image)
    )
    losses = objective.evaluate(image.clone().requires_grad_()).as_floats()
    names = ["content/relu4_2", "match/relu3_1", "match/relu4_1"]
    assert [losses[name] for name in names] == pytest.approx([0, 0, 0], abs=1e-12)


def half_plain(light=0.5):
    """Return an image (1, 3, 64, 96) whose left half is of one grey, and calm."""
    content = picture(1, 64, 96)
    content[..., :48] = light
    return content


BUSY, PLAIN = picture(3, 35, 48), half_plain()


def targets_of(style, network, **settings):
    criterion = Criterion.of(replace(MATCHED, **settings))
    pictures = pair(half_plain(), style)
    return [made(criterion, network, pictures, kind) for kind in ("match", "style")]


@pytest.mark.parametrize("style", [BUSY, PLAIN])
def test_calm_places_are_matched_more_if_the_style_is_calm(style):
    targets, _ = targets_of(style, tiny_network(VGG19))
    for (target,) in targets.values():
        weights = target.distance.weights[0, 0]
        left = weights[:, : weights.shape[1] // 2 - 4]
        assert (left == (1 if style is PLAIN else 0.25)).all()
        assert weights.mean() > 0.6


def test_a_style_counts_as_less_busy_the_more_of_it_is_calm():
    torch.manual_seed(0)
    columns = normalize(torch.randn(40, 20, 100, dtype=torch.float64), dim=0)
    found = []
    for width in (0, 5, 10, 13, 14, 16, 20, 40):  # the first columns of positions are alike
        columns[:, :, :width] = columns[:, :1, :1]
        found.append(busyness([columns]))
    assert found[:2] == [1, 1]
    assert found[-2:] == [0, 0]
    assert found == sorted(found, reverse=True)
    assert any(0 < busy < 1 for busy in found)
    calm, busy = columns, normalize(torch.randn_like(columns), dim=0)
    assert busyness([calm, busy]) == busyness([busy, calm]) == 0


def test_a_style_that_is_calm_at_a_smaller_size_is_not_busy(monkeypatch):
    # The grain of the left half has a mean of 0.5 in each square of 2 x 2 pixels: it is texture at
    # full size, and grey at half the size.
    style = picture(1, 128, 192)
    sign = picture(2, 64, 56)[0, 0].sub(0.5).sign()
    style[..., :112] = 0.5 + 0.3 * sign.kron(1 - 2 * torch.eye(2, dtype=torch.float64))
    network = tiny_network(VGG19)

    def freedom(coarsest):
        monkeypatch.setattr(module, "COARSEST", coarsest)
        reader = WholeReader(network, with_mean=False)
        return matching(Criterion.of(MATCHED), pair(half_plain(), style), reader).freedom

    assert freedom(97) == [1]  # half the size has 96 pixels along the longer side
    assert freedom(96) == [0]


@pytest.mark.parametrize("size", [(16, 640), (640, 16), (70, 2100)])
def test_a_long_narrow_style_is_matched(size):
    matched, _ = targets_of(picture(3, *size), tiny_network(VGG19))
    assert all(target.distance.target.isfinite().all() for (target,) in matched.values())


def test_calm_places_have_style_losses_under_busy_styles_alone():
    network = tiny_network(VGG19)
    assert set(targets_of(BUSY, network)[1]) == set(MATCHED.style_layers)
    assert not any(targets_of(PLAIN, network)[1].values())


@pytest.mark.parametrize("freedom", [0.0, 0.4, 1.0])
def test_how_freely_calm_places_are_painted_can_be_said(freedom):
    network = tiny_network(VGG19)
    (free, weak), (_, full) = (
        targets_of(PLAIN, network, calm_freedom=freedom) for freedom in (freedom, 1.0)
    )
    for (target,) in free.values():
        weights = target.distance.weights
        assert weights[weights > 0].min() == pytest.approx(1 - 0.75 * freedom)
    for layer, targets in full.items():
        found = sum(target.weight for target in weak.get(layer, []))
        assert found == pytest.approx(freedom * targets[0].weight)


def test_calm_places_have_style_losses_of_their_own():
    network, criterion = tiny_network(VGG19), Criterion.of(MATCHED)
    right = (torch.arange(96)[None, None, None] >= 24).expand(1, 1, 64, 96).double()
    divided = (Region("sea", 1 - right), Region("land", right))
    pictures = replace(pair(half_plain(), BUSY), regions=divided)
    found = made(criterion, network, pictures, "style")
    for layer, (sea, land) in found.items():
        assert [sea.name, land.name] == [f"style/sea/calm/{layer}", f"style/land/calm/{layer}"]
        for target in (sea, land):
            share = target.distance.weights.mean() / target.distance.target.square().mean()
            weight = 0.25 * criterion.styles[layer] * float(share)
            assert target.weight == pytest.approx(weight, rel=0.05)
        soft = (sea.distance.weights + land.distance.weights).mean(0)
        assert float(soft[0]) > 0.99
        assert 0 < soft[len(soft) // 2] < 1
        assert soft[-1] < 0.1


def test_each_style_acts_in_calm_places_as_busy_as_it_is():
    network, half = tiny_network(VGG19), picture(2, 40, 33)
    criterion, blank = Criterion.of(MATCHED), replace(pair(half_plain(), BUSY))

    def found(*styles):
        sources = tuple(StylePart(number, share) for number, share in enumerate((3.0, 1.0)))
        region = Region(sources=sources[: len(styles)])
        pictures = replace(blank, styles=styles, regions=(region,))
        return made(criterion, network, pictures, "style")

    busy = busy_by_hand(network, half)
    assert 0 < busy < 1
    alone, other, both = found(BUSY), found(half), found(half, BUSY)
    for layer, (target,) in both.items():
        one, two = alone[layer][0].distance.target, other[layer][0].distance.target
        mean = (3 * busy * two + one) / (3 * busy + 1)
        assert relative_error(target.distance.target, mean) < 1e-12
        gram = target.distance.target.square().mean() * target.weight
        expected = gram / target.distance.weights.mean() / criterion.styles[layer]
        assert float(expected) == pytest.approx(0.25 * (3 * busy + 1) / 4, rel=0.01)
    for layer, (target,) in found(BUSY, PLAIN).items():
        assert torch.equal(target.distance.target, alone[layer][0].distance.target)
        assert target.weight == pytest.approx(0.75 * alone[layer][0].weight)


@pytest.mark.parametrize("light", [0.0, 1.0])
def test_calm_places_paint_with_the_part_that_is_as_light(light):
    network, style = tiny_network(VGG19), 0.5 * picture(2, 64, 96)
    style[..., 48:] += 0.5
    pictures = pair(half_plain(light), style)
    criterion = Criterion.of(replace(MATCHED, calm_freedom=1.0))
    value = made(criterion, network, pictures, "style")["relu1_1"][0].distance.target
    seen = network(style, ["relu1_1"])["relu1_1"]
    dark, bright = (
        gram_matrix(half) - value for half in (seen[..., :46].clone(), seen[..., 50:].clone())
    )
    assert (bright.norm() < dark.norm()) == (light == 1.0)


MIXED = Inputs(half_plain(), (BUSY, PLAIN), (Region(sources=(StylePart(0), StylePart(1))),))


@pytest.mark.parametrize("pictures", [DIVIDED, pair(half_plain(), BUSY), MIXED])
def test_all_modes_agree(pictures):
    network = tiny_network(VGG19)
    criterion = Criterion.of(MATCHED)
    made = [Objective(network, LOSS_MODES[mode], criterion, pictures) for mode in MODES]
    start = picture(6, *pictures.content.shape[2:])
    slopes = [gradient(objective, start) for objective in made]
    assert all(relative_error(slope, slopes[0]) < 1e-10 for slope in slopes[1:])
    leaf = start.requires_grad_()
    losses = [objective.evaluate(leaf).as_floats() for objective in made]
    assert all(found == pytest.approx(losses[0], rel=1e-10) for found in losses)


def test_large_pictures_are_searched_at_a_smaller_size(monkeypatch):
    """Each half of a 1040-pixel image matches the similar half of the style, with few axes too."""
    monkeypatch.setattr(module, "AXES", 6)  # of 14 channels
    monkeypatch.setattr(calm, "CALM", 0.0)
    network = tiny_network(VGG19)
    content, style = (picture(seed, 128, 1040) for seed in (1, 2))
    content[..., 520:] *= 0.1
    style[..., :520] *= 0.1
    found = matching(Criterion.of(MATCHED), pair(content, style), WholeReader(network, False))
    assert found.styles.shape == (16, 130)
    values = found.values("relu3_1", (32, 260))
    assert values.shape == network(content, ["relu3_1"])["relu3_1"].shape
    assert (found.columns[:, :60] >= 65).double().mean() > 0.9
    assert (found.columns[:, -60:] < 65).double().mean() > 0.9
