"""Repetition of a style image, against a search written out, and the style losses that use it."""

from dataclasses import replace

import pytest
import torch
from helpers import MODES, VGG19, composed, gradient, picture, relative_error, tiny_network
from torch import nn
from torch.nn.functional import avg_pool2d, cosine_similarity, interpolate

from styletransfer.features import FeatureExtractor
from styletransfer.job.choices import Choices
from styletransfer.job.prepare import prepare
from styletransfer.losses import LOSS_MODES
from styletransfer.losses.moments import gram_matrix
from styletransfer.objective import Criterion
from styletransfer.objective.all_targets import all_targets, style_targets_of
from styletransfer.objective.inputs import Inputs, Region, Repetition, StylePart, pair
from styletransfer.objective.reader import WholeReader
from styletransfer.objective.repetition import repetition
from styletransfer.objective.whole import Objective
from styletransfer.pictures.images import Picture
from styletransfer.settings import ObjectiveConfig
from styletransfer.tiling.tiled import TiledObjective

CRITERION = Criterion.of(ObjectiveConfig(match_weight=0.5, calm_freedom=1.0))
STYLES = picture(2, 64, 96), picture(3, 80, 64)
REPEATED = tuple(
    Repetition(picture(seed, *style.shape[2:])[:, :1], strength)
    for seed, style, strength in zip((4, 5), STYLES, (0.5, 0.8), strict=True)
)


def inputs(*sources):
    """Return inputs with a plain left half, whose region is painted by the given style parts."""
    content = picture(1, 64, 96)
    content[..., :48] = 0.5
    regions = (Region(sources=sources or (StylePart(),)),)
    return Inputs(content, STYLES, regions, repetitions=REPEATED)


def target_of(pictures, layer="relu5_1"):
    """Return the target of the only style loss at a layer, under a seeded network."""
    (target,) = style_targets_of(tiny_network(VGG19), CRITERION, pictures)[layer]
    return target


def test_weights_follow_the_largest_cosine_far_away():
    network, style = tiny_network(VGG19), picture(1, 192, 256)
    style[..., 128:] *= 0.3
    found = repetition(network, style)
    enlarged = interpolate(
        style, (288, 384), mode="bicubic", align_corners=False, antialias=True
    ).clamp(0, 1)
    features = network(enlarged, ["relu5_1"])["relu5_1"][0]
    features = features - features.mean((1, 2), keepdim=True)
    weights, energy = torch.zeros(2, 18, 24, dtype=torch.float64)
    for y, x in torch.cartesian_prod(torch.arange(18), torch.arange(24)).tolist():
        cosines = cosine_similarity(features, features[:, y : y + 1, x : x + 1], dim=0)
        cosines[max(0, y - 4) : y + 5, max(0, x - 4) : x + 5] = -1
        weights[y, x] = ((cosines.max() - 0.35) / 0.15).clamp(0, 1)
        energy[y, x] = features[:, y, x].square().sum()
    assert relative_error(found.weights[0, 0], weights) < 1e-6
    share = float((weights * energy).sum() / energy.sum())
    assert found.strength == pytest.approx(min(1, share / 0.3))


def test_what_occurs_once_has_no_weight():
    """Check red and blue fields, and a green one; each feature is the mean colour of a field."""
    network = FeatureExtractor(nn.Identity(), {"relu5_1": nn.AvgPool2d(16)})
    fields = torch.zeros(1, 3, 18, 24, dtype=torch.float64)
    odd = (torch.arange(18)[:, None] + torch.arange(24)) % 2
    fields[0, 0], fields[0, 2] = odd, 1 - odd
    fields[0, :, 9, 12] = torch.tensor([0.0, 1.0, 0.0])
    style = fields.repeat_interleave(16, 2).repeat_interleave(16, 3)
    weights = repetition(network, style).weights[0, 0]
    assert weights[9, 12] == 0
    assert weights.sum() == 18 * 24 - 1


