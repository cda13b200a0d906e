"""Motion: frames fall on each other where the flow says so, and only there it is relied on."""

import pytest
import torch
from clips import (
    grid,
    pan,
    pan_flow,
    scene,
    square,
    square_flow,
    square_mask,
    zoom,
    zoom_flow,
)
from helpers import picture

from styletransfer.films.motion import Motion, make_motion, reliability, softened, warp

INNER = (..., slice(3, -3), slice(3, -3))


def test_a_shift_by_whole_pixels_is_a_slice():
    image = picture(1)
    flow = torch.zeros(1, 2, 16, 20, dtype=torch.float64)
    flow[:, 0], flow[:, 1] = 3, -2
    moved = warp(image, flow)
    assert torch.allclose(moved[..., 2:, :-3], image[..., :-2, 3:], atol=1e-12)
    assert torch.allclose(moved[..., 0, 0], image[..., 0, 3], atol=1e-12)  # as the border


def test_half_a_pixel_is_the_mean_of_two():
    image = picture(2)
    flow = torch.zeros(1, 2, 16, 20, dtype=torch.float64)
    flow[:, 0] = 0.5
    mean = (image[..., :-1] + image[..., 1:]) / 2
    assert torch.allclose(warp(image, flow)[..., :-1], mean, atol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize(("clip", "flow"), [(pan, pan_flow()), (zoom, zoom_flow())])
def test_a_warped_frame_is_the_next_one(clip, flow, mode):
    error = (warp(clip(0), flow, mode) - clip(1))[INNER].abs().max()
    assert error < (4e-3 if mode == "bilinear" else 2.5e-3)


def test_bicubic_stays_sharper():
    there = back = picture(3)
    flow = torch.full((1, 2, 16, 20), 0.5, dtype=torch.float64)
    for _ in range(4):
        there = warp(warp(there, flow, "bilinear"), -flow, "bilinear")
        back = warp(warp(back, flow, "bicubic"), -flow, "bicubic")
    assert back[INNER].std() > 1.5 * there[INNER].std()


@pytest.mark.parametrize("flow", [pan_flow(), zoom_flow()])
def test_even_motion_is_relied_on_but_where_it_leaves_the_frame(flow):
    found = reliability(flow, -flow)
    x, y = grid()
    there = (x + flow[0, 0], y + flow[0, 1])
    inside = (there[0] >= 0) & (there[0] <= 31) & (there[1] >= 0) & (there[1] <= 23)
    assert torch.equal(found[0, 0], inside.double())


def test_what_comes_from_behind_a_square_and_its_edges_are_not_relied_on():
    found = reliability(square_flow(1), -square_flow(0))[0, 0]
    uncovered = square_mask(0) & ~square_mask(1)
    assert uncovered.any()
    assert not found[uncovered].any()
    inner, far = torch.zeros(24, 32, dtype=torch.bool), torch.ones(24, 32, dtype=torch.bool)
    inner[9:15, 7:13] = True
    far[6:18, 2:18] = False
    assert found[inner].all()
    assert found[far].all()
    motion = make_motion(square_flow(1), -square_flow(0))
    difference = (motion.warped(square(0)) - square(1)).abs() * (motion.reliability > 0)
    assert difference.max() < 1e-12


def test_softening_only_takes_away():
    mask = torch.zeros(1, 1, 16, 16, dtype=torch.float64)
    mask[..., 8:] = 1
    soft = softened(mask)
    assert (soft[..., :8] == 0).all()
    assert torch.equal(soft[..., 12:], mask[..., 12:])
    assert 0.5 < soft[0, 0, 8, 8] < soft[0, 0, 8, 9] < 1
    assert torch.equal(softened(torch.ones_like(mask)), torch.ones_like(mask))


def test_a_cut_has_little_in_common():
    flow = torch.zeros(1, 2, 24, 32, dtype=torch.float64)
    assert not make_motion(flow, flow).is_cut
    generator = torch.Generator().manual_seed(0)
    wild = 10 * torch.randn(flow.shape, generator=generator, dtype=torch.float64)
    assert make_motion(wild, wild.flip(2)).is_cut


def test_the_other_frame_is_moved_in_its_own_precision():
    x, y = grid()
    image = scene(x, y).float()
    motion = Motion(pan_flow(), torch.ones(1, 1, 24, 32))
    assert motion.warped(image).dtype == torch.float32
