"""Nearest-neighbour matching against a search written out; test_tiles.py has the test in tiles."""

from dataclasses import replace

import pytest
import torch
from helpers import MODES, VGG19, gradient, picture, relative_error, tiny_network
from torch.nn.functional import cosine_similarity, interpolate, normalize, pad

from styletransfer.losses import LOSS_MODES
from styletransfer.losses.moments import gram_matrix
from styletransfer.objective import SEARCHED, Criterion
from styletransfer.objective import matching as module
from styletransfer.objective.inputs import Inputs, Region, StylePart, pair
from styletransfer.objective.matching import match_targets, matching
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


def by_hand(network, pictures, layer, share):
    """Return the features at `layer` (relu3_1 or relu4_1) of each position's nearest neighbour."""
    calm = calm_by_hand(network, pictures.content)
    sought = pictures.content
    if pictures.start is not None:
        sought = (1 - share) * sought + share * pictures.start
    wanted, offered = columns_of(network, sought), [columns_of(network, s) for s in pictures.styles]
    seen = [network(style, [layer])[layer][0] for style in pictures.styles]
    height, width = network(pictures.content, [layer])[layer].shape[2:]
    rows = []
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
                if part.weights is not None:
                    inside = interpolate(
                        part.weights, keys.shape[1:], mode="bilinear", antialias=True
                    )
                    alike = alike.masked_fill(inside[0, 0] < 0.5, -2.0)
                place = divmod(int(alike.argmax()), keys.shape[2])
                near.append((float(alike.max()), part.style, place, keys.shape[1:]))
            _, style, place, cells = max(near)
            down, right = (
                int((place[axis] + (y, x)[axis] % 1) * seen[style].shape[1 + axis] / cells[axis])
                for axis in (0, 1)
            )
            rows.append(seen[style][:, down, right] * ~calm[at])
    return torch.stack(rows, 1).view(-1, height, width)


@pytest.mark.parametrize("pictures", [pair(picture(1, 37, 52), picture(2, 40, 33)), DIVIDED])
def test_targets_are_those_of_a_search_by_hand(pictures):
    network = tiny_network(VGG19)
    criterion = Criterion.of(replace(MATCHED, match_painted=0.25))
    found = matching(criterion, pictures, WholeReader(network, False))
    for layer in ("relu3_1", "relu4_1"):
        expected = by_hand(network, pictures, layer, 0.25)
        values = found.values(layer, expected.shape[1:])
        assert torch.equal(values[0], expected)


def test_a_style_of_details_is_matched_at_its_layers_alone():
    criterion, network = Criterion.of(replace(MATCHED, match_layers=LAYERS)), tiny_network(VGG19)

    def targets(*sources):
        pictures = replace(DIVIDED, regions=(Region(sources=sources),))
        return match_targets(criterion, WholeReader(network, False), pictures, {})[0]

    both = targets(StylePart(0, layers=LAYERS[1:]), StylePart(1, layers=LAYERS[:1]))
    for layer, style in zip(LAYERS, (1, 0, 0), strict=True):
        alone = targets(StylePart(style))[layer].distance
        assert torch.equal(both[layer].distance.target, alone.target)


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
        match_targets(
            Criterion.of(MATCHED), WholeReader(network, False), replace(one, styles=styles), {}
        )[0]
        for styles in (DIVIDED.styles[:1], DIVIDED.styles)
    )
    for layer in alone:
        assert torch.equal(alone[layer].distance.target, beside[layer].distance.target)


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


def test_calm_places_of_the_content_have_no_target():
    pictures, network = pair(half_plain(), picture(2, 64, 64)), tiny_network(VGG19)
    targets, _ = match_targets(Criterion.of(MATCHED), WholeReader(network, False), pictures, {})
    for target in targets.values():
        half = target.distance.target.shape[3] // 2
        is_empty = target.distance.target.abs().sum((0, 1, 2)) == 0
        assert is_empty[: half - 4].all()
        assert not is_empty[half:].any()


def test_calm_places_have_style_losses_of_their_own():
    network, criterion = tiny_network(VGG19), Criterion.of(MATCHED)
    right = (torch.arange(96)[None, None, None] >= 24).expand(1, 1, 64, 96).double()
    divided = (Region("sea", 1 - right), Region("land", right))
    pictures = replace(pair(half_plain(), picture(2, 64, 64)), regions=divided)
    _, found = match_targets(criterion, WholeReader(network, False), pictures, {})
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


@pytest.mark.parametrize("light", [0.0, 1.0])
def test_calm_places_paint_with_the_part_that_is_as_light(light):
    network, style = tiny_network(VGG19), 0.5 * picture(2, 64, 96)
    style[..., 48:] += 0.5
    pictures = pair(half_plain(light), style)
    args = Criterion.of(MATCHED), WholeReader(network, False), pictures, {}
    value = match_targets(*args)[1]["relu1_1"][0].distance.target
    seen = network(style, ["relu1_1"])["relu1_1"]
    dark, bright = (
        gram_matrix(half) - value for half in (seen[..., :46].clone(), seen[..., 50:].clone())
    )
    assert (bright.norm() < dark.norm()) == (light == 1.0)


@pytest.mark.parametrize("pictures", [DIVIDED, pair(half_plain(), picture(2, 64, 64))])
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
    monkeypatch.setattr(module, "CALM", 0.0)
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