def test_large_shapes_come_from_the_repeated_places():
    target = target_of(inputs())
    weights = avg_pool2d(REPEATED[0].weights, 16)
    seen = tiny_network(VGG19)(STYLES[0], ["relu5_1"])["relu5_1"]
    expected = gram_matrix(seen * (weights / weights.mean()).sqrt())
    assert relative_error(target.distance.target, expected) < 1e-12
    linear = 0.4 * 0.5 * CRITERION.styles["relu5_1"] / expected.square().mean()
    assert target.weight == pytest.approx(float(linear))


def test_other_layers_and_pictures_without_repetitions_are_unchanged():
    plain = replace(inputs(), repetitions=())
    for layer in CRITERION.styles:
        one, other = target_of(inputs(), layer), target_of(plain, layer)
        same = torch.equal(one.distance.target, other.distance.target)
        assert (same and one.weight == other.weight) == (layer != "relu5_1")


def test_a_style_counts_as_far_as_it_repeats_itself():
    alone = [target_of(inputs(StylePart(number))).distance.target for number in (0, 1)]
    target = target_of(inputs(StylePart(0, share=3.0), StylePart(1)))
    mean = (3 * 0.5 * alone[0] + 0.8 * alone[1]) / (3 * 0.5 + 0.8)
    assert relative_error(target.distance.target, mean) < 1e-12
    strength = target.weight * float(mean.square().mean()) / CRITERION.styles["relu5_1"]
    assert strength == pytest.approx(0.4 * (3 * 0.5 + 0.8) / 4)


def test_a_region_sees_the_repeated_places_of_its_own_part():
    left = (torch.arange(96)[None, None, None] < 48).expand(1, 1, 64, 96).double()
    narrow = replace(REPEATED[0], weights=REPEATED[0].weights * left)
    weighted = target_of(inputs(StylePart(weights=left)))
    reduced = target_of(replace(inputs(), repetitions=(narrow, REPEATED[1])))
    assert torch.equal(weighted.distance.target, reduced.distance.target)


def test_a_style_without_repetition_has_no_loss_of_large_shapes():
    unique = Repetition(torch.zeros_like(REPEATED[0].weights), 0.0)
    pictures = replace(inputs(), repetitions=(unique, unique))
    found = style_targets_of(tiny_network(VGG19), CRITERION, pictures)
    assert [layer for layer, targets in found.items() if not targets] == ["relu5_1"]


def test_large_shapes_count_more_in_calm_places():
    reader = WholeReader(tiny_network(VGG19), with_mean=False)
    found = all_targets(CRITERION, reader, inputs(), {})
    for layer in CRITERION.styles:
        *_, target = found[layer]
        share = float(target.distance.weights.mean() / target.distance.target.square().mean())
        factor = 2.0 * 0.5 if layer == "relu5_1" else 1.0
        expected = 0.25 * factor * CRITERION.styles[layer] * share
        assert target.weight == pytest.approx(expected, rel=0.05)


def test_all_modes_and_tiles_agree():
    network, start = tiny_network(VGG19), picture(6, 64, 96)
    pictures = inputs(StylePart(0, share=2.0), StylePart(1))
    made = [Objective(network, LOSS_MODES[mode], CRITERION, pictures) for mode in MODES]
    made.append(TiledObjective(network, LOSS_MODES["tensor_hook"], CRITERION, pictures, 32))
    slopes = [gradient(objective, start) for objective in made]
    assert all(relative_error(slope, slopes[0]) < 1e-10 for slope in slopes[1:])


def test_weights_follow_the_size_of_their_style():
    size, style_sizes = (32, 48), [(48, 72), (40, 32)]
    small = inputs().resized(size, style_sizes)
    assert [tuple(each.weights.shape[2:]) for each in small.repetitions] == style_sizes


@pytest.mark.parametrize("weight", [0.5, 0.0])
def test_only_jobs_that_match_look_for_repetition(weight):
    settings = composed("train", "size=40", "scales=1", f"objective.match_weight={weight}")
    pictures = {"content": Picture(picture(1).float()), "style": [Picture(picture(2).float())]}
    choices = Choices.of(settings)
    like = choices.job(tiny_network(VGG19), pair(picture(1), picture(2)))
    assert len(prepare(settings, pictures, like=like).pictures.repetitions) == (weight > 0)
