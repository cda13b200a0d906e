"""content_regions=auto: groups of what looks alike, paired between content and styles."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import check_error, run_settings

from styletransfer.job import groups
from styletransfer.job.groups import k_means, label_pictures
from styletransfer.job.prepare import prepare
from styletransfer.pictures import images
from styletransfer.settings import FeaturesConfig, ObjectiveConfig

# Numbers of the stuffs in the three vertical bands of each picture: grass, sky or chequers.
CONTENT, A, B = (0, 1, 2), (1, 2, 0), (2, 0, 1)


def bands(order, size=96):
    """Return a picture (1, 3, size, size) of three vertical bands."""
    rows, columns = np.mgrid[:size, :size] * 96 // size
    waves = 0.5 + 0.25 * np.sin(rows * 2.1) * np.sin(columns * 1.7)
    sky, chequers = np.full_like(waves, 0.9), (rows // 6 + columns // 6) % 2 * 0.6 + 0.1
    stuffs = np.stack(
        [[0.2 * waves, waves, 0.1 * waves], [0.5 * sky, 0.8 * sky, sky], [chequers] * 3]
    )
    band = np.minimum(columns // 32, 2)
    return torch.from_numpy(np.choose(np.array(order)[band], stuffs)).float()[None]


@pytest.fixture
def config(tiny_vgg, here, monkeypatch):
    """Return settings with content_regions=auto and a small network; pictures have 96 pixels."""
    monkeypatch.setattr(groups, "SIDE", 96)
    for name, order in (("content", CONTENT), ("a", A), ("b", B)):
        images.write(f"{name}.png", bands(order))
    return run_settings(
        content="content.png",
        style="a.png",
        content_regions="auto",
        size=96,
        features=FeaturesConfig(name="vgg19", weights="random"),
        precision="float32",
        device="cpu",
        objective=ObjectiveConfig(),
    )


def band_of(weights):
    """Return the number of the vertical band in which weights (1, 1, H, W) are largest."""
    return int(np.argmax([float(part.mean()) for part in weights.chunk(3, 3)]))


def test_each_group_is_painted_by_what_looks_like_it(config):
    config.style = ["a.png", "b.png"]
    regions = prepare(config).pictures.regions
    found = {CONTENT[band_of(region.weights)]: region.sources for region in regions}
    assert sorted(found) == [0, 1, 2]
    for stuff, (first, second) in found.items():
        assert (A[band_of(first.weights)], B[band_of(second.weights)]) == (stuff, stuff)


def test_the_weights_of_groups_sum_to_one(config):
    pictures = prepare(config).pictures
    masks = [[region.weights for region in pictures.regions]]
    masks.append([region.sources[0].weights for region in pictures.regions])
    for weights in masks:
        assert (sum(weights) - 1).abs().max() < 1e-5


def test_groups_are_the_same_in_each_run_and_at_each_size(config):
    first, again = (prepare(config).pictures.regions for _ in range(2))
    assert all(torch.equal(a.weights, b.weights) for a, b in zip(first, again, strict=True))
    larger = prepare(replace(config, size=160)).pictures.regions
    for one, large in zip(first, larger, strict=True):
        assert (
            one.weights - images.resize(large.weights, (96, 96), "bilinear")
        ).abs().mean() < 0.03


def test_a_small_group_is_no_region_of_its_own(config, monkeypatch):
    assert [region.name for region in prepare(config).pictures.regions] == ["red", "green", "blue"]
    monkeypatch.setattr(groups, "SMALL", 0.4)  # each band has a third of the picture
    assert [region.name for region in prepare(config).pictures.regions] == ["red", "green"]


def test_label_pictures_of_groups_give_these_regions_again(config):
    found = prepare(config).pictures.regions
    content, style = label_pictures(found)
    images.write("labels.png", content)
    images.write("labels_of_a.png", style)
    config.content_regions, config.style_regions = "labels.png", "labels_of_a.png"
    given = {region.name: region for region in prepare(config).pictures.regions}
    for region in found:
        same = given[region.name]
        for one, again in ((region, same), (region.sources[0], same.sources[0])):
            assert (again.weights[one.weights > 0.6] == 1).all()
            assert (again.weights[one.weights < 0.3] == 0).all()


def test_groups_leave_out_what_is_protected(config):
    mask = torch.zeros(96, 96)
    mask[:48] = 1
    regions = prepare(config, {"protect": mask}).pictures.regions
    total = sum(region.weights for region in regions)
    torch.testing.assert_close(total[0, 0], 1 - mask)


def test_a_style_of_details_paints_every_group_as_a_whole(config):
    config.style_detail = "b.png"
    for region in prepare(config).pictures.regions:
        assert [part.weights is None for part in region.sources] == [False, True]
    assert len(label_pictures(prepare(config).pictures.regions)) == 2


@pytest.mark.parametrize("color", [0.0, 0.5])
def test_a_picture_of_one_colour_is_painted(config, color):
    images.write("content.png", torch.full((1, 3, 96, 96), color))
    images.write("a.png", torch.full((1, 3, 96, 96), color))
    for region in prepare(config).pictures.regions:
        assert torch.isfinite(region.weights).all()
        assert region.sources[0].weights.sum() > 0


def test_what_was_found_is_logged_and_a_plan_finds_nothing(config, caplog):
    caplog.set_level(logging.INFO)
    assert prepare(config, enlarge=False).pictures.regions[0].weights is None
    assert "content_regions=auto" not in caplog.text
    prepare(config)
    assert "content_regions=auto: red (" in caplog.text


def test_settings_that_groups_leave_no_place_for_are_refused(config):
    for key, value in (("style_regions", "a.png"), ("region_styles", {"red": 1})):
        message = f"^content_regions=auto finds regions of its own; leave {key} out"
        check_error(message, prepare, replace(config, **{key: value}))
    message = r"^content_regions=auto needs a\.png without style_rotation and without transparent"
    check_error(message, prepare, replace(config, style_rotation=90.0))
    Path("a.png").unlink()
    pixels = torch.cat([bands(A), torch.ones(1, 1, 96, 96)], 1)
    pixels[:, 3, :, :20] = 0
    images.write("a.png", pixels[:, :3], pixels[:, 3:])
    check_error(message, prepare, config)


def test_k_means_finds_groups_far_apart_largest_first():
    rows = torch.tensor([[0.0], [0.1], [9.0], [5.0], [5.1], [5.2]], dtype=torch.float64)
    centres, distances = k_means(rows, 3)
    torch.testing.assert_close(centres, rows.new_tensor([[5.1], [0.05], [9.0]]))
    assert distances.argmin(1).tolist() == [1, 1, 2, 0, 0, 0]


def test_k_means_does_not_depend_on_what_was_drawn_before():
    rows = torch.rand(200, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = [k_means(rows, 3)[0] for _ in range(3)]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
