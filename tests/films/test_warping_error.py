"""E_warp and steady frames, on clips whose motion is known."""

import math

import pytest
import torch
from clips import pan, pan_flow, square, square_flow
from helpers import picture

from styletransfer.errors import UserError
from styletransfer.films.motion import Motion, make_motion
from styletransfer.films.steady import Steady, check_steady
from styletransfer.films.warping_error import WarpingError, warping_errors


def noisy(frames, sigma=0.05):
    """The frames with noise that is new in each."""
    return [
        frame + sigma * torch.randn(frame.shape, generator=torch.Generator().manual_seed(number))
        for number, frame in enumerate(frames)
    ]


def still(image, other):
    """The motion of a camera that stands."""
    return make_motion(torch.zeros_like(image[:, :2]), torch.zeros_like(image[:, :2]))


def panned(image, other):
    """The motion of `pan` between neighbours."""
    return make_motion(pan_flow(), -pan_flow())


def cut(image, other):
    return Motion(torch.zeros_like(image[:, :2]), torch.zeros_like(image[:, :1]))


def test_of_a_still_film_it_is_the_mean_squared_difference():
    a, b = picture(1), picture(2)
    (errors,) = warping_errors([[a, b]], still, gaps=[1])
    assert errors == [pytest.approx((a - b).square().mean().item())]


def test_only_what_is_relied_on_counts():
    error = WarpingError()
    relied = torch.zeros(1, 1, 16, 20, dtype=torch.float64)
    relied[..., 10:] = 1
    motion = Motion(torch.zeros(1, 2, 16, 20), relied)
    a, b = picture(1), picture(2)
    error.add(motion, a, b)
    assert error.value == pytest.approx((a - b)[..., 10:].square().mean().item())


def test_motion_explains_a_pan_but_not_its_noise():
    frames = [pan(time) for time in range(4)]
    clean, rough = warping_errors([frames, noisy(frames)], panned, gaps=[1])
    assert clean[0] < 1e-5
    # Two frames differ by twice the variance of each; interpolation takes some of it away.
    assert 0.05**2 < rough[0] < 2 * 0.05**2


def test_the_long_term_looks_further_back():
    frames = [torch.full((1, 3, 8, 8), 0.1 * time) for time in range(7)]
    ((short, long),) = warping_errors([frames], still)
    assert (short, long) == (pytest.approx(0.1**2), pytest.approx(0.5**2))


def test_motion_is_that_of_the_input():
    seen = []

    def watched(image, other):
        seen.append((image, other))
        return still(image, other)

    first, second = [picture(1), picture(2)], [picture(3), picture(4)]
    warping_errors([first, second], watched, gaps=[1])
    ((image, other),) = seen
    assert image is first[1]
    assert other is first[0]


def test_cuts_and_lone_frames_have_no_pair():
    (errors,) = warping_errors([[picture(1), picture(2)]], cut)
    assert all(map(math.isnan, errors))


def test_films_that_do_not_fit_are_refused():
    frames = [picture(1), picture(2)]
    with pytest.raises(UserError, match="lengths"):
        warping_errors([frames, frames[:1]], still)
    with pytest.raises(UserError, match="sizes"):
        warping_errors([frames, [picture(1, 8, 8)] * 2], still)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_share_of_the_frame_before_takes_flicker_away(share):
    """Its docstring's formula, once the mixture has settled."""
    frames = [torch.full((1, 3, 40, 40), 0.5)] * 40
    painted = noisy(frames)
    steady = Steady(share, still)
    mixed = [steady.mixed(*pair) for pair in zip(frames, painted, strict=True)]
    ((before,), (after,)) = warping_errors([painted[20:], mixed[20:]], still, gaps=[1])
    assert after / before == pytest.approx((1 - share) ** 2 / (1 + share), rel=0.05)


def test_it_follows_what_moves_and_leaves_what_is_hidden():
    frames = [square(time) for time in range(3)]
    times = iter(range(1, 3))

    def motion(image, other):
        time = next(times)
        return make_motion(square_flow(time), -square_flow(time - 1))

    steady = Steady(0.9, motion)
    for frame in frames:
        assert (steady.mixed(frame, frame) - frame).abs().max() < 1e-9


def test_after_a_cut_nothing_of_the_frame_before_is_left():
    steady = Steady(0.9, cut)
    steady.mixed(picture(1), picture(1))
    assert torch.equal(steady.mixed(picture(2), picture(3)), picture(3))


def test_a_pan_stays_sharp():
    steady = Steady(0.8, panned)
    frames = [pan(time) for time in range(8)]
    for frame in frames:
        mixed = steady.mixed(frame, frame)
    assert (mixed - frames[-1])[..., 3:-3, 3:-3].abs().max() < 2e-3


@pytest.mark.parametrize("share", [-0.1, 1.0, math.nan])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(UserError, match=f"steady={share}"):
        check_steady(share)
